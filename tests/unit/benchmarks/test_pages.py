"""The data for the pages of other tools are the numbers that our page draws."""

import json
import sys

from benchmarks import pages
from ci_perf.system import files
from tests.runs import a_measured, a_run


def test_all_tools_get_the_same_numbers(tmp_path, monkeypatch, capsys):
    files.write(tmp_path / "run.json", a_run(a_measured("mlp", 0.01, 0.0101)))
    folder = tmp_path / "pages"
    monkeypatch.setattr(
        sys, "argv", ["pages", f"{tmp_path}/run.json", str(folder), "--commits", "6"]
    )

    pages.main()

    assert len(list(folder.glob("asv/results/*/*-ci-perf-smoke.json"))) == 6
    data = (folder / "gab/data.js").read_text().partition(" = ")[2]
    *_, base, head = json.loads(data)["entries"]["ci_perf"]
    assert 1.04 < head["benches"][0]["value"] / base["benches"][0]["value"] < 1.14
    suite = json.loads((folder / "pyperf/head.json").read_text())
    assert len(suite["benchmarks"][0]["runs"]) == 5
    assert "30 launches, in their order" in (folder / "ci_perf/page.html").read_text()
    assert "ci_perf: " in capsys.readouterr().out

"""A day with a GPU, rehearsed on a CPU: one part of each kind."""

import json

from benchmarks import gpu_day

KINDS = ("long-5", "graph-5", "forks", "command", "loader", "compiled", "monitor", "operators")


def test_a_rehearsal_answers_each_kind_of_part(tmp_path):
    paths = (tmp_path / "day.json", tmp_path / "day.md")

    gpu_day.main([*KINDS, "ddp"], "cpu", 10, *paths)

    parts = json.loads(paths[0].read_text())["parts"]
    assert {name: part.get("problem") for name, part in parts.items()} == dict.fromkeys(
        [*KINDS, "ddp"]
    )
    assert all(part["told"] in paths[1].read_text().replace("\\|", "|") for part in parts.values())
    assert parts["long-5"]["pairs"] >= 1
    first, second, edited = parts["compiled"]["digests"]
    assert first == second != edited
    assert all(parts["graph-5"][kind]["differences"] for kind in ("launch", "resident"))

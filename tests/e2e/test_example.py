"""examples/repository: as `ci-perf init` writes it, with reports as a check gives them today."""

import re
import shutil
import subprocess

from ci_perf.errors import ExitCode
from ci_perf.gate import first_files
from examples import make_reports

EXAMPLE = make_reports.EXAMPLE
METRIC = (
    'metric = "step_ms=time ([0-9.]+) ms" # the step times that it prints: docs/commands.md\n'
    "skip = 20\n"
)
ENDS = (ExitCode.REGRESSED, ExitCode.OK, ExitCode.NO_ANSWER)
HEADLINES = {
    "red": "❌ Fail (red job): slower: `train`",
    "green": "✅ Pass (green job): no regression",
    "no-answer": "❓ No answer (red job): not comparable with the base: `train`",
}


def test_each_branch_ends_as_its_report_shows(tmp_path, monkeypatch):
    # The lock is apart, so that other tests may measure meanwhile.
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    make_reports.main(tmp_path)  # refuses other exit codes

    for name, headline in HEADLINES.items():
        for folder in (tmp_path, EXAMPLE / "reports"):
            assert (folder / f"{name}.md").read_text("utf-8").startswith(f"### {headline}")
            assert headline.split("`")[0] in (folder / f"{name}.html").read_text("utf-8")
        assert str(tmp_path.parent) not in (tmp_path / f"{name}.md").read_text("utf-8")


def test_the_table_has_the_exit_code_of_each_branch():
    table = (EXAMPLE / "README.md").read_text("utf-8")

    for (name, code), end in zip(make_reports.BRANCHES.items(), ENDS, strict=True):
        assert code == end
        assert re.search(rf"^\| \[{name}\].*\| {code} \|", table, re.MULTILINE)


def test_the_readme_quotes_the_report_of_the_red_branch():
    report = (EXAMPLE / "reports/red.md").read_text("utf-8")
    headline, *_ = report.splitlines()
    (row,) = re.findall(r"^\| ❌ `train` step time .*$", report, re.MULTILINE)

    readme = (EXAMPLE.parents[1] / "README.md").read_text("utf-8")
    assert f"> {headline}\n" in readme
    assert f"> {row}\n" in readme


def test_the_example_is_as_init_writes_it_today(tmp_path):
    shutil.copy(EXAMPLE / "train.py", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    first = first_files.write(tmp_path, action=f"OWNER/ci_perf@{'0' * 40}", device="cpu")

    for path in first.written:
        text = (tmp_path / path).read_text(encoding="utf-8")
        expected = re.sub(r"^# metric = .*\n", lambda _: METRIC, text, flags=re.MULTILINE)
        assert (EXAMPLE / path).read_text(encoding="utf-8") == expected

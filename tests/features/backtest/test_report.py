"""A back-test in words: how many merges moved, which, and what is left."""

from pathlib import Path

from ci_perf.features.backtest import report
from ci_perf.features.backtest.backtested import FILE, MergeOutcome
from ci_perf.features.history import history as history_files
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.explanation import AuthorFunction, Cause, Explanation
from ci_perf.report import phrases, tables
from ci_perf.system import files
from tests.comparisons import a_change
from tests.features.backtest.backtests import SLOWER, a_backtest, a_merge
from tests.features.history.branch_histories import a_branch_history, a_workload_history
from tests.reviewed import assert_all_reviewed

GOLDEN = Path(__file__).parent / "golden/backtests.md"

WHY = Explanation(
    causes=(
        Cause(
            kind="more",
            place=AuthorFunction(file="model.py", function="Model.forward", line=3),
            calls_base=8.0,
            calls_head=16.0,
        ),
    ),
    pairs=3,
)
EXPLAINED = a_change("mlp", verdict=Verdict.REGRESSED, ratio=1.041, explanation=WHY)
COUNTED = a_change(
    "mlp", verdict=Verdict.REGRESSED, metric=metrics.OPERATORS, base=120, head=121, gate=False
)

SHAPES = {
    "what moved comes first, with its cause": a_backtest(
        a_merge(0),
        a_merge(1, MergeOutcome.MOVED, changes=(EXPLAINED, COUNTED)),
        a_merge(2, MergeOutcome.SAME_PROGRAM),
        a_merge(3, MergeOutcome.BROKEN, note="setup of the head: no | compiler"),
        notes=("4 of 4 are commits with one parent: each counts as one",),
    ),
    "a night that ended": a_backtest(
        a_merge(0, MergeOutcome.SUSPECTED, first=(SLOWER,)),
        a_merge(1, MergeOutcome.UNDECIDED, note="mlp: step_time_s is undecided"),
        a_merge(2, MergeOutcome.OPEN),
        ended="budget",
    ),
    "an interrupt, and what was not confirmed": a_backtest(
        a_merge(0, MergeOutcome.UNCONFIRMED, first=(SLOWER,), retest=1),
        a_merge(1, MergeOutcome.FAILED, note="mlp: no such file"),
        a_merge(2, MergeOutcome.FAILED, note="mlp: no such file"),
        ended="interrupted",
    ),
}


def test_the_page_of_a_history_has_the_line_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report.list_history_lines() == []

    files.write(tmp_path / FILE, a_backtest())
    (line,) = report.list_history_lines()
    history = a_branch_history(a_workload_history([1e-3], [1.1e-3]))
    target = history_files.write(history, tmp_path / "page")

    assert phrases.plain(line).startswith("Back-test: 3 merges: 1 same program, 1 unchanged, 1 mo")
    assert "Back-test: " in target.read_text()

    (tmp_path / FILE).write_text("{}")
    assert "backtest.json" in phrases.plain(report.list_history_lines()[0])


def test_all_shapes_are_as_reviewed():
    answers = {shape: tables.markdown(report.build_page(each)) for shape, each in SHAPES.items()}
    assert_all_reviewed(answers, GOLDEN)

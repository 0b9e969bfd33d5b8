import re

import msgspec
import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Code, Interval, Verdict
from ci_perf.model.process import Phase
from ci_perf.model.validity import validity_of
from ci_perf.report import markdown, phrases
from tests import headlines
from tests.comparisons import (
    a_change,
    a_comparison,
    an_uncompared,
)
from tests.runs import a_reason
from tests.unit.report import shapes
from tests.unit.report.parts import an_undecided
from tests.unit.report.rendered import Page


def spaced(text):
    """Read non-breaking spaces as spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def named_rows(report):
    """Return mark and name of every row of the table of all rows."""
    return re.findall(r"^\| ([^\w |:`]+) (`[^|<]+?)(?:<br>[^|]*) \|", report, re.MULTILINE)


def test_rows_stand_worst_first_and_the_unchanged_closest_to_their_limit():
    comparison = a_comparison(
        a_change("far", ratio=1.001),
        a_change("near", ratio=0.96),
        a_change("better", Verdict.IMPROVED, ratio=0.8),
        a_change("bad", Verdict.REGRESSED, ratio=1.1),
        a_change("worse", Verdict.REGRESSED, ratio=1.5),
        a_change("free", Verdict.REGRESSED, ratio=3.0, gate=False),
    )
    names = [name for _, name in named_rows(markdown.render(comparison))]

    assert names == ["`worse`", "`bad`", "`free`", "`better`", "`near`", "`far`"]


def test_a_workload_missing_against_a_run_has_no_baseline_to_delete():
    comparison = shapes.missing()
    base = msgspec.structs.replace(comparison.base, label="base/run.json")

    assert "git rm" not in markdown.render(msgspec.structs.replace(comparison, base=base))


def test_what_to_do_about_what_failed_or_is_missing_is_never_folded():
    rows = [a_change(f"bad{i}", Verdict.REGRESSED, ratio=1.1) for i in range(50)]
    rows += [an_uncompared("conv"), an_uncompared("vit", code="missing")]
    rows += [an_uncompared("gpt", metric="flops", code="missing")]
    seen, _, _ = markdown.render(a_comparison(*rows)).partition("<details>")

    assert "Failed: `conv`" in seen
    assert "Missing, though it has a baseline: `vit`. Restore it" in seen
    assert "Missing, though the base has it: `gpt` FLOPs per step. Restore it" in seen


def test_a_metric_of_a_newer_version_is_shown_as_it_is():
    row = msgspec.structs.replace(a_change(base=3, ratio=1.0), metric="watts")

    assert "| ✅ `mlp`<br>`watts` | 3 |" in markdown.render(a_comparison(row))


@pytest.mark.parametrize("verdict", [Verdict.UNCHANGED, Verdict.REGRESSED, Verdict.FAILED])
def test_a_thousand_workloads_still_fit_into_a_comment(verdict):
    names = [f"workload_with_a_rather_long_name.batch={i}" for i in range(1_000)]
    rows = [a_change(name, verdict, ratio=1.1) for name in names]
    if verdict is Verdict.FAILED:
        rows = [an_uncompared(name, verdict, "r" * 300, output="line\n" * 2_000) for name in names]
    report = markdown.render(a_comparison(*rows))

    assert len(report.encode()) <= markdown.COMMENT_BYTES
    assert "1,000 workloads" in report.splitlines()[2]
    assert " of 1,000 " in report
    assert Page(report).open == []


def test_what_is_folded_makes_room_for_what_is_not():
    regressed = [a_change(f"bad{i}", Verdict.REGRESSED, ratio=1.1) for i in range(50)]
    report = markdown.render(a_comparison(*regressed, *(a_change(f"w{i}") for i in range(900))))

    assert len(report.encode()) <= markdown.COMMENT_BYTES
    assert all(f"| ❌ `bad{i}`<br>" in report for i in range(50))
    assert " of 950 rows shown" in report


def test_a_larger_budget_shows_more():
    rows = [a_change(f"w{i}") for i in range(500)]

    assert "w499" in markdown.render(a_comparison(*rows), max_bytes=2**20)


def test_more_reasons_than_can_be_read_are_counted():
    reasons = tuple(a_reason(f"code_{i}") for i in range(7))
    report = markdown.render(a_comparison(validity=validity_of(reasons)))

    assert report.count("`code_") == 5
    assert "`nothing left` and 2 more" in report


def test_a_reason_that_many_workloads_met_is_one_line_that_names_them():
    reasons = tuple(a_reason(workload=f"w{i}") for i in range(8))
    report = markdown.render(a_comparison(validity=validity_of(reasons)))

    line = "`clocks_held_down` (`w0`): `nothing left`; also `w1`, `w2`, `w3`, `w4`, `w5` and 2 more"
    assert line in report


def test_a_share_that_was_zero_has_a_difference_in_points_and_no_percentage():
    row = a_change(
        verdict=Verdict.REGRESSED, metric=metrics.DATA_WAIT, base=0.0, head=0.3, limit=0.0
    )

    report = spaced(markdown.render(a_comparison(row)))
    assert "| 0 → 30.0 % | **+30.0 points** | \N{EN DASH} |" in report


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(0.3, 3.1, "(no bounds)"), (1.1, 40.0, "[+10.0, +3,900]")]
)
def test_an_interval_is_unknown_where_it_allows_a_large_change_both_ways(low, high, shown):
    row = an_undecided("gpt", interval=Interval(low=low, high=high), pairs=2)

    assert f"| +5.0 % {shown} |" in spaced(markdown.render(a_comparison(row)))


def test_a_new_workload_whose_pairs_answer_has_no_row_of_its_own():
    slower = a_change("fed", Verdict.REGRESSED, ratio=1.38)

    report = markdown.render(a_comparison(slower, an_uncompared("fed", Verdict.NEW)))

    assert named_rows(report) == [("❌", "`fed`")]


def test_what_the_machine_made_fail_shows_its_last_words_and_blames_nobody():
    lost = a_reason("gpu_lost")
    row = an_uncompared("b", note="CUDA error", verdict=Verdict.INCONCLUSIVE, code=Code.UNTRUSTED)
    row = msgspec.structs.replace(row, phase=Phase.TIMED, output="the last words")

    report = markdown.render(a_comparison(row, validity=validity_of((lost,)), exit_code=3))

    assert report.startswith(f"### {headlines.NO_ANSWER}")
    assert "the last words" in report
    assert "💥 `b`" not in report


@pytest.mark.parametrize("metric", [metrics.GRAPH_REPLAYS, metrics.KERNELS])
def test_what_the_base_has_none_of_has_grown_by_a_number_and_no_share(metric):
    row = a_change(metric=metric, verdict=Verdict.IMPROVED, base=0.0, head=4.0, ratio=0.0)

    report = markdown.render(a_comparison(row))

    assert report.splitlines()[0].endswith(f"`mlp` {phrases.metric_title(metric.name)} +4")

import pytest

from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Stale, Verdict, WholeSuite
from ci_perf.report import notices
from tests.comparisons import a_change, a_comparison
from tests.unit.report.parts import a_cleared


def said(*rows, **more):
    return ["".join(phrase) for phrase in notices.list_notices(a_comparison(*rows, **more))]


def test_one_suspect_that_pairs_cleared_is_named():
    (notice,) = said(a_cleared("bert", 1.041), a_change("mlp"))

    assert "1 suspected metric differs from its history, but not from the base" in notice
    assert "bert step time (+4.1 %). The cause is the machine or the baseline" in notice


def test_the_suspect_that_moved_furthest_is_named_first_and_many_are_counted():
    (notice,) = said(*(a_cleared(f"w{i}", 1 + (i - 3) / 100) for i in range(8)))

    assert "8 suspected metrics differ from their history" in notice
    assert "job: w7 step time (+4.0 %), w0 step time (\N{MINUS SIGN}3.0 %)," in notice
    assert " and 3 more." in notice


def test_a_cleared_suspect_of_which_more_is_better_shows_how_itself_has_moved():
    (notice,) = said(a_cleared("ddp", 1.25, metric=metrics.SCALING_EFFICIENCY))

    assert "ddp scaling efficiency (\N{MINUS SIGN}20.0 %)" in notice


def test_a_cleared_metric_that_fails_nobody_stays_in_its_fold():
    assert said(a_cleared("bert", 1.041, gate=False)) == []


@pytest.mark.parametrize(
    ("metric", "ratio", "word"),
    [
        (metrics.STEP_TIME, 0.96, "faster"),
        (metrics.HOST_RSS_PEAK, 1.04, "worse"),
        (metrics.HOST_RSS_PEAK, 0.96, "better"),
    ],
)
def test_only_times_are_slow(metric, ratio, word):
    rows = [a_cleared(f"w{i}", ratio, metric=metric) for i in range(2)]

    (notice,) = said(*rows, stale=Stale(suspects=2, cleared=2, ratio=ratio))

    assert f"are {word} than in the history" in notice


def test_a_suspect_that_moved_the_other_way_is_not_counted_with_the_rest():
    rows = [a_cleared("a", 1.04), a_cleared("b", 1.05), a_cleared("c", 0.95)]

    (notice,) = said(*rows, stale=Stale(suspects=4, cleared=2, ratio=1.045))

    assert "3 of 4 suspected metrics do not differ" in notice
    assert "2 of them are slower" in notice


def test_a_job_that_fails_without_a_proof_says_who_asked_for_that():
    (notice,) = said(a_change(verdict=Verdict.LIKELY_SLOWER, ratio=1.1), exit_code=1)

    assert "Nothing is proven: the job fails because fail_on asks" in notice


def test_the_whole_suite_is_shown_where_a_time_has_no_answer():
    whole = WholeSuite(
        workloads=12, pairs=60, ratio=1.004, interval=Interval(low=0.989, high=1.019)
    )
    undecided = a_change(verdict=Verdict.INCONCLUSIVE, code="spread")

    (notice,) = said(undecided, whole_suite=whole)

    assert "The whole suite: +0.4 % [" in notice
    assert "the mean of the 12 workloads that were launched in 60 pairs" in notice
    assert said(a_change(), whole_suite=whole) == []

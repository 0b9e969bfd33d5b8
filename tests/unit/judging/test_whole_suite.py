"""One number for the whole suite: it answers where no single workload does."""

import random

import pytest

from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limits
from tests.histories import a_pair, in_turns, judged
from tests.runs import CPU, a_measured, a_run


def whole(sizes, *, spread, count=18, seed=0, **options):
    """Workloads whose heads take so many times as long, and what is said of all of them."""
    draw = random.Random(seed)
    run = a_run(*(a_measured(f"w{i}", 1.0) for i in range(len(sizes))))
    for i, size in enumerate(sizes):
        launched = [
            a_pair(draw.lognormvariate(0, spread), size * draw.lognormvariate(0, spread))
            for _ in range(count)
        ]
        run = in_turns(run, launched, workload=f"w{i}")
    return judged((), run, **options)


def test_the_mean_over_workloads_lies_in_its_interval():
    found = whole([1.1, 1.0], spread=1e-4).whole_suite

    assert found.ratio == pytest.approx((1.1 * 1.0) ** 0.5, rel=1e-3)
    assert found.interval.low < found.ratio < found.interval.high
    assert (found.workloads, found.pairs) == (2, 36)


def test_it_is_narrower_than_the_row_of_any_workload_and_alone_fails_no_job():
    comparison = whole([1.0] * 12, spread=0.04)
    found = comparison.whole_suite

    rows = [row for row in comparison.rows if row.metric == "step_time_s"]
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert found.interval.high - found.interval.low < 0.4 * min(
        row.interval.high - row.interval.low for row in rows
    )
    assert comparison.verdict is not Verdict.REGRESSED


def test_the_truth_lies_in_the_interval_as_often_as_it_promises():
    ends = [whole([1.0] * 3, spread=0.05, count=6, seed=seed).whole_suite for seed in range(100)]

    inside = sum(found.interval.low <= 1 <= found.interval.high for found in ends)
    assert inside >= 88


def test_the_time_by_the_wall_speaks_where_cpu_time_gates_too():
    cpu = {"cpu_s": (0.5,) * 5}
    run = a_run(*(a_measured(name, 1.0, timed=cpu) for name in "ab"))
    for name in "ab":
        launched = [
            a_pair(1.0, 1.5, base={"timed": cpu}, timed={"cpu_s": (0.5 * factor,) * 5})
            for factor in (1.0, 1.001, 0.999)
        ]
        run = in_turns(run, launched, workload=name)

    limits = Limits(default=default_limits(CPU))
    assert judged((), run, limits=limits).whole_suite.ratio == pytest.approx(1.5, abs=1e-3)


def test_a_single_workload_is_no_suite():
    assert whole([1.0], spread=0.01).whole_suite is None
    assert whole([1.0, 1.0], spread=0.01, count=1).whole_suite is None

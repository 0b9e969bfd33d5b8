import pytest

from ci_perf.errors import ExitCode
from ci_perf.judge import canaries
from ci_perf.judge.limits import defaults
from ci_perf.model import validity as validities
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.validity import Status
from tests.comparisons import judged
from tests.runs import (
    GPU,
    SLOW,
    STEADY,
    a_device_memory,
    a_measured,
    a_run,
    an_environment,
    some_canaries,
)


def a_slow_pair(before, after):
    """The same workload at full and at half its speed, with these canaries around each."""
    return (
        a_run(a_measured("a", *STEADY, device=a_device_memory()), canaries=before),
        a_run(a_measured("a", *SLOW, device=a_device_memory()), canaries=after),
    )


def found(comparison):
    return {row.metric: (row.verdict, row.code) for row in comparison.rows}


@pytest.mark.parametrize("factor", [1.04, 1 / 1.04])
def test_when_the_canary_moved_no_time_is_judged(factor):
    comparison = judged(*a_slow_pair(some_canaries(), some_canaries(before=factor * 1e-3)))

    rows = found(comparison)
    assert rows["step_time_s"] == (Verdict.INCONCLUSIVE, "canary_moved")
    assert rows["first_step_s"] == (Verdict.INCONCLUSIVE, "canary_moved")
    assert rows["peak_allocated_bytes"] == (Verdict.UNCHANGED, "within_limit")
    assert rows["host_rss_peak_bytes"] == (Verdict.UNCHANGED, "screened")
    assert comparison.exit_code == ExitCode.OK


@pytest.mark.parametrize("head", [STEADY, [s / 2 for s in STEADY]])
def test_what_looks_no_slower_on_a_machine_that_moved_is_inconclusive(head):
    base = a_run(a_measured("a", *STEADY), canaries=some_canaries())
    comparison = judged(base, a_run(a_measured("a", *head), canaries=some_canaries(before=1.04e-3)))

    assert found(comparison)["step_time_s"] == (Verdict.INCONCLUSIVE, "canary_moved")
    assert comparison.exit_code == ExitCode.OK


def test_the_comparison_says_which_canary_moved_by_how_much():
    comparison = judged(*a_slow_pair(some_canaries(), some_canaries(before=1.084e-3)))

    (reason,) = comparison.validity.reasons
    assert (reason.code, reason.workload) == ("canary_moved", "")
    assert reason.detail == "matmul took 8.4 % more time than in the session of 2026-11-21"
    assert comparison.validity.status is Status.DEGRADED


def test_a_canary_within_its_limit_leaves_the_suspicion():
    comparison = judged(*a_slow_pair(some_canaries(), some_canaries(before=1.02e-3)))

    assert found(comparison)["step_time_s"] == (Verdict.UNCONFIRMED, "assumed")
    assert comparison.validity.status is Status.VALID


def test_a_canary_that_drifts_during_the_run_is_no_better():
    comparison = judged(*a_slow_pair((), some_canaries(after=1.05e-3)))

    assert found(comparison)["step_time_s"] == (Verdict.INCONCLUSIVE, "canary_moved")
    (reason,) = comparison.validity.reasons
    assert reason.detail == (
        "matmul took 5.0 % more time at the end of this run than at its beginning"
    )


def test_a_faster_machine_is_said_in_time_as_every_row_of_a_time_is():
    comparison = judged(*a_slow_pair(some_canaries(), some_canaries(before=0.49e-3)))

    (reason,) = comparison.validity.reasons
    assert reason.detail == "matmul took 51.0 % less time than in the session of 2026-11-21"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), ()),
        ((), some_canaries()),
        (some_canaries(), ()),
        (some_canaries(), some_canaries(before=9.0, name="copy")),
    ],
    ids=["none", "head only", "base only", "others"],
)
def test_without_a_canary_on_both_sides_there_is_no_gate(before, after):
    comparison = judged(*a_slow_pair(before, after))

    assert found(comparison)["step_time_s"] == (Verdict.UNCONFIRMED, "assumed")


def test_a_canary_never_corrects_a_number():
    quiet = judged(*a_slow_pair((), ()))
    moved = judged(*a_slow_pair(some_canaries(), some_canaries(before=2e-3)))

    ratios = [{row.metric: row.ratio for row in one.rows} for one in (quiet, moved)]
    assert ratios[0] == ratios[1]


def test_a_suite_may_widen_the_gate_or_only_look():
    pair = a_slow_pair(some_canaries(), some_canaries(before=1.08e-3))
    wide = Limits(default={**defaults(), "canary": Limit(relative=0.1)})
    look = Limits(default={**defaults(), "canary": Limit(relative=0.03, gate=False)})

    assert judged(*pair, limits=wide).validity.reasons == ()
    looked = judged(*pair, limits=look)
    (reason,) = looked.validity.reasons
    assert (reason.code, reason.status) == ("canary_moved_no_gate", Status.DEGRADED)
    assert found(looked)["step_time_s"][0] is Verdict.UNCONFIRMED


def test_only_the_workloads_that_met_it_are_named():
    """Each baseline has its own sessions, so the machine may have moved since some of them only."""
    base = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY), canaries=some_canaries())
    head = a_run(
        a_measured("a", *SLOW), a_measured("b", *SLOW), canaries=some_canaries(before=1.08e-3)
    )
    limits = Limits(
        default=defaults(), workloads={"b": {**defaults(), "canary": Limit(relative=0.5)}}
    )
    comparison = judged(base, head, limits=limits)

    assert [reason.workload for reason in comparison.validity.reasons] == ["a"]
    verdicts = {r.workload: r.verdict for r in comparison.rows if r.metric == "step_time_s"}
    assert verdicts == {"a": Verdict.INCONCLUSIVE, "b": Verdict.UNCONFIRMED}


def test_canaries_of_another_machine_say_nothing_about_this_one():
    base = a_run(a_measured("a", *STEADY), canaries=some_canaries())
    head = a_run(
        a_measured("a", *STEADY),
        canaries=some_canaries(before=1e-5),
        environment=an_environment(hard=GPU),
    )

    assert judged(base, head).validity.reasons == ()


def test_a_baseline_keeps_the_median_of_each_canary():
    between = [
        validities.Canary(name="matmul", position="between", median_s=s) for s in (9.0, 2.0, 2.0)
    ]
    readings = (*some_canaries(before=1.0, after=3.0), *between)

    assert canaries.medians((*readings, *some_canaries(before=0.5, name="copy"))) == {
        "matmul": 2.0,
        "copy": 0.5,
    }


def test_a_burst_in_the_middle_is_no_drift():
    """It widens the spread of the processes that met it, and the interval sees that."""
    burst = validities.Canary(name="matmul", position="between", median_s=2e-3)
    comparison = judged(*a_slow_pair((), (*some_canaries(), burst)))

    assert comparison.validity.reasons == ()

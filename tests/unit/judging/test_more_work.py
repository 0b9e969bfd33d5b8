"""A history clears a step that does more work only where it excludes a loss of half the limit."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import an_interleaved
from tests.histories import a_pair, in_turns, judged, row_of, said, scaled, sessions_of, undecided
from tests.runs import MIB, STEADY, a_measured, a_run

# A history clears a head that is 7 % slower, as far as it knows that this is no loss of 15 %.
WIDE = Limits(default=default_limits() | {"step_time_s": Limit(relative=0.15)})
HISTORY = sessions_of(operators=560)


def slower(ratio=1.07, **counts):
    """A run that takes so many times as long, with these counts."""
    return a_run(a_measured("w", *scaled(STEADY, ratio), **counts))


@pytest.mark.parametrize(
    "counts", [{"operators": 560}, {"operators": 420}, {}], ids=["same", "fewer", "not counted"]
)
def test_a_history_clears_a_step_that_does_no_more_work(counts):
    comparison = judged(HISTORY, slower(**counts), limits=WIDE)

    assert said(comparison) == (Verdict.UNCHANGED, "within_limit")
    assert undecided(HISTORY, slower(**counts), WIDE) == ((), 0)


@pytest.mark.parametrize("metric", ["operators", "flops", "graphs"])
def test_a_history_does_not_clear_a_step_of_which_a_count_has_grown(metric):
    history, head = sessions_of(**{metric: 560}), slower(**{metric: 762})

    comparison = judged(history, head, limits=WIDE)

    assert said(comparison) == (Verdict.INCONCLUSIVE, "spread")
    assert undecided(history, head, WIDE) == (("w",), 1)


def test_it_clears_more_work_that_costs_less_than_half_the_limit():
    comparison = judged(HISTORY, slower(1.02, operators=762), limits=WIDE)

    assert said(comparison) == (Verdict.UNCHANGED, "within_limit")


def test_it_clears_what_more_work_does_not_slow():
    wide = Limits(default=WIDE.default | {"host_rss_peak_bytes": Limit(relative=0.15)})

    comparison = judged(HISTORY, slower(operators=762, rss=320 * MIB), limits=wide)

    assert said(comparison, "host_rss_peak_bytes") == (Verdict.UNCHANGED, "within_limit")
    assert comparison.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("ratio", "verdict", "exit_code"),
    [(1.2, Verdict.REGRESSED, ExitCode.REGRESSED), (1.02, Verdict.UNCHANGED, ExitCode.OK)],
)
def test_the_pairs_answer_instead(ratio, verdict, exit_code):
    turns = [
        a_pair(1e-3, 1e-3 * ratio * noise, base={"operators": 560}, operators=762)
        for noise in (0.999, 1.001, 1.0) * 6
    ]

    comparison = judged(HISTORY, in_turns(slower(operators=762), turns), limits=WIDE)

    assert row_of(comparison).verdict is verdict
    assert comparison.exit_code == exit_code


def test_a_history_may_still_accuse_a_step_that_does_more_work():
    comparison = judged(HISTORY, slower(1.3, operators=762), limits=WIDE)

    assert said(comparison) == (Verdict.LIKELY_SLOWER, "history_alone")


def test_what_was_accepted_is_judged_by_its_history_alone():
    accepted = an_interleaved(accepted={"w": ("step_time_s",)}, suspects=0)
    head = msgspec.structs.replace(slower(operators=762), interleaved=accepted)

    assert said(judged(HISTORY, head, limits=WIDE)) == (Verdict.UNCHANGED, "within_limit")


def test_another_workload_keeps_its_history():
    history = [
        a_run(a_measured("v", *STEADY, operators=9), a_measured("w", *STEADY, operators=560))
        for _ in range(4)
    ]
    head = a_run(a_measured("v", *STEADY, operators=9), a_measured("w", *STEADY, operators=762))

    comparison = judged(history, head)

    assert said(comparison, workload="v") == (Verdict.UNCHANGED, "within_limit")
    assert said(comparison)[1] == "spread"

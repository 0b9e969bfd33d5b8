"""Runs of commits that were measured before: what their pairs say together."""

import msgspec
import pytest

from ci_perf.judging import compare as judge
from ci_perf.judging import earlier_checks, summarise
from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Checks, Source
from ci_perf.model.suite import Limits, Tiers
from ci_perf.model.validity import validity_of
from tests.comparisons import a_change, a_comparison, an_interleaved
from tests.confirmations import a_confirmation
from tests.histories import (
    HISTORY,
    SLOWER,
    a_head,
    in_turns,
    judged,
    no_history,
    pairs,
    row_of,
    said,
    undecided,
)
from tests.runs import GPU, STEADY, a_measured, a_reason, a_run, an_environment


def an_offer(run):
    return Offered(run=run, comparison=judged(HISTORY, run), label="first.json")


def after(first, again, *, checks=None):
    """The run `again`, which was measured when `first` was known."""
    return Before(checks=checks, offered=[an_offer(first)]).joined(again)


def run_of(ratio, *, number=1, head=STEADY, count=6, spread=0.001):
    return in_turns(
        a_head(head, id=f"run{number}"), pairs(ratio, count=count, spread=spread), suspects=1
    )


def test_running_again_does_not_take_a_regression_back():
    again = after(run_of(1.1, head=SLOWER), run_of(1.0, number=2, count=0))

    comparison = judged(HISTORY, again)

    assert said(comparison) == (Verdict.REGRESSED, "beyond_limit")
    assert (row_of(comparison).pairs, row_of(comparison).earlier_pairs) == (6, 6)
    assert comparison.exit_code == 1
    assert comparison.spending.earlier == {"run1": ("w",)}


def test_it_is_asked_again_although_its_history_clears_it_today():
    again = after(run_of(1.1, head=SLOWER), a_started(number=2))

    assert undecided(HISTORY, again) == (("w",), 1)


def a_started(*, number):
    """A run of which no pair has been launched yet."""
    run = in_turns(a_head(id=f"run{number}"), (), suspects=0)
    return msgspec.structs.replace(run, paired=())


def test_the_pairs_of_both_runs_together_take_it_back():
    # By chance the first six pairs showed 2.1 %; the truth is nothing, which 18 more show.
    first = run_of(1.021, count=6, spread=0.002)
    assert said(judged([], first)) == (Verdict.REGRESSED, "beyond_limit")
    again = Before(offered=[Offered(run=first, comparison=judged([], first), label="")]).joined(
        run_of(0.9999, number=2, count=18, spread=0.002)
    )

    comparison = judged([], again)

    assert said(comparison) == (Verdict.UNCHANGED, "within_limit")
    assert row_of(comparison).pairs > row_of(comparison).earlier_pairs == 6


def test_both_runs_together_prove_what_neither_could():
    spread = 0.04
    first = run_of(1.024, count=18, spread=spread)
    again = run_of(1.024, number=2, count=18, spread=spread)
    assert {said(judged([], run))[0] for run in (first, again)} == {Verdict.INCONCLUSIVE}

    known = Offered(run=first, comparison=judged([], first), label="")
    comparison = judged([], Before(offered=[known]).joined(again))

    assert said(comparison) == (Verdict.REGRESSED, "beyond_limit")
    assert row_of(comparison).pairs > 18


def test_pairs_of_a_workload_that_was_not_trusted_say_nothing_in_a_later_run():
    slower = msgspec.structs.replace(
        run_of(1.1, head=SLOWER), validity=validity_of((a_reason("foreign_memory", "w"),))
    )
    again = after(slower, run_of(1.1, number=2, head=SLOWER, count=3))

    assert again.earlier == ()
    assert said(judged(HISTORY, again))[0] is Verdict.LIKELY_SLOWER


@pytest.mark.parametrize(("ratio", "names"), [(1.1, {"w"}), (1.0, set())])
def test_it_is_known_whom_pairs_of_the_same_head_have_proven_to_move(ratio, names):
    run = run_of(ratio, head=SLOWER)
    before = Before(offered=[an_offer(run)])

    assert before.moved(run.source) == names
    assert before.moved(Source(commit="c" * 40, branch="b", dirty=False)) == set()


def test_as_many_pairs_are_expected_as_the_looks_of_a_later_run_still_allow():
    first = run_of(1.021, count=18, spread=0.5)
    again = after(first, run_of(1.021, number=2, count=2, spread=0.5))

    undecided, _ = judge.find_undecided(
        no_history(again),
        summarise.run(again, label=""),
        limits=Limits(default=default_limits()),
        tiers=Tiers(),
    )
    assert undecided["w"] == 36 - 20


def test_what_was_cleared_by_pairs_is_not_launched_again():
    again = after(run_of(1.0, head=SLOWER), a_started(number=2))

    assert undecided(HISTORY, again)[0] == ()
    assert said(judged(HISTORY, again))[0] is Verdict.UNCHANGED


def test_a_third_run_knows_the_pairs_of_both_others_once():
    first = run_of(1.1, head=SLOWER)
    second = after(first, run_of(1.1, number=2, head=SLOWER))
    both = [an_offer(first), an_offer(second)]

    third = Before(offered=both).joined(a_started(number=3))

    assert [earlier.run for earlier in third.earlier] == ["run1", "run2"]
    assert third.check == 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"source": Source(commit="c" * 40, branch="b", dirty=False)}, "expected the head"),
        ({"source": Source(commit="unknown", branch="b", dirty=False)}, "found unknown"),
        ({"environment": an_environment(hard=GPU)}, "another machine"),
        ({"environment": an_environment(torch="1.0")}, "other software"),
        ({"suite": "standard"}, "expected suite 'smoke', found 'standard'"),
        ({"interleaved": None, "paired": ()}, "no base was launched"),
        (
            {"interleaved": an_interleaved(source=Source(commit="d" * 40, branch="", dirty=False))},
            "expected the base",
        ),
        ({"id": "run2"}, "it is the same run"),
    ],
)
def test_a_run_of_something_else_is_left_alone_and_the_report_says_why(change, why):
    other = msgspec.structs.replace(run_of(1.1, head=SLOWER), **change)

    again = after(other, a_started(number=2))

    assert again.earlier == ()
    (note,) = again.interleaved.notes
    assert note.startswith("first.json: its pairs are left alone: ")
    assert why in note


def test_a_workload_with_other_parameters_keeps_no_pairs():
    again = in_turns(a_run(a_measured("w", *STEADY, parameters={"n": 2}), id="run2"), ())

    joined = after(run_of(1.1, head=SLOWER), again)

    assert [earlier.paired for earlier in joined.earlier] == [()]


def test_a_run_that_launched_no_pair_is_no_check_before_this_one():
    again = after(a_started(number=1), a_started(number=2))

    assert (again.earlier, again.check, judged(HISTORY, again).spending) == ((), None, None)


def test_the_number_of_a_check_counts_pull_request_and_runs():
    alone = run_of(1.0)
    assert alone.check is None
    assert msgspec.structs.replace(alone, checks=Checks(before=None)).check is None
    assert msgspec.structs.replace(alone, checks=Checks(before=4)).check == 5
    assert after(alone, run_of(1.0, number=2), checks=Checks(before=4)).check == 5
    assert after(alone, run_of(1.0, number=2)).check == 2


def test_a_later_check_needs_a_clearer_difference():
    barely = run_of(1.0195, count=18, spread=0.012)
    late = msgspec.structs.replace(barely, checks=Checks(before=99))

    assert said(judged([], barely))[0] is Verdict.REGRESSED
    assert said(judged([], late))[0] is Verdict.LIKELY_SLOWER
    assert judged([], late).spending.share == pytest.approx(earlier_checks.share(100))


def test_a_check_of_an_unknown_number_spends_everything_and_says_so():
    known = judged([], msgspec.structs.replace(run_of(1.1), checks=Checks(before=None)))

    assert (known.spending.check, known.spending.share) == (None, 1.0)
    assert judged([], run_of(1.1)).spending is None


def test_pairs_of_an_earlier_run_are_not_looked_at_again():
    confirmation = a_confirmation(earlier=(6,))

    outcomes = [confirmation.add(0.1 + 0.001 * (i % 2)) for i in range(9)]

    assert [bool(outcome) for outcome in outcomes] == [False] * 8 + [True]
    assert outcomes[-1].call == "regressed"


def test_sessions_that_differ_do_not_hide_that_pairs_lack_spread():
    """Both sides were 30 % slower in the second run, and equal launches show no mode."""
    usual = 1e-4
    confirmation = a_confirmation(earlier=(6,), usual_variance=usual)
    for base in (0.0,) * 6 + (0.3,) * 5:
        confirmation.add(0.02, base=base)

    assert confirmation.alarm_spread() == pytest.approx(usual**0.5)


def test_a_summary_keeps_pairs_of_a_workload_that_had_none_today():
    (subject,) = summarise.run(after(run_of(1.1), a_head(id="run2")), label="").subjects
    assert subject.paired is None  # no base was launched: nothing is joined

    (subject,) = summarise.run(after(run_of(1.1), a_started(number=2)), label="").subjects
    assert subject.paired is not None
    assert [len(earlier.pairs) for earlier in subject.paired.earlier] == [6]


def test_what_pairs_have_said_leaves_out_what_history_said():
    assert earlier_checks.said_by_pairs(judged(HISTORY, a_head(SLOWER))) == {}
    verdicts = earlier_checks.said_by_pairs(judged(HISTORY, run_of(1.1, head=SLOWER)))["w"]
    assert verdicts == {"step_time_s": "regressed", "step_p95_s": "regressed"}


def test_pairs_of_a_machine_that_cannot_be_trusted_have_said_nothing():
    """They would take back what an earlier run has proven."""
    row = a_change("w", Verdict.INCONCLUSIVE, code="untrusted", pairs=6)

    assert earlier_checks.said_by_pairs(a_comparison(row)) == {}

"""Screen and confirmation, as they meet in a comparison."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging.policy import LOOKS, default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import an_interleaved
from tests.histories import (
    HISTORY,
    SLOWER,
    a_head,
    a_pair,
    in_turns,
    judged,
    pairs,
    row_of,
    said,
    scaled,
    undecided,
)
from tests.runs import (
    GPU,
    MIB,
    STEADY,
    a_measured,
    a_run,
    an_environment,
    some_canaries,
)

PROVEN = (Verdict.REGRESSED, "beyond_limit")
LIKELY = (Verdict.LIKELY_SLOWER, "history_alone")
MOVED = (Verdict.INCONCLUSIVE, "machine_moved")
WITHIN = (Verdict.UNCHANGED, "within_limit")
CLOSE = [a_pair(1e-3, s) for s in (1.03e-3, 1.0451e-3, 1.0583e-3) * 2]


# What history and pairs say is the table of test_samples.py; here are pairs and exit codes.
@pytest.mark.parametrize(
    ("history", "head", "said", "pairs", "code"),
    [
        (HISTORY, a_head(), WITHIN, 0, ExitCode.OK),
        (HISTORY, a_head(SLOWER), LIKELY, 0, ExitCode.NO_ANSWER),
        (HISTORY, in_turns(a_head(SLOWER), pairs(1.1)), PROVEN, LOOKS[0], ExitCode.REGRESSED),
        # One session suspects by the usual spread and blames nobody.
        (HISTORY[:1], a_head(scaled(STEADY, 1.5)), LIKELY, 0, ExitCode.NO_ANSWER),
    ],
)
def test_a_row_has_its_pairs_and_the_comparison_an_exit_code(history, head, said, pairs, code):
    comparison = judged(history, head)

    row = row_of(comparison)
    assert (row.verdict, row.code, row.pairs) == (*said, pairs)
    assert (comparison.verdict, comparison.exit_code) == (row.verdict, code)


def test_pairs_that_show_nothing_clear_it_and_say_how_far_the_machine_has_moved():
    moved = in_turns(a_head(SLOWER), pairs(1.0, base_s=1.1e-3))
    comparison = judged(HISTORY, moved)

    assert said(comparison) == (Verdict.UNCHANGED, "baseline_moved")
    assert row_of(comparison).drift == pytest.approx(1.1, abs=0.002)
    assert row_of(comparison).base == pytest.approx(1.1e-3)
    assert comparison.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("proven", (1, 3, 3, 3, 0)),
        ("likely", (1, 1, 1, 3, 0)),
        ("unanswered", (1, 1, 1, 1, 1)),
        ("never", (0, 0, 0, 0, 0)),
    ],
)
def test_a_suite_says_what_fails(fail_on, codes):
    heads = (
        in_turns(a_head(SLOWER), pairs(1.1)),
        a_head(SLOWER),
        in_turns(a_head(SLOWER), pairs(1.1, count=1)),
        in_turns(a_head(SLOWER), pairs(1.01, count=1)),
        in_turns(a_head(scaled(STEADY, 1.015)), pairs(1.01, count=1)),
    )

    assert tuple(judged(HISTORY, one, fail_on=fail_on).exit_code for one in heads) == codes


def test_without_any_baseline_pairs_decide_and_the_workload_is_new_all_the_same():
    comparison = judged([], in_turns(a_head(SLOWER), pairs(1.1, rss=301 * MIB)))

    assert said(comparison) == PROVEN
    assert row_of(comparison).base_sessions == 0
    new = row_of(comparison, metric="")
    assert (new.code, new.head) == ("new", {}), "the pairs have the numbers"
    assert row_of(judged([], a_head(SLOWER)), metric="").head["step_time_s"] > 0


def test_pairs_answer_where_the_history_is_of_another_machine():
    head = a_head(SLOWER, environment=an_environment(hard=GPU))

    alone, beside = judged(HISTORY, head), judged(HISTORY, in_turns(head, pairs(1.1)))

    assert alone.exit_code == ExitCode.NO_ANSWER
    assert said(beside) == PROVEN
    unfit = next(row for row in beside.rows if row.verdict is Verdict.INCONCLUSIVE)
    assert not unfit.gate


def test_when_the_machine_moved_history_clears_nobody_and_pairs_do():
    history = [a_head(canaries=some_canaries()) for _ in range(3)]
    head = a_head(canaries=some_canaries(before=1.2e-3))

    assert said(judged(history, head)) == MOVED
    assert said(judged(history, in_turns(head, pairs(1.0)))) == WITHIN
    assert said(judged(history, in_turns(head, pairs(1.1)))) == PROVEN


def test_pairs_that_decide_nothing_say_what_would():
    """As many pairs as a look has, and after the last one a quieter machine or a wider limit."""
    few = row_of(judged(HISTORY, in_turns(a_head(SLOWER), pairs(1.08, count=7, spread=0.05))))
    wild = in_turns(a_head(SLOWER), pairs(1.015, spread=0.1))
    row = row_of(judged(HISTORY, wild))

    assert few.verdict is row.verdict is Verdict.INCONCLUSIVE
    assert few.remedy.pairs in LOOKS[1:]
    assert (row.pairs, row.remedy.pairs) == (LOOKS[-1], None)
    assert row.remedy.quiet_spread < row.remedy.spread
    assert row.remedy.spread < 1
    assert row.remedy.limit > row.limit

    for factor, verdict in ((0.9, Verdict.INCONCLUSIVE), (1.001, Verdict.UNCHANGED)):
        limit = Limit(relative=factor * row.remedy.limit)
        limits = Limits(default={**default_limits(), "step_time_s": limit})
        assert said(judged(HISTORY, wild, limits=limits))[0] is verdict


def test_every_judged_row_says_what_it_could_have_seen():
    comparison = judged(HISTORY, in_turns(a_head(SLOWER), pairs(1.1)))

    assert all(row.smallest_detectable is not None for row in comparison.rows)
    assert row_of(comparison).limit <= row_of(comparison).smallest_detectable < 0.1  # the loss


# --- alpha


@pytest.mark.parametrize(
    ("workloads", "suspects", "verdict"),
    [
        (100, 1, Verdict.REGRESSED),
        (100, 100, Verdict.LIKELY_SLOWER),
        (1, 2**60, Verdict.REGRESSED),  # whatever run.json claims: there is one number
    ],
)
def test_those_who_share_the_chance_of_a_false_alarm_were_counted_before_the_first_pair(
    workloads, suspects, verdict
):
    """What six pairs just prove alone, they do not prove as one of a hundred suspects."""
    suite = a_run(*(a_measured(f"w{i}", *SLOWER) for i in range(workloads)))
    head = in_turns(suite, CLOSE, workload="w0", suspects=suspects)

    assert said(judged([], head), workload="w0")[0] is verdict


def test_most_of_the_chance_is_spent_on_the_side_where_the_screen_saw_the_head():
    clear = pairs(1.1, count=6, spread=0.01)
    slower, faster = (
        row_of(judged(HISTORY, in_turns(a_head(scaled(STEADY, by)), clear))).interval
        for by in (1.1, 0.9)
    )

    assert slower.low > faster.low
    assert slower.high > faster.high


def test_a_canary_that_moves_at_the_end_takes_no_proof_back():
    """Nobody is cleared by history any more; who never had a pair shares no chance of an alarm."""
    names = [f"w{i}" for i in range(20)]
    history = [
        a_run(*(a_measured(n, *scaled(STEADY, day)) for n in names), canaries=some_canaries())
        for day in (1.0, 1.002, 0.999, 1.001, 0.998, 1.0)
    ]

    def head(after):
        slower = (a_measured(n, *(SLOWER if n == "w0" else STEADY)) for n in names)
        run = a_run(*slower, canaries=some_canaries(after=after))
        return in_turns(run, CLOSE, workload="w0")

    steady, moved = (judged(history, head(after)) for after in (1e-3, 1.05e-3))
    assert said(steady, workload="w0") == said(moved, workload="w0") == PROVEN
    assert said(moved, workload="w1") == MOVED


def test_a_cleared_workload_takes_no_chance_from_a_suspect_even_if_it_had_pairs():
    measured = [a_measured(name, *STEADY) for name in ("w", "same")]
    history = [a_run(*measured)] * 6
    head = in_turns(a_run(a_measured("w", *SLOWER), measured[1]), pairs(1.1, spread=0.05))
    both = in_turns(head, pairs(1.0), workload="same")

    sizes = [row_of(judged(history, run)).smallest_detectable for run in (head, both)]

    assert sizes[0] == sizes[1] > row_of(judged(history, head)).limit


def test_what_does_not_gate_takes_no_chance_from_what_does():
    """Step times are one suspect of two that gate; the tails and first steps do not count."""
    _, suspects = undecided([], a_head(SLOWER))

    assert suspects == 2  # step time and host memory


# --- the base


def test_a_base_that_cannot_be_launched_is_said_and_blames_nobody():
    close = in_turns(a_head(scaled(STEADY, 1.03)), trouble="ImportError: no such thing")
    row = row_of(judged(HISTORY[:1], close))

    assert (row.verdict, row.code) == (Verdict.INCONCLUSIVE, "base_failed")
    assert row.note == "ImportError: no such thing"


def test_a_base_that_ran_its_own_file_is_marked():
    own = in_turns(a_head(SLOWER), pairs(1.1), file="base")

    assert row_of(judged(HISTORY, own)).own_file


def test_the_base_that_was_launched_says_what_was_computed_before():
    """The committed fingerprint is of older software; the base's own process is of today's."""
    history = [a_run(a_measured("w", *STEADY, losses=(1.0,)))] * 3
    head = a_run(a_measured("w", *SLOWER, losses=(2.0,)))
    same = pairs(1.1, losses=(2.0,), base={"losses": (2.0,)})

    codes = {row.code for row in judged(history, in_turns(head, same)).rows}
    assert "within_limit" in codes
    assert "numerics_changed" not in codes


# --- what the change has accepted


def accepting(head, *metrics):
    return msgspec.structs.replace(
        head, interleaved=an_interleaved(accepted={"w": metrics}, suspects=0)
    )


# One session is too young to clear anybody, and pairs would only show what was accepted.
YOUNG = a_head(SLOWER, canaries=some_canaries())


@pytest.mark.parametrize("canary_s", [1e-3, 1.1e-3], ids=["steady", "moved"])
@pytest.mark.parametrize(("by", "is_green"), [(1.1, True), (2.0, False), (3.3, False)])
def test_what_this_change_has_accepted_is_green_near_its_baseline(by, canary_s, is_green):
    """Also on a machine that moved; beyond, it is suspected all the same."""
    head = a_head(scaled(STEADY, by), canaries=some_canaries(before=canary_s))

    comparison = judged([YOUNG], accepting(head, "step_time_s"))

    assert (said(comparison) == (Verdict.UNCHANGED, "accepted")) is is_green
    assert comparison.exit_code == (ExitCode.OK if is_green else ExitCode.NO_ANSWER)
    assert said(judged([YOUNG], in_turns(a_head(SLOWER), pairs(1.1)))) == PROVEN


def test_no_pair_is_launched_for_what_this_change_has_accepted():
    limits = Limits(default={"step_time_s": Limit(relative=0.02)})

    assert undecided([a_head(SLOWER)], accepting(a_head(SLOWER), "step_time_s"), limits) == ((), 0)

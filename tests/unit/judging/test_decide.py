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
    a_gpu_evidence,
    a_measured,
    a_run,
    an_environment,
    an_evidence,
    some_canaries,
)


def test_a_head_like_its_history_is_cleared_without_a_single_pair():
    comparison = judged(HISTORY, a_head())

    assert said(comparison) == (Verdict.UNCHANGED, "within_limit")
    assert row_of(comparison).pairs == 0
    assert comparison.exit_code == ExitCode.OK


def test_a_slower_head_is_suspected_and_neither_green_nor_blamed_without_pairs():
    comparison = judged(HISTORY, a_head(SLOWER))

    assert said(comparison) == (Verdict.LIKELY_SLOWER, "history_alone")
    assert (comparison.verdict, comparison.exit_code) == (Verdict.LIKELY_SLOWER, ExitCode.NO_ANSWER)


def test_pairs_that_agree_confirm_it():
    comparison = judged(HISTORY, in_turns(a_head(SLOWER), pairs(1.1)))

    assert said(comparison) == (Verdict.REGRESSED, "beyond_limit")
    assert row_of(comparison).pairs == LOOKS[0]
    assert row_of(comparison).ratio == pytest.approx(1.1, abs=0.002)
    assert comparison.exit_code == ExitCode.REGRESSED


def test_pairs_that_show_nothing_clear_it_and_say_how_far_the_machine_has_moved():
    moved = in_turns(a_head(SLOWER), pairs(1.0, base_s=1.1e-3))
    comparison = judged(HISTORY, moved)

    assert said(comparison) == (Verdict.UNCHANGED, "baseline_moved")
    assert row_of(comparison).drift == pytest.approx(1.1, abs=0.002)
    assert row_of(comparison).base == pytest.approx(1.1e-3)
    assert comparison.exit_code == ExitCode.OK


def test_what_history_clears_its_pairs_cannot_blame():
    assert said(judged(HISTORY, in_turns(a_head(), pairs(1.1)))) == (
        Verdict.UNCHANGED,
        "within_limit",
    )


def test_one_session_suspects_by_the_usual_spread_and_blames_nobody():
    comparison = judged(HISTORY[:1], a_head(scaled(STEADY, 1.5)), fail_on="likely")

    assert said(comparison) == (Verdict.LIKELY_SLOWER, "history_alone")
    assert comparison.exit_code == ExitCode.NO_ANSWER


def test_one_session_that_is_not_far_away_decides_nothing():
    assert said(judged(HISTORY[:1], a_head())) == (Verdict.INCONCLUSIVE, "too_few_sessions")


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

    assert said(comparison) == (Verdict.REGRESSED, "beyond_limit")
    assert row_of(comparison).base_sessions == 0
    new = row_of(comparison, metric="")
    assert (new.code, new.head) == ("new", {}), "the pairs have the numbers"
    assert row_of(judged([], a_head(SLOWER)), metric="").head["step_time_s"] > 0


def test_pairs_answer_where_the_history_is_of_another_machine():
    head = a_head(SLOWER, environment=an_environment(hard=GPU))

    alone, beside = judged(HISTORY, head), judged(HISTORY, in_turns(head, pairs(1.1)))

    assert alone.exit_code == ExitCode.NO_ANSWER
    assert said(beside) == (Verdict.REGRESSED, "beyond_limit")
    unfit = next(row for row in beside.rows if row.verdict is Verdict.INCONCLUSIVE)
    assert not unfit.gate


def test_when_the_machine_moved_history_clears_nobody_and_pairs_do():
    history = [a_head(canaries=some_canaries()) for _ in range(3)]
    head = a_head(canaries=some_canaries(before=1.2e-3))

    assert said(judged(history, head)) == (Verdict.INCONCLUSIVE, "machine_moved")
    assert said(judged(history, in_turns(head, pairs(1.0)))) == (Verdict.UNCHANGED, "within_limit")
    assert said(judged(history, in_turns(head, pairs(1.1)))) == (Verdict.REGRESSED, "beyond_limit")


def test_too_few_pairs_say_how_many_would_decide():
    comparison = judged(HISTORY, in_turns(a_head(SLOWER), pairs(1.08, count=7, spread=0.05)))

    row = row_of(comparison)
    assert row.verdict is Verdict.INCONCLUSIVE
    assert row.remedy is not None
    assert row.remedy.pairs in LOOKS
    assert row.remedy.pairs > 7


def test_pairs_that_differ_too_much_ask_for_a_quieter_machine_or_a_wider_limit():
    wild = in_turns(a_head(SLOWER), pairs(1.015, spread=0.3))

    row = row_of(judged(HISTORY, wild))
    assert (row.verdict, row.pairs) == (Verdict.INCONCLUSIVE, LOOKS[-1])
    assert row.remedy.pairs is None
    assert row.remedy.quiet_spread < row.remedy.spread
    assert row.remedy.limit > row.limit


def test_a_limit_as_the_remedy_says_would_have_decided():
    wild = in_turns(a_head(SLOWER), pairs(1.015, spread=0.1))
    remedy = row_of(judged(HISTORY, wild)).remedy
    wide = Limit(relative=1.001 * remedy.limit)
    limits = Limits(default={**default_limits(), "step_time_s": wide})

    assert said(judged(HISTORY, wild, limits=limits))[0] is Verdict.UNCHANGED


def test_every_judged_row_says_what_it_could_have_seen():
    comparison = judged(HISTORY, in_turns(a_head(SLOWER), pairs(1.1)))

    assert all(row.smallest_detectable is not None for row in comparison.rows)
    assert row_of(comparison).smallest_detectable >= row_of(comparison).limit


# --- alpha


def test_those_who_share_the_chance_of_a_false_alarm_were_counted_before_the_first_pair():
    """What six pairs just prove alone, they do not prove as one of a hundred suspects."""
    close = [a_pair(1e-3, s) for s in (1.03e-3, 1.0451e-3, 1.0583e-3) * 2]
    suite = a_run(*(a_measured(f"w{i}", *SLOWER) for i in range(100)))
    alone = in_turns(suite, close, workload="w0", suspects=1)
    among = in_turns(suite, close, workload="w0", suspects=100)

    assert said(judged([], alone), workload="w0")[0] is Verdict.REGRESSED
    assert said(judged([], among), workload="w0")[0] is Verdict.LIKELY_SLOWER


def test_nobody_shares_it_with_more_suspects_than_there_are_numbers():
    """Whatever run.json claims."""
    slower = in_turns(a_head(SLOWER), pairs(1.1), suspects=2**60)

    assert said(judged([], slower))[0] is Verdict.REGRESSED


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
    close = [a_pair(1e-3, s) for s in (1.03e-3, 1.0451e-3, 1.0583e-3) * 2]

    def head(after):
        slower = (a_measured(n, *(SLOWER if n == "w0" else STEADY)) for n in names)
        run = a_run(*slower, canaries=some_canaries(after=after))
        return in_turns(run, close, workload="w0")

    steady, moved = (judged(history, head(after)) for after in (1e-3, 1.05e-3))
    assert (
        said(steady, workload="w0")
        == said(moved, workload="w0")
        == (
            Verdict.REGRESSED,
            "beyond_limit",
        )
    )
    assert said(moved, workload="w1") == (Verdict.INCONCLUSIVE, "machine_moved")


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


# --- clocks


def clocked(base_mhz, head_mhz, ratio):
    def at(mhz):
        span = a_gpu_evidence().sm_clock_mhz
        clock = type(span)(low=mhz, mean=mhz, high=mhz)
        return an_evidence(a_gpu_evidence(sm_clock_mhz=clock))

    return pairs(ratio, evidence=at(head_mhz), base={"evidence": at(base_mhz)})


def test_a_loss_that_only_the_clocks_explain_blames_nobody():
    slower = in_turns(a_head(SLOWER), clocked(1980.0, 1800.0, 1.1))

    assert said(judged(HISTORY, slower)) == (Verdict.INCONCLUSIVE, "machine_moved")


def test_a_loss_that_shows_in_cycles_is_one():
    same_clock = in_turns(a_head(SLOWER), clocked(1980.0, 1980.0, 1.1))
    both = in_turns(a_head(scaled(STEADY, 1.3)), clocked(1980.0, 1800.0, 1.3))

    assert said(judged(HISTORY, same_clock)) == (Verdict.REGRESSED, "beyond_limit")
    assert said(judged(HISTORY, both)) == (Verdict.REGRESSED, "beyond_limit")


# --- what the change has accepted


def accepting(head, *metrics):
    return msgspec.structs.replace(
        head, interleaved=an_interleaved(accepted={"w": metrics}, suspects=0)
    )


def test_the_base_is_not_asked_of_what_this_change_has_accepted():
    """One session is too young to clear anybody, and pairs would only show what was accepted."""
    head = in_turns(a_head(SLOWER), pairs(1.1))
    young = [a_head(SLOWER)]

    assert said(judged(young, head)) == (Verdict.REGRESSED, "beyond_limit")
    green = judged(young, accepting(head, "step_time_s"))
    assert said(green) == (Verdict.UNCHANGED, "accepted")
    assert green.exit_code == ExitCode.OK


def test_no_pair_is_launched_for_what_this_change_has_accepted():
    limits = Limits(default={"step_time_s": Limit(relative=0.02)})

    assert undecided([a_head(SLOWER)], accepting(a_head(SLOWER), "step_time_s"), limits) == ((), 0)


def test_a_head_beyond_what_was_accepted_is_suspected_all_the_same():
    far = accepting(a_head(scaled(STEADY, 2.0)), "step_time_s")

    assert said(judged([a_head(SLOWER)], far)) == (Verdict.LIKELY_SLOWER, "history_alone")


@pytest.mark.parametrize(("by", "is_green"), [(1.0, True), (3.0, False)])
def test_what_was_accepted_is_green_on_a_machine_that_moved_only_near_its_baseline(by, is_green):
    base = a_head(canaries=some_canaries())
    moved = a_head(scaled(STEADY, by), canaries=some_canaries(before=1.1e-3))

    comparison = judged([base], accepting(moved, "step_time_s"))

    assert (said(comparison)[1] == "accepted") is is_green
    assert comparison.exit_code == (ExitCode.OK if is_green else ExitCode.NO_ANSWER)


# --- a baseline that is left behind


def many(names, step_s):
    return a_run(*(a_measured(name, *step_s) for name in names))


@pytest.mark.parametrize(("moved", "is_stale"), [(2, True), (1, False)])
def test_a_baseline_that_most_suspects_have_left_behind_should_be_refreshed(moved, is_stale):
    names = [f"w{i}" for i in range(4)]
    head = many(names, SLOWER)
    for i, name in enumerate(names):
        ratio = 1.0 if i < moved else 1.1
        head = in_turns(head, pairs(ratio), workload=name, suspects=4)
    comparison = judged([many(names, scaled(STEADY, day)) for day in (1, 1.002, 0.999)], head)

    assert (comparison.stale is not None) is is_stale
    if comparison.stale:
        assert (comparison.stale.suspects, comparison.stale.cleared) == (4, 2)
        assert comparison.stale.ratio == pytest.approx(1.1, abs=0.005)


def test_the_comparison_carries_how_base_and_head_took_turns():
    head = in_turns(a_head(SLOWER), pairs(1.1), ref="origin/main")

    assert judged(HISTORY, head).interleaved == an_interleaved(ref="origin/main")

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ci_perf.errors import ExitCode
from ci_perf.judging import samples as judge
from ci_perf.judging.policy import LOOKS
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.samples import Sampled, SampledMetric, Samples

TIME = SampledMetric(unit="s", kind="time")
RATE = SampledMetric(unit="1/s", direction="higher", kind="time")
FLOPS = SampledMetric(unit="FLOP/s", direction="higher", kind="time")
MEMORY = SampledMetric(unit="byte", kind="host_memory")
COUNT = SampledMetric(unit="count", kind="exact")
# Sessions and launches of one machine that is quiet: as many as clear a workload on its own.
SESSIONS = (
    (1.0, 1.001, 0.999),
    (1.002, 1.001, 1.003),
    (0.999, 0.998, 1.0),
    (1.001, 1.0, 1.0),
    (0.999, 1.001, 1.0),
)
HEAD = (1.0, 1.001, 0.999)


def scaled(values, factor):
    return tuple(factor * value for value in values)


def pairs(factor, *, count=18, base=1.0):
    """Pairs of launches whose head takes `factor` times as long, give or take 0.2 %."""
    noise = (0.999, 1.001, 1.0)
    return tuple((base, base * factor * noise[i % 3]) for i in range(count))


def a_sampled(workload="w", metric=TIME, **more):
    return Sampled(workload=workload, metric=metric, **more)


def judged(*workloads, **options):
    return judge.judge(Samples(workloads=workloads), base="old", head="new", **options)


def row(*workloads):
    """What is said of the workload `w`."""
    return next(one for one in judged(*workloads).rows if one.workload == "w")


def said(*workloads):
    found = row(*workloads)
    return found.verdict, found.code


def test_a_head_like_its_history_is_unchanged():
    assert said(a_sampled(history=SESSIONS, head=HEAD)) == (Verdict.UNCHANGED, "within_limit")


def test_a_suspect_is_regressed_when_its_pairs_agree():
    slow = a_sampled(history=SESSIONS, head=scaled(HEAD, 1.1), pairs=pairs(1.1))

    assert said(slow) == (Verdict.REGRESSED, "beyond_limit")
    assert row(slow).ratio == pytest.approx(1.1, abs=0.002)


def test_a_suspect_is_improved_when_its_pairs_agree():
    fast = a_sampled(history=SESSIONS, head=scaled(HEAD, 0.9), pairs=pairs(0.9))

    assert said(fast) == (Verdict.IMPROVED, "beyond_limit")


def test_a_suspect_whose_pairs_show_nothing_is_not_to_blame():
    """The machine moved: the base's own code takes 10 % longer there, too."""
    moved = a_sampled(history=SESSIONS, head=scaled(HEAD, 1.1), pairs=pairs(1.0, base=1.1))

    assert said(moved) == (Verdict.UNCHANGED, "baseline_moved")
    assert row(moved).base == pytest.approx(1.1)


def test_what_the_screen_clears_is_not_asked_again():
    assert said(a_sampled(history=SESSIONS, head=HEAD, pairs=pairs(1.1)))[1] == "within_limit"


def test_a_suspect_without_pairs_is_likely_slower():
    assert said(a_sampled(history=SESSIONS, head=scaled(HEAD, 1.1))) == (
        Verdict.LIKELY_SLOWER,
        "history_alone",
    )


def test_a_gain_without_pairs_has_no_answer():
    assert said(a_sampled(history=SESSIONS, head=scaled(HEAD, 0.9))) == (
        Verdict.INCONCLUSIVE,
        "history_alone",
    )


def test_fewer_than_three_sessions_leave_it_to_an_assumption():
    far, near = (a_sampled(history=SESSIONS[:2], head=scaled(HEAD, f)) for f in (2.0, 1.02))

    assert said(far) == (Verdict.LIKELY_SLOWER, "history_alone")
    assert said(near) == (Verdict.INCONCLUSIVE, "too_few_sessions")


def test_sessions_that_disagree_predict_nothing():
    wild = (SESSIONS[0], scaled(SESSIONS[1], 2.0), scaled(SESSIONS[2], 0.5))

    assert said(a_sampled(history=wild, head=scaled(HEAD, 1.1))) == (
        Verdict.INCONCLUSIVE,
        "spread",
    )


def test_pairs_need_no_history():
    assert said(a_sampled(pairs=pairs(1.1))) == (Verdict.REGRESSED, "beyond_limit")
    assert said(a_sampled(pairs=pairs(1.0))) == (Verdict.UNCHANGED, "within_limit")


def test_one_pair_shows_no_spread():
    assert said(a_sampled(pairs=pairs(2.0, count=1))) == (Verdict.INCONCLUSIVE, "too_few_pairs")


def test_launches_with_two_speeds_are_told_from_those_that_are_spread():
    fast_and_slow = tuple((1.0, (0.9, 1.1)[i % 2] + i * 1e-4) for i in range(18))
    noisy = tuple((1.0, 0.85 + 0.3 * (i * 7 % 18) / 17) for i in range(18))

    assert said(a_sampled(pairs=fast_and_slow)) == (Verdict.INCONCLUSIVE, "two_modes")
    assert said(a_sampled(pairs=noisy)) == (Verdict.INCONCLUSIVE, "spread")


def test_pairs_after_the_decision_are_left_alone():
    found = row(a_sampled(pairs=pairs(1.5)))

    assert found.base_processes == found.head_processes == LOOKS[0]


def test_alpha_is_shared_over_the_suspects_of_a_file():
    """What six pairs just prove alone, they do not prove beside a hundred other suspects."""
    close = a_sampled(pairs=((1.0, 1.03), (1.0, 1.0451), (1.0, 1.0583)) * 2)
    others = [a_sampled(f"other{i}", pairs=pairs(1.5)) for i in range(100)]

    assert said(close) == (Verdict.REGRESSED, "beyond_limit")
    assert said(close, *others) == (Verdict.LIKELY_SLOWER, "spread")


def test_a_launch_counts_once_by_the_median_of_its_steps():
    one = a_sampled(history=SESSIONS, head=HEAD)
    steps = a_sampled(history=SESSIONS, head=tuple((v, v, 100.0, 0.01, v) for v in HEAD))

    assert row(one) == row(steps)


def test_of_a_rate_more_is_better_and_the_time_it_means_is_shown():
    slow = a_sampled(
        metric=RATE, history=[scaled(s, 1000) for s in SESSIONS], head=scaled(HEAD, 800)
    )
    found = row(slow)

    assert found.verdict is Verdict.LIKELY_SLOWER
    assert found.ratio == pytest.approx(1.25, abs=0.01)
    assert found.head == pytest.approx(1 / 800, rel=0.01)


def test_where_more_is_better_the_number_itself_is_shown_and_the_ratio_is_that_of_the_cost():
    found = row(a_sampled(metric=FLOPS, pairs=[(1e12, 8e11)] * 6))

    assert found.verdict is Verdict.REGRESSED
    assert found.ratio == pytest.approx(1.25)
    assert (found.base, found.head) == pytest.approx((1e12, 8e11))


@pytest.mark.parametrize(
    ("history", "head", "verdict"),
    [
        ((((3, 3)),), (3, 3), Verdict.UNCHANGED),
        (((3, 3),), (4, 4), Verdict.REGRESSED),
        (((3, 3),), (2,), Verdict.IMPROVED),
        (((3, 3),), (3, 4), Verdict.INCONCLUSIVE),
        (((0,),), (0,), Verdict.UNCHANGED),
        (((0,),), (1,), Verdict.REGRESSED),
    ],
)
def test_what_is_exact_is_judged_by_ranges(history, head, verdict):
    assert row(a_sampled(metric=COUNT, history=history, head=head)).verdict is verdict


def test_exact_pairs_count_more_than_an_older_history():
    moved = a_sampled(metric=COUNT, history=((3,),), head=(4,), pairs=((4, 4), (4, 4)))

    found = row(moved)
    assert found.verdict is Verdict.UNCHANGED
    assert (found.pairs, found.base_sessions) == (2, 0)


@pytest.mark.parametrize("metric", [TIME, COUNT])
def test_a_metric_with_one_side_does_not_vanish(metric):
    gone = judged(a_sampled(metric=metric, history=SESSIONS))
    new = judged(a_sampled(metric=metric, head=HEAD))

    assert [one.verdict for one in gone.rows] == [Verdict.FAILED]
    assert [one.verdict for one in new.rows] == [Verdict.NEW]
    assert gone.exit_code == new.exit_code == ExitCode.NO_ANSWER


def test_a_file_of_nothing_has_no_answer():
    assert judged().exit_code == ExitCode.NO_ANSWER


STEADY = a_sampled("steady", history=SESSIONS, head=HEAD)
SLOWER = a_sampled(pairs=pairs(1.1))
SUSPECT = a_sampled(history=SESSIONS, head=scaled(HEAD, 1.1))
GAIN = a_sampled(history=SESSIONS, head=scaled(HEAD, 0.9))
ASSUMED = a_sampled(history=SESSIONS[:2], head=scaled(HEAD, 2.0))
UNCLEAR, FAR = (a_sampled(pairs=pairs(ratio, count=1)) for ratio in (1.015, 1.1))
GONE = a_sampled(history=SESSIONS)


@pytest.mark.parametrize(
    ("workload", "codes"),
    [
        # proven, likely, unanswered, never
        (SLOWER, (1, 1, 1, 0)),
        (SUSPECT, (3, 1, 1, 0)),
        (GAIN, (0, 0, 0, 0)),
        (UNCLEAR, (0, 0, 1, 0)),
        (FAR, (3, 3, 1, 0)),
        (ASSUMED, (3, 3, 1, 0)),
        (GONE, (3, 3, 3, 3)),
        (STEADY, (0, 0, 0, 0)),
    ],
    ids=[
        *("regressed", "unconfirmed", "gain", "inconclusive", "far", "history_alone", "missing"),
        "unchanged",
    ],
)
def test_what_fails_is_what_was_asked_for(workload, codes):
    kinds = ("proven", "likely", "unanswered", "never")
    others = () if workload is STEADY else (STEADY,)

    assert tuple(judged(workload, *others, fail_on=k).exit_code for k in kinds) == codes


def test_a_larger_limit_looks_for_larger_changes():
    slightly = a_sampled(pairs=pairs(1.021))

    assert judged(slightly).verdict is Verdict.REGRESSED
    assert judged(slightly, limit=0.05).verdict is Verdict.UNCHANGED


def test_a_limit_is_that_of_times_only():
    of_times, of_others = (
        judged(a_sampled(metric=metric, pairs=pairs(1.021)), limit=0.05).rows[0].limit
        for metric in (TIME, MEMORY)
    )

    assert (of_times, of_others) == (pytest.approx(0.05), pytest.approx(0.02))


def test_a_comparison_of_samples_is_written_and_read_as_any_other():
    comparison = judged(STEADY, SLOWER, a_sampled("u", pairs=pairs(1.1, count=1)), COUNTED)

    assert codec.decode(codec.encode(comparison), Comparison, name="c.json") == comparison


COUNTED = a_sampled("counted", COUNT, history=((0,),), head=(1,))
launches = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=4)
sampled = st.builds(
    lambda history, head, pairs: a_sampled(
        history=tuple(map(tuple, history)), head=tuple(head), pairs=tuple(pairs)
    ),
    st.lists(launches, min_size=1, max_size=4),
    launches,
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), max_size=20),
)


@given(sampled)
def test_only_pairs_blame_anybody(found):
    verdict = row(found).verdict

    assert verdict is not Verdict.REGRESSED or found.pairs


@given(sampled, st.sampled_from([2.0**-10, 2.0**10]))
def test_the_unit_of_the_numbers_does_not_matter(found, factor):
    other = a_sampled(
        history=tuple(scaled(session, factor) for session in found.history),
        head=scaled(found.head, factor),
        pairs=tuple(scaled(pair, factor) for pair in found.pairs),
    )

    # Rounded numbers are known by their decimals, which other units change.
    assume(row(found).tick == row(other).tick)

    assert math.isclose(row(found).ratio, row(other).ratio, rel_tol=1e-9)


@given(sampled)
def test_every_answer_can_be_written(found):
    comparison = judged(found)

    assert codec.decode(codec.encode(comparison), Comparison, name="c.json") == comparison

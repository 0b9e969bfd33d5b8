import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judge import evidence, verdicts
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limit

FIVE_PERCENT = Limit(relative=0.05)
MIB = 2**20
QUIET = (1.000, 1.001, 0.999)
times = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=6)


def time_verdict(base, head, limit=FIVE_PERCENT):
    return verdicts.rule(metrics.STEP_TIME, limit, [base], head)


def scaled(values, factor):
    return [value * factor for value in values]


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (2.0, Verdict.REGRESSED),
        (1.2, Verdict.REGRESSED),
        (1.05, Verdict.INCONCLUSIVE),  # exactly at the limit: not proven either way
        (1.0, Verdict.UNCHANGED),
        (0.95, Verdict.INCONCLUSIVE),
        (0.5, Verdict.IMPROVED),
    ],
)
def test_quiet_processes_allow_a_clear_answer(factor, verdict):
    assert time_verdict(QUIET, scaled(QUIET, factor)).verdict is verdict


def test_processes_that_disagree_allow_none():
    ruling = time_verdict((1.0, 1.3, 0.8), (1.2, 1.5, 0.9))

    assert ruling.verdict is Verdict.INCONCLUSIVE
    assert ruling.code == "spread"
    assert ruling.interval is not None
    assert ruling.interval.smallest_detectable > 0.3


def test_an_interval_below_the_limit_says_at_least_that_it_is_not_worse():
    ruling = time_verdict((1.0, 1.02, 0.98), (0.93, 0.95, 0.91))

    assert (ruling.verdict, ruling.code) == (Verdict.INCONCLUSIVE, "not_worse")


def test_one_process_a_side_says_nothing_of_the_spread():
    ruling = time_verdict([1.0], [3.0])

    assert (ruling.verdict, ruling.code) == (Verdict.INCONCLUSIVE, "too_few_processes")
    assert ruling.ratio == pytest.approx(3.0)


def test_processes_that_agree_to_the_digit_prove_no_small_change():
    """Sessions differ by about 1 % however well the launches within one agree."""
    assert time_verdict([1.0] * 5, [1.06] * 5).verdict is Verdict.INCONCLUSIVE


def test_two_sessions_that_disagree_widen_the_interval_less_than_they_narrow_it():
    one = verdicts.rule(metrics.STEP_TIME, FIVE_PERCENT, [QUIET], QUIET)
    two = verdicts.rule(metrics.STEP_TIME, FIVE_PERCENT, [QUIET, scaled(QUIET, 1.01)], QUIET)

    assert one.interval is not None
    assert two.interval is not None
    assert two.interval.smallest_detectable < one.interval.smallest_detectable


def test_an_absolute_limit_counts_where_it_is_larger():
    limit = Limit(relative=0.01, absolute=0.5)

    assert time_verdict([0.1] * 3, [0.2] * 3, limit).verdict is Verdict.UNCHANGED
    assert time_verdict([0.1] * 3, [0.2] * 3, limit).limit == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([0, 0], [2, 2], Verdict.REGRESSED),
        ([2, 2], [0, 0], Verdict.IMPROVED),
        ([2, 2], [2, 2], Verdict.UNCHANGED),
        ([2, 3], [3, 4], Verdict.INCONCLUSIVE),
    ],
)
def test_counts_are_compared_exactly(base, head, verdict):
    assert verdicts.rule(metrics.GRAPH_BREAKS, Limit(), [base], head).verdict is verdict


def test_a_baseline_of_zero_has_no_ratio():
    assert verdicts.rule(metrics.GRAPH_BREAKS, Limit(), [[0, 0]], [2, 2]).ratio is None


@pytest.mark.parametrize(
    ("grown", "verdict"),
    [(MIB, Verdict.UNCHANGED), (3 * MIB, Verdict.REGRESSED), (-3 * MIB, Verdict.IMPROVED)],
)
def test_allocated_memory_has_a_tolerance_of_one_percent_or_two_mib(grown, verdict):
    limit = Limit(relative=0.01, absolute=2 * MIB)

    ruling = verdicts.rule(metrics.PEAK_ALLOCATED, limit, [[100 * MIB]], [100 * MIB + grown])

    assert ruling.verdict is verdict


@given(base=times, head=times, factor=st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(base, head, factor):
    one = time_verdict(base, head)
    other = time_verdict(scaled(base, factor), scaled(head, factor))

    assert one.interval.low == pytest.approx(other.interval.low, rel=1e-6)
    assert one.interval.high == pytest.approx(other.interval.high, rel=1e-6)


@given(base=times, head=times)
def test_swapping_the_sides_swaps_the_verdict(base, head):
    mirrored = {
        Verdict.REGRESSED: Verdict.IMPROVED,
        Verdict.IMPROVED: Verdict.REGRESSED,
        Verdict.UNCHANGED: Verdict.UNCHANGED,
        Verdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    }

    there, back = time_verdict(base, head), time_verdict(head, base)

    assert back.ratio == pytest.approx(1 / there.ratio, rel=1e-6)
    assert back.verdict is mirrored[there.verdict]


@given(base=times, head=times, seed=st.integers())
def test_the_order_of_launches_does_not_matter(base, head, seed):
    shuffled = random.Random(seed).sample(head, len(head))

    assert time_verdict(base, shuffled).interval.high == pytest.approx(
        time_verdict(base, head).interval.high, rel=1e-9
    )


@given(base=times, head=times)
def test_slower_is_never_judged_better(base, head):
    order = [Verdict.IMPROVED, Verdict.UNCHANGED, Verdict.INCONCLUSIVE, Verdict.REGRESSED]

    before, after = time_verdict(base, head), time_verdict(base, scaled(head, 10))

    if before.verdict is Verdict.REGRESSED:
        assert after.verdict is Verdict.REGRESSED
    assert after.interval.low > before.interval.low
    assert order.index(after.verdict) >= order.index(before.verdict) or (
        before.verdict is Verdict.INCONCLUSIVE
    )


def test_the_centres_have_the_ratio_that_is_judged():
    ruling = time_verdict((1.0, 1.1, 0.9), (2.0, 2.3, 1.9))

    assert ruling.head / ruling.base == pytest.approx(ruling.ratio)
    assert ruling.base == pytest.approx(evidence.centre(metrics.Kind.TIME, [(1.0, 1.1, 0.9)]))


def test_unchanged_code_is_seldom_called_changed():
    """1,000 pairs of sessions of the same code, with launch and session noise of 1 % each."""
    noise = random.Random(20261121)

    def session():
        shift = noise.gauss(0, 0.01)
        return [2.718281828 ** (shift + noise.gauss(0, 0.01)) for _ in range(5)]

    found = [time_verdict(session(), session()).verdict for _ in range(1000)]

    assert found.count(Verdict.REGRESSED) + found.count(Verdict.IMPROVED) <= 1


def test_a_real_change_is_found():
    """A change of 15 % against a limit of 5 %, with the same noise."""
    noise = random.Random(7)

    def session(factor):
        shift = noise.gauss(0, 0.01)
        return [factor * 2.718281828 ** (shift + noise.gauss(0, 0.01)) for _ in range(5)]

    found = [time_verdict(session(1.0), session(1.15)).verdict for _ in range(500)]

    assert found.count(Verdict.REGRESSED) >= 450


@given(base=times, head=times)
def test_where_higher_is_better_the_verdict_is_that_of_the_inverse(base, head):
    efficiency = verdicts.rule(
        metrics.SCALING_EFFICIENCY, FIVE_PERCENT, [[1 / v for v in base]], [1 / v for v in head]
    )
    cost = time_verdict(base, head)

    assert efficiency.verdict is cost.verdict
    assert efficiency.ratio == pytest.approx(cost.ratio, rel=1e-6)
    assert efficiency.interval is not None
    assert cost.interval is not None
    assert efficiency.interval.high == pytest.approx(cost.interval.high, rel=1e-6)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([0.0, 0.01], [0.02, 0.04], Verdict.UNCHANGED),
        ([0.0, 0.01], [0.07, 0.20], Verdict.REGRESSED),
        ([0.0, 0.01], [0.02, 0.20], Verdict.INCONCLUSIVE),
        ([0.30, 0.35], [0.10, 0.20], Verdict.IMPROVED),
    ],
)
def test_a_share_may_be_zero_and_has_a_limit_in_points(base, head, verdict):
    assert verdicts.rule(metrics.DATA_WAIT, Limit(absolute=0.05), [base], head).verdict is verdict

import math
import random
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judging.policy import (
    ALPHA,
    ALPHA_BEYOND_ZERO,
    BETA_CONFIRM,
    CALM_LOOKS,
    CALM_TOGETHER,
    CALM_TOGETHER_WITHOUT_HISTORY,
    CALM_WEIGHTS,
    CALM_WEIGHTS_WITHOUT_HISTORY,
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
)
from tests.confirmations import EXACT, SHARES, TIME, a_confirmation, confirmed

CALM_OF_HISTORY = dict(zip(CALM_LOOKS, CALM_WEIGHTS, strict=True))

small = st.floats(-0.1, 0.1)
pairs_of_launches = st.lists(small, min_size=MOST_PAIRS, max_size=MOST_PAIRS)
histories = st.tuples(st.sampled_from([0.0, 1e-6, 1e-4, 1e-2]), st.sampled_from([0.0, 0.5, 8.0]))


def of_scipy(differences, history, suspected):
    """The same rule by scipy: two one-sided tests for each answer, look after look."""
    (prior_variance, prior_df), (of_loss, of_gain) = history, SHARES[suspected]
    weights = CALM_OF_HISTORY if prior_df else CALM_WEIGHTS_WITHOUT_HISTORY
    # A single pair says nothing while today is unknown.
    for look in CALM_LOOKS[1:]:
        seen = differences[:look]
        own = statistics.variance(seen)
        believed = 0.0 if own > 4 * 2 * prior_variance else prior_df
        df = believed + look - 1
        error = math.sqrt((believed * 2 * prior_variance + own * (look - 1)) / df / look)
        t = stats.t(df, loc=statistics.fmean(seen), scale=error)
        alone = stats.t(look - 1, loc=statistics.fmean(seen), scale=math.sqrt(own / look))
        above, below = alone.cdf(TIME.half_limit), alone.sf(-TIME.half_limit)
        inside = max(t.sf(TIME.limit), t.cdf(-TIME.limit))
        moved = min(t.cdf(TIME.half_limit), t.sf(-TIME.half_limit))
        alpha = ALPHA * WEIGHTS[LOOKS.index(look)] if look in LOOKS else 0.0
        if above < alpha * of_loss:
            return "regressed", look
        if below < alpha * of_gain:
            return "improved", look
        if look == MOST_PAIRS and (call := beyond_zero(alone, of_loss, of_gain)):
            return call, look
        if look == MOST_PAIRS and (call := of_signs(seen, of_loss, of_gain)):
            return call, look
        together = CALM_TOGETHER_WITHOUT_HISTORY
        if prior_df:
            together = CALM_TOGETHER if believed else 1
        if inside < BETA_CONFIRM * together * weights[look] <= moved:
            return "unchanged", look
    return "inconclusive", MOST_PAIRS


def beyond_zero(t, of_loss, of_gain):
    """The second way to an alarm: surely beyond zero, and the mean beyond the limit."""
    alpha = ALPHA * ALPHA_BEYOND_ZERO
    if t.cdf(0) < alpha * of_loss and t.mean() >= TIME.limit:
        return "regressed"
    return "improved" if t.sf(0) < alpha * of_gain and t.mean() <= -TIME.limit else None


def of_signs(differences, of_loss, of_gain):
    """The sign test by scipy: how many differences lie beyond half the limit, on either side."""
    alpha = ALPHA * WEIGHT_OF_SIGNS
    for call, sign, share in (("regressed", 1, of_loss), ("improved", -1, of_gain)):
        beyond = sum(sign * difference > TIME.half_limit for difference in differences)
        tested = stats.binomtest(beyond, len(differences), alternative="greater")
        if tested.pvalue <= alpha * share:
            return call
    return None


@pytest.mark.parametrize("spread", [0.001, 0.005, 0.02])
@pytest.mark.parametrize("effect", [-0.03, 0.0, 0.015, 0.02, 0.04])
@pytest.mark.parametrize("history", [(0.0, 0.0), (1e-5, 8.0), (1e-4, 3.3)])
@pytest.mark.parametrize("suspected", SHARES)
def test_outcomes_agree_with_two_one_sided_tests_of_scipy(effect, spread, history, suspected):
    noise = random.Random(f"{effect} {spread} {history}")
    for _ in range(10):
        differences = [noise.gauss(effect, spread) for _ in range(MOST_PAIRS)]

        found = confirmed(
            differences, prior_variance=history[0], prior_df=history[1], suspected=suspected
        )

        assert (found.call, found.pairs) == of_scipy(differences, history, suspected)


CALM = BETA_CONFIRM * CALM_TOGETHER_WITHOUT_HISTORY


@pytest.mark.parametrize(
    ("differences", "answer", "tail"),
    [
        ([0.031, 0.029, 0.033, 0.03, 0.032, 0.028], ("regressed", 6), ALPHA * WEIGHTS[0] / 2),
        ([0.001, -0.002, 0.0015], ("unchanged", 3), CALM * CALM_WEIGHTS_WITHOUT_HISTORY[3]),
        # Pairs that run out: as surely as the last look so far would have said it.
        (
            [0.002, 0.028, 0.016, 0.03, 0.001],
            ("inconclusive", 5),
            CALM * CALM_WEIGHTS_WITHOUT_HISTORY[4],
        ),
    ],
)
def test_an_answer_without_history_has_the_interval_of_scipy(differences, answer, tail):
    found = confirmed(differences, **EXACT)

    tested = stats.ttest_1samp(differences, 0.0).confidence_interval(1 - 2 * tail)
    assert (found.call, found.pairs) == answer
    assert (found.low, found.high) == pytest.approx(tuple(tested), rel=1e-8)


@pytest.mark.parametrize("suspected", SHARES)
def test_each_end_of_the_interval_of_an_alarm_is_as_sure_as_its_side_asks(suspected):
    differences = [0.052, 0.058, 0.056, 0.06, 0.055, 0.057]

    found = confirmed(differences, **EXACT, suspected=suspected)

    of_loss, of_gain = (ALPHA * WEIGHTS[0] * share for share in SHARES[suspected])
    t = stats.t(5, loc=statistics.fmean(differences), scale=stats.sem(differences))
    assert (found.call, found.pairs) == ("regressed", 6)
    assert (found.low, found.high) == pytest.approx((t.ppf(of_loss), t.isf(of_gain)), rel=1e-8)


@pytest.mark.parametrize(
    ("differences", "call"),
    [([0.5] * 6, "regressed"), ([-0.5] * 6, "improved"), ([0.001, -0.001], "unchanged")],
)
def test_an_outcome_comes_at_looks_only_and_ends_the_pairs(differences, call):
    """An alarm after six pairs, however large; two may clear where history knows the spread."""
    confirmation = a_confirmation(prior_variance=1e-6, suspected=1)

    outcomes = [confirmation.add(difference) for difference in differences]

    assert outcomes == [None] * (len(differences) - 1) + [confirmation.finish()]
    assert confirmation.finish().call == call
    with pytest.raises(ValueError, match=f"no pair after the outcome '{call}' of"):
        confirmation.add(0.5)


@pytest.mark.parametrize("pairs", [1, 3, 5, 17, 18])
def test_pairs_that_run_out_decide_nothing(pairs):
    found = confirmed(([0.002, 0.028, 0.016] * 6)[:pairs], prior_variance=1e-3)

    assert (found.call, found.pairs) == ("inconclusive", pairs)
    assert found.low < found.estimate < found.high
    assert found.low < TIME.half_limit
    assert found.high > TIME.limit


# A loss of 2.2 % on a noisy machine, as 18 pairs recorded it.
NOISY_LOSS = [0.048, 0.002, 0.031, -0.006, 0.044, 0.012] * 3


@pytest.mark.parametrize(("sign", "call"), [(1, "regressed"), (-1, "improved")])
def test_at_the_last_look_a_change_beyond_the_limit_that_is_surely_none_is_an_alarm(sign, call):
    found = confirmed([sign * difference for difference in NOISY_LOSS], **EXACT)

    ends = sorted((sign * found.low, sign * found.high))
    assert (found.call, found.pairs) == (call, MOST_PAIRS)
    assert 0 < ends[0] < TIME.half_limit  # the first way proves nothing
    assert sign * found.estimate > TIME.limit


def test_no_earlier_look_and_no_estimate_within_the_limit_takes_the_second_way():
    early = confirmed(NOISY_LOSS[:-1], **EXACT)
    within = confirmed([difference - 0.003 for difference in NOISY_LOSS], **EXACT)

    assert (early.call, within.call) == ("inconclusive", "inconclusive")


@pytest.mark.parametrize(("differences", "estimate"), [([], 0.0), ([0.02], 0.02)])
def test_one_pair_without_history_leaves_everything_possible(differences, estimate):
    found = confirmed(differences, **EXACT)

    assert (found.call, found.pairs) == ("inconclusive", len(differences))
    assert (found.estimate, found.low, found.high) == (estimate, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("difference", "call"),
    [
        (0.0101, "regressed"),  # beyond half the limit, and certain
        (0.0099, "unchanged"),
        (0.0, "unchanged"),
        (-0.0099, "unchanged"),
        (-0.0101, "improved"),
    ],
)
def test_pairs_that_agree_to_the_digit_are_judged_by_their_size_alone(difference, call):
    found = confirmed([difference] * 6, **EXACT)

    assert found.call == call
    assert found.low == pytest.approx(difference)
    assert found.high == pytest.approx(difference)


@given(st.lists(small, min_size=6, max_size=6), st.floats(0, 0.1), histories)
def test_a_larger_effect_is_never_called_smaller_at_the_same_look(differences, more, history):
    order = ("improved", "other", "regressed")

    def rank(values):
        outcome = confirmed(values, prior_variance=history[0], prior_df=history[1])
        return order.index(outcome.call if outcome.call in order else "other")

    assert rank([d + more for d in differences]) >= rank(differences)


@given(
    st.lists(st.floats(-1400, 1400), max_size=18),
    st.sampled_from([0.0, 1e-30, 1.0, 1e6]),
    st.sampled_from([0.0, 0.5, 8.0]),
)
def test_whatever_was_measured_no_figure_is_nan(differences, prior_variance, prior_df):
    confirmation = a_confirmation(prior_variance=prior_variance, prior_df=prior_df)
    for difference in differences:
        if confirmation.add(difference):
            break
    found = confirmation.finish()

    assert math.isfinite(found.estimate)
    assert found.low <= found.estimate <= found.high
    assert confirmation.smallest_detectable() >= TIME.limit


@given(pairs_of_launches)
def test_of_a_history_that_the_pairs_contradict_nothing_counts(differences):
    assume(all(statistics.variance(differences[:look]) > 1e-8 for look in CALM_LOOKS[1:]))

    calm = confirmed(differences, prior_variance=1e-9, prior_df=8.0)

    assert calm == confirmed(differences, prior_variance=1e-12, prior_df=0.5)


@pytest.mark.parametrize("difference", [math.nan, math.inf, 1e9])
def test_what_cannot_be_a_difference_of_logarithms_is_refused(difference):
    with pytest.raises(ValueError, match="the difference of a pair: expected natural logarithms"):
        a_confirmation().add(difference)


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("alpha", alpha) for alpha in (0.0, 1.0)), ("prior_df", math.inf)]
    + [("prior_variance", variance) for variance in (-1.0, math.nan, math.inf)],
)
def test_what_no_confirmation_can_start_from_is_refused(name, value):
    with pytest.raises(ValueError, match="expected 0 < alpha < 1 and a finite prior_variance"):
        a_confirmation(**{name: value})

import math

import pytest

from ci_perf.judging.policy import (
    ALPHA_OF_SIDE,
    CALM_LOOKS,
    CALM_WEIGHTS,
    CALM_WEIGHTS_WITHOUT_HISTORY,
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
    Policy,
    PolicyKind,
    policy_of,
)


@pytest.mark.parametrize(
    ("kind", "floor", "margin", "spread"),
    [
        (PolicyKind.TIME, 0.01, 0.02, 0.01),
        (PolicyKind.TAIL, 0.02, 0.06, 0.015),
        (PolicyKind.ONE_OFF, 0.03, 0.10, 0.02),
        (PolicyKind.HOST_MEMORY, 0.005, 0.02, 0.002),
    ],
)
def test_each_kind_has_its_own_default(kind, floor, margin, spread):
    found = policy_of(kind)

    assert (math.expm1(found.floor), math.expm1(found.margin)) == pytest.approx((floor, margin))
    assert (found.session_spread, found.prior_df) == (spread, 4)


@pytest.mark.parametrize(
    ("preset", "floor", "margin"),
    [
        ("strict", 0.005, 0.015),
        ("default", 0.01, 0.02),
        ("relaxed", 0.01, 0.03),
        ("shared", 0.02, 0.05),
    ],
)
def test_a_preset_says_how_large_a_change_of_time_matters(preset, floor, margin):
    found = policy_of(PolicyKind.TIME, preset)

    assert (math.expm1(found.floor), math.expm1(found.margin)) == pytest.approx((floor, margin))


@pytest.mark.parametrize("kind", PolicyKind)
@pytest.mark.parametrize("preset", ["strict", "default", "relaxed", "shared"])
def test_a_preset_leaves_the_assumed_spread_of_sessions_alone(kind, preset):
    assert policy_of(kind, preset).session_spread == policy_of(kind).session_spread


@pytest.mark.parametrize(
    ("looks", "weights", "other"),
    [
        (LOOKS, WEIGHTS, WEIGHT_OF_SIGNS),
        (CALM_LOOKS, CALM_WEIGHTS, 0.0),
        (CALM_LOOKS[1:], tuple(CALM_WEIGHTS_WITHOUT_HISTORY.values()), 0.0),
    ],
)
def test_all_tests_share_what_they_may_be_wrong(looks, weights, other):
    assert math.fsum(weights) + other == pytest.approx(1.0)
    assert len(weights) == len(looks)
    assert list(looks) == sorted(set(looks))


def test_where_an_alarm_is_looked_for_so_is_its_opposite_and_both_end_together():
    assert set(LOOKS) < set(CALM_LOOKS)
    assert LOOKS[-1] == CALM_LOOKS[-1] == MOST_PAIRS


def test_the_sides_share_all_of_alpha_whatever_the_screen_saw():
    for suspected in (-1, 0, 1):
        assert math.fsum(ALPHA_OF_SIDE[side * suspected] for side in (-1, 1)) == 1


@pytest.mark.parametrize(
    ("floor", "margin", "spread", "df"),
    [(0.02, 0.02, 0.01, 4), (-0.01, 0.02, 0.01, 4), (0.01, 0.02, 0, 4), (0.01, 0.02, 0.01, 0)],
)
def test_a_policy_under_which_no_answer_would_be_right_is_refused(floor, margin, spread, df):
    with pytest.raises(ValueError, match="expected 0 <= floor < margin"):
        Policy(floor=floor, margin=margin, session_spread=spread, prior_df=df)

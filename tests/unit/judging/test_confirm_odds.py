"""How often a confirmation may be wrong, what it can find, and what several of them share."""

import math
import random

import pytest

from ci_perf.judging import confirm
from ci_perf.judging.policy import ALPHA, BETA_CONFIRM, MOST_PAIRS
from tests.confirmations import EXACT, MIRRORED, SHARES, TIME, a_confirmation, confirmed


def share_of_calls(call, effect, *, alpha=ALPHA, times=1500, **history):
    noise = random.Random(1)
    return (
        sum(
            confirmed(
                (noise.gauss(effect, 0.01) for _ in range(MOST_PAIRS)), alpha=alpha, **history
            ).call
            == call
            for _ in range(times)
        )
        / times
    )


@pytest.mark.parametrize("history", [EXACT, {"prior_variance": 0.5e-4, "prior_df": 8.0}])
def test_a_change_at_the_edge_is_seldom_called_wrongly(history):
    assert share_of_calls("regressed", TIME.half_limit, **history) <= ALPHA
    assert share_of_calls("unchanged", TIME.limit, **history) <= BETA_CONFIRM


@pytest.mark.parametrize("suspected", SHARES)
def test_a_calm_history_makes_no_alarms_of_the_noise_of_today(suspected):
    """Launches differed by 0.1 %, and today pairs differ by 35 %: without a change."""
    noise = random.Random(1)

    calls = [
        confirmed(
            (noise.gauss(0, 0.35) for _ in range(MOST_PAIRS)),
            prior_variance=0.0016**2 / 2,
            suspected=suspected,
        ).call
        for _ in range(1500)
    ]

    assert sum(call in MIRRORED for call in calls) / len(calls) <= ALPHA


def test_the_smallest_detectable_change_is_found_in_most_cases():
    # A launch's variance is half of a pair's.
    history = {"prior_variance": 0.5e-4, "prior_df": 8.0}

    effect = a_confirmation(alpha=0.01, **history).smallest_detectable()

    assert share_of_calls("regressed", effect, alpha=0.01, **history) >= 0.75


def test_more_pairs_detect_smaller_changes():
    confirmation = a_confirmation(prior_variance=1e-3)

    found = [confirmation.smallest_detectable(pairs) for pairs in (4, 9, 18, 40)]

    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4


def test_what_is_detectable_is_a_loss():
    """A suspect that the screen saw improve keeps little of alpha for a loss."""
    sizes = [
        a_confirmation(prior_variance=1e-3, suspected=suspected).smallest_detectable()
        for suspected in (1, 0, -1)
    ]

    assert sizes == sorted(set(sizes))


def test_what_was_rounded_must_be_larger_by_a_tick_to_be_detected():
    confirmation = a_confirmation(prior_variance=1e-8, tick=0.01)
    tails = (confirmation.alarm_tail(18, 1), confirm.POWER_TAIL)
    reach = sum(confirm.alarm_reach(tail, 18) for tail in tails)

    smallest = confirmation.smallest_detectable()

    assert smallest == pytest.approx(TIME.half_limit + 0.01 + reach * confirmation.alarm_spread())


def test_without_any_spread_known_nothing_is_detectable():
    assert a_confirmation(**EXACT).smallest_detectable() == math.inf


def test_alpha_is_shared_over_all_suspects_and_needs_one():
    assert confirm.share_alpha(1) == ALPHA
    assert confirm.share_alpha(20) == pytest.approx(ALPHA / 20)
    with pytest.raises(ValueError, match="expected at least one suspect"):
        confirm.share_alpha(0)


def test_no_change_is_detected_in_no_pairs():
    with pytest.raises(ValueError, match="expected at least one pair, found 0"):
        a_confirmation().smallest_detectable(0)

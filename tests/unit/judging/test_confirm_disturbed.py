"""A confirmation of launches that hang, have two modes, or were rounded."""

import math

import pytest

from tests.confirmations import EXACT, a_confirmation, confirmed


def test_a_launch_that_hangs_does_not_hide_a_change_from_the_last_look():
    found = confirmed([4.6, *[0.1, 0.101, 0.102] * 6], **EXACT)

    assert (found.call, found.pairs, found.by_median) == ("regressed", 18, True)
    assert found.estimate == pytest.approx(0.101)
    assert 0.1 <= found.low <= found.high <= 0.102


def test_a_launch_that_hangs_makes_no_change_where_there_is_none():
    assert confirmed([4.6, *[0.001, -0.001] * 9], **EXACT).call == "inconclusive"


def test_an_inconclusive_outcome_shows_the_median_within_its_interval():
    confirmation = a_confirmation(**EXACT)
    for difference in (-4.1, *[0.4] * 8):
        confirmation.add(difference)

    found = confirmation.finish()

    assert (found.call, found.pairs, found.by_median) == ("inconclusive", 9, True)
    assert found.estimate == 0.4
    assert found.low <= found.estimate <= found.high


def in_modes(bases, heads, *, usual_variance):
    """Confirm launches that are fast (0) or slow (1), 3 % apart."""
    confirmation = a_confirmation(prior_variance=0.015**2, usual_variance=usual_variance)
    for base, head in zip(bases, heads, strict=True):
        if outcome := confirmation.add(0.03 * (head - base), base=0.03 * base):
            return outcome
    return confirmation.finish()


def test_six_pairs_of_fast_bases_and_slow_heads_prove_nothing_where_launches_have_two_modes():
    bases, heads = [0] * 6, [1, 1, 1, 1, 1, 0.99]

    assert in_modes(bases, heads, usual_variance=0.0).call == "regressed"
    assert in_modes(bases, heads, usual_variance=0.0184**2).call == "inconclusive"


def test_sides_that_differ_as_the_history_does_need_no_spread_from_it():
    """Pairs that move together differ by less than launches do: each launch has visited both."""
    bases = [0, 1, 0, 1, 1, 0]
    heads = [base + 2 for base in bases]

    assert in_modes(bases, heads, usual_variance=0.0184**2).call == "regressed"


def test_of_the_usual_spread_only_what_the_sides_lack_is_added():
    confirmation = a_confirmation(prior_variance=0.015**2, usual_variance=0.001)
    confirmation.add(0.0)
    confirmation.add(0.002, base=0.03)

    shown = (2 * 0.015**2 + 2 * 0.016**2) / 2
    assert confirmation.alarm_spread() == pytest.approx(math.sqrt(0.001 - shown))


def test_a_change_far_beyond_the_modes_is_proven_all_the_same():
    assert in_modes([0] * 6, [5] * 6, usual_variance=0.0184**2).call == "regressed"


@pytest.mark.parametrize("difference", [0.02, -0.02])
def test_an_interval_is_never_narrower_than_rounding_allows(difference):
    """All bases were rounded down and all heads up, or the other way round."""
    rounded = confirmed([difference] * 18, **EXACT, tick=0.02)

    assert (rounded.call, rounded.pairs) == ("inconclusive", 18)
    assert rounded.low < difference - 0.02
    assert rounded.high > difference + 0.02


def test_ticks_have_a_variance_of_a_sixth_of_their_square():
    steady = a_confirmation(**EXACT, tick=0.006)
    for difference in (0.5, 0.5):
        steady.add(difference)

    assert steady.alarm_spread() == pytest.approx(0.006 / math.sqrt(6))


def test_pairs_that_differ_by_more_than_a_tick_average_their_rounding_out():
    differences = [0.03, 0.05, 0.04, 0.06, 0.05, 0.04] * 3

    assert confirmed(differences, **EXACT, tick=0.01) == confirmed(differences, **EXACT)


@pytest.mark.parametrize(("noise", "is_by_tick"), [(0.0, True), (0.05, False)])
def test_rounding_is_blamed_only_where_exact_numbers_would_have_decided(noise, is_by_tick):
    confirmation = a_confirmation(**EXACT, tick=0.02)
    for sign in (1, -1, 1) * 6:
        confirmation.add(0.015 + sign * noise)

    assert confirmation.finish().call == "inconclusive"
    assert confirmation.is_by_tick is is_by_tick


def test_a_change_of_many_ticks_is_proven():
    assert confirmed([0.05] * 6, **EXACT, tick=0.01).call == "regressed"

"""What checks of one pull request may spend together, and the looks of a run after another one."""

import math

import pytest
from scipy import special

from ci_perf.judging import confirm, earlier_checks
from ci_perf.judging.policy import (
    ALPHA,
    CALM_LOOKS,
    CALM_WEIGHTS,
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_EARLY,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
)

CALM = dict(zip(CALM_LOOKS, CALM_WEIGHTS, strict=True))


def test_all_checks_together_spend_the_whole_and_no_more():
    first = math.fsum(earlier_checks.share(number) for number in range(1, 1001))
    rest = special.zeta(1.6, 1001) / special.zeta(1.6)

    assert first + rest == pytest.approx(1, rel=1e-9)


def test_a_later_check_may_spend_less():
    shares = [earlier_checks.share(number) for number in range(1, 50)]

    assert shares == sorted(shares, reverse=True)
    with pytest.raises(ValueError, match="from 1, found 0"):
        earlier_checks.share(0)


def test_a_check_whose_number_nobody_knows_may_spend_everything():
    assert confirm.share_alpha(4) == ALPHA / 4
    assert confirm.share_alpha(4, check=3) == pytest.approx(ALPHA * earlier_checks.share(3) / 4)


def test_a_run_alone_looks_as_the_policy_says():
    looks = earlier_checks.looks(CALM)

    assert looks.alarm == pytest.approx(dict(zip(LOOKS, WEIGHTS, strict=True)))
    assert looks.signs == pytest.approx({MOST_PAIRS: WEIGHT_OF_SIGNS})
    assert looks.calm == pytest.approx(CALM)
    assert looks.last == MOST_PAIRS


@pytest.mark.parametrize(("pairs", "look"), [(0, 1), (1, 1), (4, 4), (5, 4), (6, 6), (99, 18)])
def test_pairs_between_two_looks_have_the_share_of_the_last_one(pairs, look):
    assert earlier_checks.looks(CALM).calm_share(pairs) == pytest.approx(CALM[look])


def test_a_later_look_at_more_pairs_may_spend_more():
    weights = list(earlier_checks.looks(CALM, runs=3, before=MOST_PAIRS - 1).alarm.values())

    assert weights == sorted(set(weights))


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_wherever_the_runs_before_stopped_a_run_never_spends_more_than_its_share(runs):
    everywhere: dict[int, float] = {}
    of_signs: dict[int, float] = {}
    for before in range((runs - 1) * MOST_PAIRS + 1):
        looks = earlier_checks.looks(CALM, runs=runs, before=before)
        for pairs, weight in looks.alarm.items():
            # A weight depends on the number of pairs alone, or the run before could choose it.
            assert everywhere.setdefault(pairs, weight) == weight
        for pairs, weight in looks.signs.items():
            assert of_signs.setdefault(pairs, weight) == weight
        assert math.fsum(looks.calm.values()) <= earlier_checks.share(runs) * (1 + 1e-12)
        assert before < min(looks.alarm)
        assert before < looks.last <= before + MOST_PAIRS

    # The early look of the first run has spent the rest.
    spent = math.fsum((*everywhere.values(), *of_signs.values()))
    assert 1 - WEIGHT_OF_EARLY <= spent < 1
    assert sorted(of_signs) == [MOST_PAIRS * run for run in range(1, runs + 1)]


def test_no_run_can_have_had_more_pairs_than_the_most():
    with pytest.raises(ValueError, match="at most 18 pairs per earlier run, found 19"):
        earlier_checks.looks(CALM, runs=2, before=19)

"""When more blocks of one launch tell less than another launch."""

import math
import random

import pytest

from ci_perf.measuring import timing


def blocks(count, spread, seed=1):
    noise = random.Random(seed)
    return [1.0 + spread * noise.gauss(0, 1) for _ in range(count)]


def fewest(spread, *, launch_spread, in_pair=False):
    """Return how many blocks are enough, over several launches on average."""
    counts = []
    for seed in range(20):
        made = blocks(3000, spread, seed)
        counts.append(
            next(
                count
                for count in range(10, 3000)
                if timing.is_enough(
                    made[:count],
                    "median",
                    spent_s=count * 0.05,
                    start_s=50.0,
                    launch_spread=launch_spread,
                    in_pair=in_pair,
                )
            )
        )
    return sum(counts) / len(counts)


def test_blocks_are_as_many_as_kalibera_and_jones_count():
    # Their formula is about means; a median of normal noise has pi / 2 times their variance.
    expected = math.sqrt(50.0 / 0.05 * math.pi / 2 * 0.03**2 / 0.03**2)

    assert fewest(0.03, launch_spread=0.03) == pytest.approx(expected, rel=0.4)


def test_more_noise_within_launches_asks_for_more_blocks_and_more_between_them_for_fewer():
    assert fewest(0.03, launch_spread=0.03) > fewest(0.015, launch_spread=0.03)
    assert fewest(0.03, launch_spread=0.03) > fewest(0.03, launch_spread=0.06)
    # A crowded machine does not ask for blocks without end.
    assert fewest(0.5, launch_spread=0.005) < 100


def test_a_resident_pair_times_longer_because_its_blocks_have_their_disturbances_in_common():
    alone, in_pair = (fewest(0.3, launch_spread=0.001, in_pair=pair) for pair in (False, True))

    assert in_pair > 3 * alone


def test_blocks_that_do_not_differ_are_enough():
    assert timing.is_enough([1.0] * 10, "median", spent_s=0.1, start_s=10.0, launch_spread=0.001)


def test_the_fastest_block_is_known_when_others_are_as_fast():
    is_known = [1.0, 1.001, 1.001, 1.002, *[2.0] * 20]
    is_alone = [1.0, 1.4, 1.5, 1.6, *[2.0] * 20]

    def is_enough(block_s):
        return timing.is_enough(block_s, "min", spent_s=1.0, start_s=2.0, launch_spread=0.005)

    assert is_enough(is_known[:9])
    assert not is_enough(is_alone[:9])


def test_blocks_that_resemble_the_one_before_say_less():
    steady = [1.0, 1.02] * 30
    slow_then_fast = [1.0] * 30 + [1.02] * 30

    def is_enough(block_s, spent_s):
        return timing.is_enough(
            block_s, "median", spent_s=spent_s, start_s=10.0, launch_spread=0.01
        )

    assert is_enough(steady, 100.0)
    assert not is_enough(slow_then_fast, 20.0)


@pytest.mark.parametrize("statistic", ["median", "p25", "min"])
def test_two_blocks_are_enough_to_ask(statistic):
    assert not timing.is_enough(
        [1.0, 2.0], statistic, spent_s=0.1, start_s=10.0, launch_spread=0.005
    )

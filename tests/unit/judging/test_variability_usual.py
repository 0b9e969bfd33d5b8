import itertools
import math
import random
import statistics

import pytest
from scipy import stats

from ci_perf.judging import variability


def sessions(draw, *, count=200, launches=5):
    return [[draw() for _ in range(launches)] for _ in range(count)]


def test_the_upper_quartile_is_that_of_the_normal_distribution():
    quartile = variability._QUARTILE_OF_DIFFERENCE

    assert quartile == pytest.approx(math.sqrt(2) * stats.norm.isf(0.125), rel=1e-5)


def test_of_normal_launches_it_is_their_variance_whatever_sessions_differ_by():
    noise = random.Random(1)
    variance = variability.usual_variance(
        [[day + noise.gauss(0, 0.02) for _ in range(5)] for day in range(400)]
    )

    assert math.sqrt(variance) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    "launches", [(0.0, 0.3), (0.0, 0.1, 0.25, 0.45, 0.7, 1.0, 1.35, 1.75, 2.2, 2.7)]
)
def test_up_to_ten_launches_of_a_session_are_all_compared_with_each_other(launches):
    differences = [abs(a - b) for a, b in itertools.combinations(launches, 2)] * 2
    quartile = statistics.quantiles(differences, n=4, method="inclusive")[-1]

    variance = variability.usual_variance([launches, launches])

    assert math.sqrt(variance) == pytest.approx(quartile / variability._QUARTILE_OF_DIFFERENCE)


def test_a_launch_that_hangs_now_and_then_does_not_count():
    noise = random.Random(1)

    variance = variability.usual_variance(
        sessions(lambda: noise.gauss(0, 0.01) + 3 * (noise.random() < 0.03))
    )

    assert math.sqrt(variance) == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_two_modes_do(share):
    noise = random.Random(1)

    variance = variability.usual_variance(sessions(lambda: 0.05 * (noise.random() < share)))

    assert math.sqrt(variance) == pytest.approx(0.05 / variability._QUARTILE_OF_DIFFERENCE)


@pytest.mark.parametrize("known", [[], [[]], [[0.1], [0.2]], [[0.1, 0.2]]])
def test_hardly_any_launches_say_nothing(known):
    assert variability.usual_variance(known) == 0.0

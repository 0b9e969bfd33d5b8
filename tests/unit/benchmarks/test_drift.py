"""The mains that `benchmarks.drift` simulates, and how it counts notices."""

import math

import numpy as np
import pytest

from benchmarks import drift
from benchmarks.drift import Machine
from benchmarks.verdicts.regimes import REGIMES
from benchmarks.verdicts.simulated import SUITE

QUIET = Machine("quiet", REGIMES[0])


def random():
    return np.random.default_rng(5)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_correlated_sessions_keep_their_variance(correlation):
    effects = random().standard_normal((4000, 12))
    found = drift.correlated(effects, correlation)

    assert found.std(axis=0) == pytest.approx(np.ones(12), abs=0.05)
    assert np.corrcoef(found[:, 5], found[:, 6])[0, 1] == pytest.approx(correlation, abs=0.05)


def test_a_main_has_the_sessions_of_all_its_workloads():
    (main,) = drift.mains(QUIET, 1, random())

    assert main.shape == (SUITE, drift.SESSIONS)


def test_a_creep_is_told_and_a_main_that_stays_is_not():
    (main,) = drift.mains(QUIET, 1, random())

    assert not drift.is_told(main, range(1, 12))
    assert drift.told_after(main, 3, 0.02) <= 6
    assert drift.told_after(np.zeros_like(main), 3, 0.0) == math.inf


def test_only_the_sessions_that_a_baseline_holds_count():
    main = np.zeros((SUITE, drift.SESSIONS)) + random().normal(0, 1e-3, drift.SESSIONS)
    main[0, :20] += np.linspace(-0.1, 0.0, 20)

    assert drift.notices(main[:, :20])[0]
    assert not any(drift.notices(main[:, :40]))

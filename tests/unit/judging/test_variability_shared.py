import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import variability
from ci_perf.judging.variability import Variance
from tests import smyth

BOUNDS = (1.0, 30.0)
known = st.builds(Variance, st.floats(1e-10, 10), st.integers(1, 20))


def theirs(variances, bounds):
    return smyth.prior([v.value for v in variances], [v.df for v in variances], *bounds)


def simulated(*, workloads, df, prior_df, scale, seed=7):
    """Variances drawn as Smyth assumes: true ones scaled inverse chi-square, seen ones around."""
    noise = np.random.default_rng(seed)
    true = scale * prior_df / noise.chisquare(prior_df, workloads)
    return [Variance(float(v), df) for v in true * noise.chisquare(df, workloads) / df]


@given(st.lists(known, min_size=2, max_size=20))
def test_a_prior_of_mixed_precision_agrees_too(variances):
    bounds = (0.5, min(20.0, sum(v.df for v in variances)))

    value, worth = theirs(variances, bounds)

    shared = variability.prior(variances, bounds)
    assert shared.value == pytest.approx(value, rel=1e-7)
    assert shared.df == pytest.approx(worth, rel=1e-7)


def test_a_prior_finds_what_the_variances_were_drawn_from():
    variances = simulated(workloads=5000, df=4, prior_df=6, scale=1e-4)

    shared = variability.prior(variances, BOUNDS)

    assert shared.df == pytest.approx(6, rel=0.15)
    assert shared.value == pytest.approx(1e-4, rel=0.05)


@pytest.mark.parametrize(
    ("own", "count", "assumed", "df"), [(10, 20, 0, 30), (1, 3, 0, 3), (1, 3, 4, 7)]
)
def test_a_prior_is_worth_no_more_than_its_bound_and_what_it_was_made_of(own, count, assumed, df):
    variances = [Variance(1e-4, own)] * count

    assert variability.prior(variances, BOUNDS, assumed_df=assumed).df == df


@pytest.mark.parametrize(
    "variances", [[], [Variance(1e-4, 8)], [Variance(1e-4, 8), variability.UNKNOWN]]
)
def test_one_workload_has_nothing_in_common_with_itself(variances):
    assert variability.prior(variances, BOUNDS) == variability.UNKNOWN


def test_a_variance_of_zero_has_a_prior():
    shared = variability.prior([Variance(0.0, 4)] * 5, BOUNDS)

    assert 0 < shared.value < 1e-11


@given(known, known)
def test_a_moderated_variance_lies_between_both_and_is_worth_both(own, shared):
    moderate = variability.moderate(own, shared)

    low, high = sorted((own.value, shared.value))
    assert low * (1 - 1e-12) <= moderate.value <= high * (1 + 1e-12)
    assert moderate.df == own.df + shared.df


@given(known)
def test_what_is_unknown_moderates_nothing(own):
    assert variability.moderate(own, variability.UNKNOWN).value == pytest.approx(own.value)
    assert variability.moderate(variability.UNKNOWN, own).value == pytest.approx(own.value)


def test_two_unknowns_are_unknown():
    unknown = variability.moderate(variability.UNKNOWN, variability.UNKNOWN)

    assert unknown == variability.UNKNOWN
    assert not math.isnan(unknown.value)

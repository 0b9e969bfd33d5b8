"""The screen beside a test of statsmodels: one launch per session, so two samples."""

import dataclasses
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import weightstats

from ci_perf.judging.policy import (
    BETA_SCREEN,
    Policy,
)
from ci_perf.judging.screen import screen

# The same examples each time: two ways to round may differ at the very edge of a decision.
same = settings(derandomize=True)
LIMIT = 0.02
POLICY = Policy(limit=LIMIT, session_spread=0.01)
HALF = math.log1p(math.expm1(LIMIT) / 2)
# What is assumed of sessions counts as nothing, so that a textbook's test is left.
ASSUMING_NOTHING = dataclasses.replace(POLICY, prior_df=1e-13)


histories = st.lists(
    st.integers(-200, 200).map(lambda n: n / 1e4), min_size=3, max_size=20, unique=True
)


def screened(sessions, head):
    return screen([([[value] for value in sessions], [head])], ASSUMING_NOTHING)[0]


@same
@given(histories, st.floats(-0.03, 0.03))
def test_the_screen_passes_what_the_equivalence_test_of_statsmodels_does(sessions, head):
    """The head is one more session: two samples of one variance, of which one has one value."""
    chance, *_ = weightstats.ttost_ind(
        np.array([head]), np.array(sessions), -LIMIT, LIMIT, usevar="pooled"
    )

    found = screened(sessions, head)
    is_moved = max(found.low, -found.high) > HALF
    assert found.clears(ASSUMING_NOTHING) is bool(chance < BETA_SCREEN and not is_moved)

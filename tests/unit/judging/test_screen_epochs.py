"""The screen against a history of several epochs."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import PolicyKind, policy_of
from ci_perf.judging.screen import screen

TIME = policy_of(PolicyKind.TIME)
QUIET = (0.0, 0.001, -0.001)
logs = st.floats(-0.2, 0.2)
launches = st.lists(logs, min_size=1, max_size=4)
workloads = st.tuples(st.lists(launches, min_size=1, max_size=4), launches)
suites = st.lists(workloads, min_size=1, max_size=5)
histories = st.builds(
    lambda current, earlier: History(current=current, earlier=tuple(earlier)),
    st.lists(launches, min_size=1, max_size=4),
    st.lists(st.lists(launches, min_size=1, max_size=3), max_size=3),
)


def screened(history, head):
    return screen([(history, head)], TIME)[0]


def moved(values, by):
    return [value + by for value in values]


@given(suites)
def test_a_history_of_one_epoch_is_its_sessions(suite):
    histories = [(History(current=sessions), head) for sessions, head in suite]

    assert screen(histories, TIME) == screen(suite, TIME)


@given(histories, launches)
def test_an_earlier_epoch_says_nothing_of_where_the_head_should_lie(history, head):
    found = screen([(history, head)], TIME)[0]

    assert found.difference == screen([(history.current, head)], TIME)[0].difference
    assert found.sessions == len(history.current)


@given(histories, launches, st.floats(-1, 1))
def test_how_large_an_accepted_change_was_changes_nothing(history, head, by):
    moved_on = History(
        current=history.current,
        earlier=tuple([moved(session, by) for session in epoch] for epoch in history.earlier),
    )

    for one, other in zip(
        screen([(history, head)], TIME), screen([(moved_on, head)], TIME), strict=True
    ):
        assert (one.difference, one.df) == (other.difference, other.df)
        assert one.error == pytest.approx(other.error, rel=1e-6, abs=1e-9)
        assert one.launch_variance == pytest.approx(other.launch_variance, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("earlier", [(), (1,), (3,), (4, 2, 1)])
@pytest.mark.parametrize("current", [1, 3])
def test_spreads_are_pooled_within_epochs_as_an_independent_computation_says(current, earlier):
    noise = random.Random(f"{current} {earlier}")
    epochs = [
        [[noise.gauss(centre, 0.004) for _ in range(3)] for _ in range(count)]
        for centre, count in enumerate((current, *earlier))
    ]
    head = [noise.gauss(0, 0.004) for _ in range(3)]

    found = screen([(History(current=epochs[0], earlier=tuple(epochs[1:])), head)], TIME)[0]

    own_df = sum(len(epoch) - 1 for epoch in epochs)
    squares = sum(((m := np.mean(epoch, axis=1)) - m.mean()) @ (m - m.mean()) for epoch in epochs)
    launch = np.mean(
        [np.var(one, ddof=1) for epoch in epochs for one in epoch] + [np.var(head, ddof=1)]
    )
    assumed = TIME.session_spread**2 + launch / 3
    between = (squares + TIME.prior_df * assumed) / (own_df + TIME.prior_df)
    error = math.sqrt(max(between, launch / 6) * (1 + 1 / current))
    assert found.df == own_df + TIME.prior_df
    assert found.launch_variance == pytest.approx(launch, rel=1e-8)
    assert found.error == pytest.approx(error, rel=1e-8)


def test_after_an_accepted_change_one_session_screens_with_the_spread_of_those_before():
    """A new epoch is no new machine: what it took to know its noise is not forgotten."""
    quiet = tuple([QUIET] * 2 for _ in range(10))

    assert not screened([QUIET], QUIET).clears(TIME)
    assert screened(History(current=[QUIET], earlier=quiet), QUIET).clears(TIME)


def test_a_base_of_fewer_launches_than_its_history_is_less_certain():
    earlier = ([QUIET] * 3,)
    few, many = ([QUIET[:1]], [QUIET])

    assert (
        screened(History(current=few, earlier=earlier), QUIET).error
        > screened(History(current=many, earlier=earlier), QUIET).error
    )


def test_a_launch_of_an_earlier_epoch_that_is_no_logarithm_is_refused():
    with pytest.raises(ValueError, match="a session of the history"):
        screened(History(current=[QUIET], earlier=([[math.nan]],)), QUIET)

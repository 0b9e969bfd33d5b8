import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judging.policy import BETA_SCREEN, PolicyKind, policy_of
from ci_perf.judging.screen import screen
from tests import smyth

TIME = policy_of(PolicyKind.TIME)
WIDE = policy_of(PolicyKind.TIME, 0.05)
MEMORY = policy_of(PolicyKind.HOST_MEMORY)
QUIET = (0.0, 0.001, -0.001)


def screened(sessions, head, *, among=(), under=TIME):
    """Screen one workload, among others."""
    return screen([(sessions, head), *among], under)[0]


def moved(values, by):
    return [value + by for value in values]


def simulated(*, sessions, seed, session_sd=0.005, launch_sd=0.004, size=20, launches=3, effect=0):
    """A suite in which the machine differs between sessions, and launches within them."""
    noise = random.Random(seed)

    def session(by=0.0):
        centre = noise.gauss(by, session_sd)
        return [noise.gauss(centre, launch_sd) for _ in range(launches)]

    return [([session() for _ in range(sessions)], session(effect)) for _ in range(size)]


def of_numpy(suite, under):
    """JUDGING's rule for sessions of one size, all at once; yields difference, error, df, pass."""
    base = np.array([sessions for sessions, _ in suite])
    head = np.array([values for _, values in suite])
    count, per_session = base.shape[1:]
    everything = np.concatenate([base, head[:, None]], axis=1)
    launch = everything.var(axis=2, ddof=1).mean(axis=1)
    noise = launch / per_session
    means = base.mean(axis=2)
    if count == 1:
        v, df = under.lone_session_spread**2 + noise, under.prior_df
    else:
        own, seen = means.var(axis=1, ddof=1), len(suite) * (count - 1)
        most = min(30.0, seen + under.prior_df)
        scale, shared = smyth.prior(own, [count - 1] * len(suite), 1.0, most)
        assumed = under.session_spread**2 + np.median(noise)
        scale = (seen * scale + under.prior_df * assumed) / (seen + under.prior_df)
        df = shared + count - 1
        v = (shared * scale + (count - 1) * own) / df
    error = np.sqrt(np.maximum(v, noise / 2) * (1 + 1 / count))
    difference = head.mean(axis=1) - means.mean(axis=1)
    reach = stats.t.isf(BETA_SCREEN, df) * error
    passes = (np.abs(difference) + reach < under.limit) & (
        np.abs(difference) - reach <= under.half_limit
    )
    return zip(difference, error, np.broadcast_to(df, error.shape), passes, strict=True)


@pytest.mark.parametrize("sessions", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("limit", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("spread", [0.0005, 0.005, 0.03])
def test_a_suite_agrees_with_an_independent_computation(sessions, limit, spread):
    under = policy_of(PolicyKind.TIME, limit)
    suite = simulated(sessions=sessions, session_sd=spread, seed=f"{sessions} {limit}")

    found = screen(suite, under)

    for one, (difference, error, df, passes) in zip(found, of_numpy(suite, under), strict=True):
        assert one.difference == pytest.approx(difference, rel=1e-8, abs=1e-12)
        assert (one.error, one.df) == pytest.approx((error, df), rel=1e-8)
        assert one.clears(under) is bool(passes)


def test_the_prior_of_the_confirmation_agrees_with_an_independent_computation():
    suite = simulated(sessions=2, seed=3)
    pooled = [
        np.mean([np.var(group, ddof=1) for group in (*sessions, head)]) for sessions, head in suite
    ]

    scale, shared = smyth.prior(pooled, [6] * len(suite), 0.5, 20.0)

    for one, own in zip(screen(suite, TIME), pooled, strict=True):
        assert one.launch_variance == pytest.approx(own, rel=1e-8)
        assert one.prior_variance == pytest.approx(
            (shared * scale + 6 * own) / (shared + 6), rel=1e-8
        )
        assert one.prior_df == pytest.approx(min(shared + 6, 30))


@pytest.mark.parametrize(
    ("sessions", "head", "under", "is_cleared"),
    [
        ([QUIET] * 5, QUIET, TIME, True),
        ([QUIET] * 5, moved(QUIET, 0.021), TIME, False),
        ([QUIET] * 5, moved(QUIET, -0.021), TIME, False),  # a gain is a suspect, too
        # How much sessions differ is an assumption after one session, and that is wide.
        ([QUIET], QUIET, TIME, False),
        ([QUIET], QUIET, WIDE, False),
        ([QUIET] * 2, QUIET, WIDE, True),
        ([[0.0]], [0.0], WIDE, False),
        ([[0.0]], [0.0], MEMORY, False),  # nobody knows how much launches differ
        ([[0.0, 0.0]], [0.0], MEMORY, True),
        ([[0.0], [0.001], [-0.001], [0.0], [0.001]], [0.0005], TIME, True),
    ],
)
def test_a_head_like_enough_sessions_passes_alone(sessions, head, under, is_cleared):
    assert screened(sessions, head, under=under).clears(under) is is_cleared


NOISY = (0.0, 0.06, -0.06)
LESS_NOISY = (0.0, 0.01, -0.01)
ASSUMED = TIME.session_spread**2


@pytest.mark.parametrize(
    ("sessions", "head", "among", "variance"),
    [
        # Identical launches are still of sessions that may differ.
        ([[0.3] * 3], [0.3] * 3, [], 2 * ASSUMED),
        # Sessions that agree by chance differ by half of what launches cause, at least.
        ([NOISY] * 20, NOISY, [], 0.0012 / 2 * (1 + 1 / 20)),
        # Single launches do not make the suite look quiet.
        (
            [[0.0], [0.0]],
            [0.0],
            [([LESS_NOISY], LESS_NOISY)] * 2 + [([[0.0]], [0.0])] * 3,
            4 * (ASSUMED + 0.0001 / 3) / 5 * 1.5,
        ),
        # Alone, its own two sessions are one observation beside four assumed ones.
        ([[0.0] * 3, [0.02] * 3], [0.01] * 3, [], (4 * ASSUMED + 0.0002) / 5 * 1.5),
    ],
)
def test_what_sessions_are_taken_to_differ_by(sessions, head, among, variance):
    assert screened(sessions, head, among=among).error == pytest.approx(math.sqrt(variance))


def test_what_is_known_of_launches_goes_into_the_confirmation():
    """As thirty observations at most, and as none where each session has one launch."""
    lone = screened([[0.0], [0.001], [-0.001]], [0.0005])
    taken = screened([[0.0]], [0.0], among=[([NOISY], NOISY)] * 5)

    assert (lone.launch_variance, lone.prior_variance, lone.prior_df) == (0.0, 0.0, 0.0)
    assert taken.launch_variance == taken.prior_variance > 0.001
    assert taken.error == pytest.approx(math.sqrt(2 * (ASSUMED + taken.launch_variance)))
    assert [screened([QUIET] * n, QUIET[:2]).prior_df for n in (20, 1)] == [30, 3]


def test_fewer_launches_of_the_head_make_it_less_sure():
    sessions = [moved((0.0, 0.03, -0.03, 0.02, -0.02), by) for by in (0, 0.01, -0.01)]

    found = [screened(sessions, [0.0] * count).error for count in (5, 3, 1)]

    assert found == sorted(found)
    assert found[2] > 1.2 * found[0]


# The sessions, how much they and their launches differ, and launches of a session and of the head.
MACHINES = [(n, spread, 0.004, 3, 3) for n in (1, 2, 3, 5) for spread in (0.001, 0.004, 0.01)]


@pytest.mark.parametrize(
    ("sessions", "session_sd", "launch_sd", "launches", "of_head"),
    [*MACHINES, (5, 0.001, 0.006, 5, 2)],
)
def test_a_change_as_large_as_the_limit_seldom_passes(
    sessions, session_sd, launch_sd, launches, of_head
):
    found = []
    for seed in range(60):
        suite = simulated(
            seed=seed,
            effect=TIME.limit,
            sessions=sessions,
            session_sd=session_sd,
            launch_sd=launch_sd,
            launches=launches,
        )
        found += screen([(before, head[:of_head]) for before, head in suite], TIME)

    assert sum(one.clears(TIME) for one in found) <= 1.1 * BETA_SCREEN * len(found)


logs = st.floats(-745, 710) | st.floats(-0.2, 0.2)
launches = st.lists(logs, min_size=1, max_size=4)
workloads = st.tuples(st.lists(launches, min_size=1, max_size=4), launches)


@given(st.lists(workloads, max_size=5))
def test_every_figure_is_finite_and_in_order(suite):
    """Also of values as large as floats can be, and of none."""
    found = screen(suite, TIME)

    assert len(found) == len(suite)
    for one in found:
        assert -math.inf < one.low <= one.difference <= one.high < math.inf
        assert all(
            math.isfinite(value) and value >= 0
            for value in (one.error, one.launch_variance, one.prior_variance, one.prior_df)
        )
        assert one.df >= 1


@pytest.mark.parametrize(
    ("sessions", "head", "message"),
    [
        ([], [0.0], "history: expected at least one session"),
        ([[]], [0.0], "a session of the history: expected at least one launch"),
        ([[0.0]], [], "the head: expected at least one launch"),
        ([[0.0]], [math.nan], "the head: expected natural logarithms"),
        ([[math.inf]], [0.0], "a session of the history: expected natural logarithms"),
        ([[3e8]], [3e8], "a session of the history: expected natural logarithms"),
    ],
)
def test_what_cannot_be_screened_is_refused(sessions, head, message):
    with pytest.raises(ValueError, match=message):
        screened(sessions, head)

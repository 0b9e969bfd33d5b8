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
QUIET = (0.0, 0.001, -0.001)
logs = st.floats(-0.2, 0.2)
launches = st.lists(logs, min_size=1, max_size=4)
workloads = st.tuples(st.lists(launches, min_size=1, max_size=4), launches)
suites = st.lists(workloads, min_size=1, max_size=5)


def screened(sessions, head, *, among=(), under=TIME):
    """Screen one workload, among others."""
    return screen([(sessions, head), *among], under)[0]


def is_suspect(one, under=TIME):
    return not one.clears(under)


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


def test_a_quiet_history_passes_a_head_like_it():
    suite = simulated(sessions=5, session_sd=0.001, launch_sd=0.001, seed=1)

    assert not any(is_suspect(one) for one in screen(suite, TIME))


def test_a_head_beyond_the_limit_is_a_suspect():
    one = screened([QUIET] * 5, moved(QUIET, 0.021))

    assert is_suspect(one)
    assert one.difference == pytest.approx(0.021)


def test_a_gain_is_a_suspect_too():
    assert is_suspect(screened([QUIET] * 5, moved(QUIET, -0.021)))


def test_one_session_passes_nothing_by_default():
    """How much sessions differ is then the policy's assumption, and that is wide."""
    assert is_suspect(screened([QUIET], QUIET))


def test_one_session_passes_no_time_however_large_the_limit():
    assert is_suspect(screened([QUIET], QUIET, under=WIDE), WIDE)
    assert not is_suspect(screened([QUIET] * 2, QUIET, under=WIDE), WIDE)


def test_one_launch_on_each_side_passes_nothing():
    assert is_suspect(screened([[0.0]], [0.0], under=WIDE), WIDE)


def test_one_launch_in_each_of_many_sessions_is_judged_by_how_these_differ():
    one = screened([[0.0], [0.001], [-0.001], [0.0], [0.001]], [0.0005])

    assert not is_suspect(one)
    assert (one.launch_variance, one.prior_variance, one.prior_df) == (0.0, 0.0, 0.0)


def test_identical_launches_are_still_of_sessions_that_may_differ():
    one = screened([[0.3, 0.3, 0.3]], [0.3, 0.3, 0.3])

    assert one.error == pytest.approx(math.sqrt(2) * TIME.session_spread)


def test_sessions_that_agree_by_chance_are_not_believed_beyond_their_launches():
    """Half of what launches cause is the least that sessions are taken to differ by."""
    one = screened([[0.0, 0.06, -0.06]] * 20, [0.0, 0.06, -0.06])

    noise = 0.0036 / 3
    assert one.error == pytest.approx(math.sqrt(noise / 2 * (1 + 1 / 20)))


def test_a_workload_of_single_launches_takes_their_spread_from_the_suite():
    noisy = (0.0, 0.06, -0.06)

    one = screened([[0.0]], [0.0], among=[([noisy], noisy)] * 5)

    assert one.launch_variance == one.prior_variance > 0.001
    assert one.error == pytest.approx(math.sqrt(2 * (TIME.session_spread**2 + one.launch_variance)))


def test_single_launches_do_not_make_the_suite_look_quiet():
    noisy = (0.0, 0.01, -0.01)
    single = ([[0.0]], [0.0])

    one = screened([[0.0], [0.0]], [0.0], among=[([noisy], noisy)] * 2 + [single] * 3)

    assumed = TIME.session_spread**2 + 0.0001 / 3
    assert one.error == pytest.approx(math.sqrt(4 * assumed / 5 * 1.5))


def test_a_workload_alone_is_moderated_by_the_policy_only():
    """Nothing is shared: its own two sessions are one observation beside four assumed ones."""
    one = screened([[0.0] * 3, [0.02] * 3], [0.01] * 3)

    variance = (4 * TIME.session_spread**2 + 0.0002) / 5
    assert one.df == 5
    assert one.error == pytest.approx(math.sqrt(variance * 1.5))


def test_a_noisy_neighbour_widens_a_quiet_workload():
    quiet = [moved(QUIET, by) for by in (0.0, 0.0005, -0.0005)]
    noisy = [moved(QUIET, by) for by in (0.0, 0.05, -0.05)]

    among_quiet = screened(quiet, QUIET, among=[(quiet, QUIET)] * 5)
    among_noisy = screened(quiet, QUIET, among=[(noisy, QUIET)] * 5)

    assert among_quiet.error < among_noisy.error


def test_fewer_launches_of_the_head_make_it_less_sure():
    sessions = [moved((0.0, 0.03, -0.03, 0.02, -0.02), by) for by in (0, 0.01, -0.01)]

    found = [screened(sessions, [0.0] * count).error for count in (5, 3, 1)]

    assert found == sorted(found)
    assert found[2] > 1.2 * found[0]


def test_the_history_counts_at_most_thirty_observations_in_the_confirmation():
    assert screened([QUIET] * 20, QUIET).prior_df == 30
    assert screened([QUIET], QUIET[:2]).prior_df == 3


def share_passed(effect, *, head_launches=3, **suite):
    """How many workloads of many simulated suites pass, whose head differs by `effect`."""
    passed = total = 0
    for seed in range(60):
        items = simulated(seed=seed, effect=effect, **suite)
        for one in screen([(s, head[:head_launches]) for s, head in items], TIME):
            passed += one.clears(TIME)
            total += 1
    return passed / total


@pytest.mark.parametrize("sessions", [1, 2, 3, 5])
@pytest.mark.parametrize("session_sd", [0.001, 0.004, 0.01])
def test_a_change_as_large_as_the_limit_seldom_passes(sessions, session_sd):
    assert share_passed(TIME.limit, sessions=sessions, session_sd=session_sd) <= 1.1 * BETA_SCREEN


def test_it_seldom_passes_with_fewer_launches_of_the_head_than_of_a_session():
    passed = share_passed(
        TIME.limit, sessions=5, session_sd=0.001, launch_sd=0.006, launches=5, head_launches=2
    )

    assert passed <= 1.1 * BETA_SCREEN


@given(suites)
def test_every_figure_is_finite_and_in_order(suite):
    for one in screen(suite, TIME):
        assert one.low <= one.difference <= one.high
        assert all(
            math.isfinite(value) and value >= 0
            for value in (one.error, one.launch_variance, one.prior_variance, one.prior_df)
        )
        assert one.df >= 1


@given(
    st.lists(
        st.tuples(
            st.lists(
                st.lists(st.floats(-745, 710), min_size=1, max_size=3), min_size=1, max_size=3
            ),
            st.lists(st.floats(-745, 710), min_size=1, max_size=3),
        ),
        max_size=4,
    )
)
def test_values_as_large_as_floats_can_be_have_finite_figures(suite):
    for one in screen(suite, TIME):
        assert math.isfinite(one.low)
        assert math.isfinite(one.high)


def test_an_empty_suite_has_no_suspects():
    assert screen([], TIME) == []


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

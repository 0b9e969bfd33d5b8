"""The noise that is simulated has the size that its regime says."""

import math

import numpy as np
import pytest

from benchmarks.verdicts import regimes, simulated
from benchmarks.verdicts.regimes import Regime, Workloads

MANY = 4000
STEADY = Regime("steady", (0.01, 0.01), (0.004, 0.004), (0.02, 0.02), slow_step_share=0.0)


def random():
    return np.random.default_rng(7)


def drawn(regime, **changes):
    fields = {name: getattr(regime, name) for name in regime.__dataclass_fields__} | changes
    return Workloads.draw(Regime(**fields), MANY, random())


@pytest.mark.parametrize("regime", regimes.REGIMES, ids=lambda regime: regime.name)
def test_deviations_stay_in_the_ranges_of_their_regime(regime):
    workloads = Workloads.draw(regime, MANY, random())

    for deviations, (low, high) in (
        (workloads.session, regime.session),
        (workloads.launch, regime.launch),
        (workloads.step, regime.step),
    ):
        assert low <= deviations.min() <= low * 1.01
        assert high * 0.99 <= deviations.max() <= high


def test_deviations_are_drawn_evenly_on_a_log_scale():
    workloads = drawn(STEADY, session=(0.003, 0.012))

    assert np.median(workloads.session) == pytest.approx(math.sqrt(0.003 * 0.012), rel=0.05)


def test_sessions_differ_as_much_as_they_should():
    effects = drawn(STEADY).session_effects(5, 20, random())

    assert effects.std() == pytest.approx(0.01, rel=0.1)


def test_half_of_the_variance_between_sessions_is_common_to_a_pull_request():
    effects = drawn(STEADY).session_effects(5, 20, random())
    means = effects.reshape(-1, 20, 5).mean(axis=1)

    expected = 0.01**2 * (regimes.COMMON_SHARE + (1 - regimes.COMMON_SHARE) / 20)
    assert means.var() == pytest.approx(expected, rel=0.15)


def test_pull_requests_share_no_session():
    effects = drawn(STEADY).session_effects(1, 20, random()).reshape(-1, 20)

    neighbours = np.corrcoef(effects[:-1, 0], effects[1:, 0])[0, 1]

    assert abs(neighbours) < 0.25


def test_jumps_move_a_tenth_of_the_sessions_by_three_percent():
    effects = drawn(STEADY, session=(1e-6, 1e-6), jump_share=0.1).session_effects(5, 20, random())

    jumped = np.abs(effects) > 0.02

    assert jumped.mean() == pytest.approx(0.1, abs=0.01)
    assert np.abs(effects[jumped]) == pytest.approx(regimes.JUMP, rel=0.01)


def test_launches_differ_as_much_as_they_should():
    launches = drawn(STEADY, step=(1e-9, 1e-9)).launches(1, 5, random())

    assert launches.mean(axis=-1).std() == pytest.approx(0.004, rel=0.05)


def test_steps_differ_as_much_as_they_should_and_follow_each_other():
    steps = drawn(STEADY, launch=(1e-9, 1e-9)).launches(1, 2, random())

    neighbours = (steps[..., 1:] * steps[..., :-1]).mean() / steps.var()

    assert steps.std() == pytest.approx(0.02, rel=0.05)
    assert neighbours == pytest.approx(regimes.STEP_CORRELATION, abs=0.02)


SILENT = {"launch": (1e-9, 1e-9), "step": (1e-9, 1e-9)}
SECOND = {"second_mode_share": (0.2, 0.2), "second_mode_gap": (0.03, 0.03)}


@pytest.mark.parametrize(
    ("changes", "whole", "share", "size"),
    [
        ({"slow_step_share": 0.05, "slow_step": 0.15}, np.asarray, 0.05, 0.15),
        # A slow launch is slow throughout.
        ({"slow_launch_share": 0.05}, lambda steps: steps.min(axis=-1), 0.05, STEADY.slow_launch),
        (SECOND, lambda steps: steps.mean(axis=-1), 0.2, 0.03),
    ],
    ids=["slow steps", "slow launches", "second mode"],
)
def test_what_is_slow_is_as_much_and_as_slow_as_it_should_be(changes, whole, share, size):
    seconds = whole(drawn(STEADY, **SILENT, **changes).launches(1, 5, random()))

    is_slow = seconds > 1e-3

    assert is_slow.mean() == pytest.approx(share, rel=0.2)
    assert seconds[is_slow].mean() == pytest.approx(size, rel=0.1)


def test_a_job_drifts_from_its_first_launch_to_its_last():
    launches = drawn(STEADY, **SILENT, trend=0.015).launches(1, 9, random()).mean(axis=-1)[:, 0]

    assert (launches[:, -1] - launches[:, 0]).std() == pytest.approx(0.015, rel=0.05)
    assert launches[:, 4] == pytest.approx(0.0, abs=1e-6)


def observed(effect):
    """Return one measured batch of the regime `drift`, with the same seed for any effect."""
    changes = np.full(40, math.log1p(effect))
    return regimes.simulate(
        regimes.REGIMES[3], pull_requests=2, suite=20, changes=changes, random=random()
    )


def test_a_change_moves_the_head_and_nothing_else():
    before, after = observed(0.0), observed(0.05)

    assert np.array_equal(before.sessions, after.sessions)
    assert np.array_equal(before.paired_base, after.paired_base)
    assert after.head - before.head == pytest.approx(math.log(1.05))
    assert after.paired_head - before.paired_head == pytest.approx(math.log(1.05))


def test_pairs_share_the_effect_of_their_session():
    regime = Regime("swaying", (0.5, 0.5), (1e-6, 1e-6), (1e-6, 1e-6), slow_step_share=0.0)
    seen = regimes.simulate(
        regime, pull_requests=1, suite=20, changes=np.zeros(20), random=random()
    )

    assert seen.paired_head == pytest.approx(seen.paired_base, abs=1e-4)
    assert seen.paired_head[:, 0, 0] == pytest.approx(seen.head[:, 0, 0], abs=1e-4)
    assert np.abs(seen.sessions[:, -1] - seen.head).max() > 0.1


def test_a_drift_within_the_job_does_not_favour_base_or_head():
    regime = Regime(
        "drifting", (1e-6, 1e-6), (1e-6, 1e-6), (1e-6, 1e-6), trend=1.0, slow_step_share=0.0
    )
    seen = regimes.simulate(
        regime, pull_requests=1, suite=20, changes=np.zeros(20), random=random()
    )
    sums = (seen.paired_head - seen.paired_base)[:, :, 0]

    assert sums[:, ::2].mean(axis=1) == pytest.approx(-sums[:, 1::2].mean(axis=1), abs=1e-4)
    assert np.abs(sums).min() > 1e-5


def test_the_parts_of_the_seeds_share_no_pull_request():
    regime = regimes.REGIMES[0]
    first, second = (
        next(simulated.unchanged(regime, part, 1)).observed for part in simulated.PARTS
    )

    assert not np.intersect1d(first.head, second.head).size


def test_the_same_seed_gives_the_same_pull_request_again():
    regime = regimes.REGIMES[0]
    once, again = (next(simulated.changed(regime, "open", 1, 0.02)).observed for _ in range(2))

    assert np.array_equal(once.head, again.head)


def test_one_workload_of_each_pull_request_changes():
    batches = list(simulated.changed(regimes.REGIMES[0], "open", 30, 0.10))

    assert [len(batch.rows) for batch in batches] == [25, 5]
    for batch in batches:
        assert list(np.asarray(batch.rows) // simulated.SUITE) == list(range(len(batch.rows)))

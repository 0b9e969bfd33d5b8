import math
import subprocess
import sys

import pytest

from ci_perf.judging import policy
from ci_perf.judging.policy import (
    ALPHA_OF_SIDE,
    CALM_LOOKS,
    CALM_WEIGHTS,
    CALM_WEIGHTS_WITHOUT_HISTORY,
    LIMITS_OF_TESTS,
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_EARLY,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
    Policy,
    PolicyKind,
    default_limits,
    policy_of,
)
from ci_perf.model.suite import Limit
from tests.runs import CPU, GPU, MIB


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALPHA", 0.05),
        ("ALPHA_BEYOND_ZERO", 0.15),
        ("ALPHA_OF_SIDE", {1: 0.9, 0: 0.5, -1: 0.1}),
        ("BETA_SCREEN", 0.03),
        ("BETA_CONFIRM", 0.06),
        ("SCREENED_LAUNCHES", 3),
        ("LOOKS", (6, 9, 13, 18)),
        ("EARLY_PAIRS", 3),
        ("OBVIOUS", 1.0),
        ("OBVIOUS_WITH_COUNTS", 0.15),
        ("OBVIOUS_LIMITS", 3),
        ("OBVIOUS_GAPS", 2),
        ("FEWEST_KNOWN_LAUNCHES", 5),
        ("WEIGHT_OF_EARLY", 1 / 50),
        ("WEIGHT_OF_SIGNS", 1 / 15),
        ("CALM_LOOKS", (1, 2, 3, 4, 6, 9, 13, 18)),
        ("CALM_WEIGHTS", (0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.1)),
        ("PAIRS_WITHOUT_HISTORY", 4),
        ("CALM_TOGETHER", 1.6),
        ("CALM_TOGETHER_WITHOUT_HISTORY", 1.5),
        ("DAY_KNOWN_DF", 3.0),
        ("TRIMMED", 0.2),
        ("TRIMMED_CALM_WEIGHTS", {6: 0.05, 9: 0.1, 13: 0.15, 18: 0.7}),
        ("TRIMMED_BLOCKS", (0.2, 0.3, 0.4)),
        ("PAIRS_FOR_RANGES", 4),
        ("SESSION_PRIOR_DF", (1.0, 30.0)),
        ("LAUNCH_PRIOR_DF", (0.5, 20.0)),
        ("PRIOR_DF_CAP", 8.0),
        ("MOST_PRIOR_DF", 30.0),
        ("LARGEST_DAY", 12.0),
        ("DAY_PRIOR_DF", 3.0),
        ("CONTRADICTING", 4.0),
        ("PREDICTING_SESSIONS", 3),
        ("SMALLEST_VARIANCE", 1e-12),
        ("FLOAT_ERROR", 1e-12),
        (
            "CALM_WEIGHTS_WITHOUT_HISTORY",
            dict(
                zip((2, 3, 4, 6, 9, 13, 18), (0.05, 0.1, 0.25, 0.2, 0.15, 0.1, 0.15), strict=True)
            ),
        ),
        ("WEIGHTS", (2 / 15, 3 / 15, 4 / 15, 5 / 15 - 1 / 50)),
    ],
)
def test_docs_accuracy_was_measured_with_these_numbers(name, value):
    """Who changes one measures it anew, by benchmarks.verdicts."""
    assert getattr(policy, name) == pytest.approx(value, rel=1e-9, abs=0)


def test_a_change_of_the_limit_itself_is_not_below_it_whatever_floats_add():
    time = policy_of(PolicyKind.TIME)

    assert not time.is_below_limit(time.limit - 1e-15)
    assert time.is_below_limit(time.limit - 1e-9)


@pytest.mark.parametrize(
    ("kind", "limit", "spread"),
    [
        (PolicyKind.TIME, 0.02, 0.01),
        (PolicyKind.TAIL, 0.06, 0.015),
        (PolicyKind.ONE_OFF, 0.10, 0.02),
        (PolicyKind.HOST_MEMORY, 0.02, 0.002),
    ],
)
def test_each_kind_has_its_own_default_and_an_alarm_begins_at_half_of_it(kind, limit, spread):
    found = policy_of(kind)

    assert (math.expm1(found.limit), math.expm1(found.half_limit)) == pytest.approx(
        (limit, limit / 2)
    )
    assert (found.session_spread, found.prior_df) == (spread, 4)


def test_another_limit_leaves_the_assumed_spread_of_sessions_alone():
    found = policy_of(PolicyKind.TIME, 0.05)

    assert math.expm1(found.limit) == pytest.approx(0.05)
    assert found.session_spread == policy_of(PolicyKind.TIME).session_spread


def test_where_a_suite_says_nothing_these_are_the_limits():
    """A share, a size, and whether it gates."""
    exact, told = Limit(), Limit(gate=False)

    assert default_limits() == {
        "step_time_s": Limit(relative=0.02),
        "step_cpu_s": Limit(relative=0.02, gate=False),
        "step_p95_s": Limit(relative=0.06, gate=False),
        "scaling_efficiency": Limit(relative=0.02, gate=False),
        "first_step_s": Limit(relative=0.1, absolute=4.0, gate=False),
        "compile_cold_s": Limit(relative=0.25, absolute=2.0, gate=False),
        "compile_warm_s": Limit(relative=0.25, absolute=2.0, gate=False),
        "energy_j": Limit(relative=0.1, gate=False),
        "data_wait": Limit(absolute=0.05, gate=False),
        "h2d": Limit(absolute=0.05, gate=False),
        "host_rss_peak_bytes": Limit(relative=0.02, absolute=16 * MIB),
        "peak_allocated_bytes": Limit(relative=0.01, absolute=2 * MIB),
        "peak_reserved_bytes": Limit(relative=0.05, absolute=2 * MIB, gate=False),
        **dict.fromkeys(("graphs", "operators", "flops", "kernels"), told),
        **dict.fromkeys(("graph_breaks", "recompiles", "host_waits"), exact),
        **dict.fromkeys(("graph_replays", "spills", "count", "score"), exact),
        "time": Limit(relative=0.02),
        "tail": Limit(relative=0.06, gate=False),
        "rate": Limit(relative=0.02),
        "bytes": Limit(relative=0.02),
        "fingerprint": Limit(relative=0.001, gate=False),
        "canary": Limit(relative=0.03),
    }
    assert default_limits(CPU)["canary"] == Limit(relative=0.3)
    (of_tests,) = LIMITS_OF_TESTS.values()
    assert of_tests == Limit(relative=0.02, absolute=16 * MIB, gate=False)


@pytest.mark.parametrize("name", ["step_time_s", "step_cpu_s"])
def test_both_clocks_of_a_step_gate_on_a_cpu_with_a_wider_limit(name):
    assert default_limits(CPU)[name] == Limit(relative=0.05)
    assert default_limits(GPU)["step_time_s"] == default_limits()["step_time_s"]
    assert default_limits()["step_time_s"] == Limit(relative=0.02)


@pytest.mark.parametrize(
    ("low", "high", "clears"),
    [
        (-0.019, 0.019, True),
        (0.0, 0.021, False),
        (-0.021, 0.0, False),
        (0.011, 0.015, False),
        (-0.015, -0.011, False),
        (0.009, 0.015, True),
    ],
)
def test_an_interval_clears_within_the_limit_and_not_beyond_half_of_it(low, high, clears):
    assert policy_of(PolicyKind.TIME).clears(low, high) is clears


@pytest.mark.parametrize(
    ("looks", "weights", "other"),
    [
        (LOOKS, WEIGHTS, WEIGHT_OF_SIGNS + WEIGHT_OF_EARLY),
        (CALM_LOOKS, CALM_WEIGHTS, 0.0),
        (CALM_LOOKS[1:], tuple(CALM_WEIGHTS_WITHOUT_HISTORY.values()), 0.0),
    ],
)
def test_all_tests_share_what_they_may_be_wrong(looks, weights, other):
    assert math.fsum(weights) + other == pytest.approx(1.0)
    assert len(weights) == len(looks)
    assert list(looks) == sorted(set(looks))


def test_where_an_alarm_is_looked_for_so_is_its_opposite_and_both_end_together():
    assert set(LOOKS) < set(CALM_LOOKS)
    assert LOOKS[-1] == CALM_LOOKS[-1] == MOST_PAIRS


def test_the_sides_share_all_of_alpha_whatever_the_screen_saw():
    for suspected in (-1, 0, 1):
        assert math.fsum(ALPHA_OF_SIDE[side * suspected] for side in (-1, 1)) == 1


@pytest.mark.parametrize(
    ("limit", "spread", "df"), [(0.0, 0.01, 4), (-0.01, 0.01, 4), (0.02, 0, 4), (0.02, 0.01, 0)]
)
def test_a_policy_under_which_no_answer_would_be_right_is_refused(limit, spread, df):
    with pytest.raises(ValueError, match="expected limit > 0"):
        Policy(limit=limit, session_spread=spread, prior_df=df)


def test_a_judged_metric_without_a_default_limit_fails_at_import():
    program = """
from ci_perf.model import metrics
metrics.LIMITED += ("step_energy_j",)
from ci_perf.judging import policy
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode != 0
    assert "step_energy_j: expected a default limit" in done.stderr

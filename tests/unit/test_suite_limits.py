"""What suite.toml says of limits, margins, presets, and of what fails a job."""

import itertools
import math
import tomllib
from pathlib import Path

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import Policy
from ci_perf.model.suite import Limit
from tests import suites
from tests.calibrations import a_calibration
from tests.suites import plan


@pytest.fixture
def folder(tmp_path):
    """A folder with two workload files that would raise when imported."""
    return suites.of("matmul", "bert", where=tmp_path)


def test_a_limit_may_be_for_the_numerics_and_for_the_canaries(folder):
    found = plan(
        folder,
        """
        limits = {fingerprint = {relative = 0.01, gate = true}}
        [suites.smoke.limits]
        canary = {relative = 0.25}
        [[suites.smoke.workloads]]
        workload = "bert"
        """,
    )

    assert found.limits.of("bert")["fingerprint"] == Limit(relative=0.01)
    assert found.limits.of("bert")["canary"] == Limit(relative=0.25)


def test_a_limit_keeps_what_a_table_does_not_name(folder):
    table = "[limits]\nfirst_step_s = { relative = 0.5 }\nfingerprint = { relative = 0.01 }\n"
    found = plan(folder, table + "[[suites.smoke.workloads]]\nworkload = 'matmul'").limits.default

    assert found["first_step_s"] == Limit(relative=0.5, absolute=2.0, margin=1.0, gate=False)
    assert found["fingerprint"] == Limit(relative=0.01, gate=False)


@pytest.mark.parametrize("name", ["fingerprint", "canary"])
def test_what_has_no_unit_has_no_absolute_limit(folder, name):
    table = f"[limits]\n{name} = {{ absolute = 1.0 }}\n"

    with pytest.raises(InvalidFileError, match=rf"limits\.{name}\.absolute: expected only"):
        plan(folder, table + "[[suites.smoke.workloads]]\nworkload = 'matmul'")


def test_a_limit_for_what_is_only_recorded_is_refused(folder):
    with pytest.raises(InvalidFileError, match="unknown metric 'power_w'"):
        plan(folder, "[limits]\npower_w = {}\n[[suites.smoke.workloads]]\nworkload = 'matmul'")


@pytest.mark.parametrize(
    ("preset", "limit"),
    [("", Limit(relative=0.01, margin=0.02)), ("shared", Limit(relative=0.02, margin=0.05))],
)
def test_a_preset_sets_the_limits_of_what_is_noisy(folder, preset, limit):
    named = f'[suites.smoke]\npreset = "{preset}"\n' if preset else ""
    found = plan(folder, named + "[[suites.smoke.workloads]]\nworkload = 'matmul'")

    assert found.limits.default["step_time_s"] == limit


def test_the_preset_of_a_calibration_holds_where_the_suite_names_none(folder):
    entry = "[[suites.smoke.workloads]]\nworkload = 'matmul'"

    strict = a_calibration(preset="strict")
    silent = plan(folder, entry, calibration=strict)
    named = plan(folder, f'[suites.smoke]\npreset = "relaxed"\n{entry}', calibration=strict)

    assert silent.limits.default["step_time_s"].relative == pytest.approx(0.005)
    assert named.limits.default["step_time_s"].margin == pytest.approx(0.03)


@pytest.mark.parametrize(
    "limit", ["{ relative = 0.1, margin = 0.05 }", "{ margin = 0.001 }"], ids=["both", "margin"]
)
def test_a_margin_within_the_limit_is_refused_with_its_place(folder, limit):
    text = f"[suites.smoke]\nlimits = {{ step_time_s = {limit} }}\n"

    with pytest.raises(InvalidFileError, match=r"limits.step_time_s.*expected a margin larger"):
        plan(folder, text + "[[suites.smoke.workloads]]\nworkload = 'matmul'")


def test_the_largest_limit_takes_its_margin_along(folder):
    text = "[limits]\nstep_time_s = { relative = 10 }\n"
    found = plan(folder, text + "[[suites.smoke.workloads]]\nworkload = 'matmul'")

    assert found.limits.default["step_time_s"] == Limit(relative=10, margin=20)


@pytest.mark.parametrize("key", ["preset", "fail_on"])
def test_a_word_that_is_none_of_a_few_is_answered_with_these(folder, key):
    text = f"[suites.smoke]\n{key} = 'strickt'\n"

    with pytest.raises(InvalidFileError, match=rf"smoke\.{key}: expected one of '.*, found 'str"):
        plan(folder, text + "[[suites.smoke.workloads]]\nworkload = 'matmul'")


def test_what_fails_a_job_and_how_a_checkout_is_made_ready_is_part_of_the_plan(folder):
    found = plan(
        folder,
        """
        python_path = ["src"]
        setup = { command = "make extension", timeout_s = 60 }
        [suites.smoke]
        fail_on = "unconfirmed"
        [[suites.smoke.workloads]]
        workload = "matmul"
        """,
    )

    assert (found.fail_on, found.python_path) == ("unconfirmed", ("src",))
    assert (found.setup.command, found.setup.timeout_s) == ("make extension", 60)


ROOT = Path(__file__).parents[2]
SHIPPED = (
    "ci_perf/gate/templates/suite.toml",
    "workloads/suite.toml",
    "examples/tiny_vision/workloads/suite.toml",
)


def margins(table):
    """Yield limit and margin wherever both are written in a table, however deep."""
    if isinstance(table, list):
        for inner in table:
            yield from margins(inner)
    elif isinstance(table, dict):
        if "margin" in table:
            yield table["relative"], table["margin"]
        for inner in table.values():
            yield from margins(inner)


@pytest.mark.parametrize("name", SHIPPED)
def test_no_shipped_suite_calls_more_than_twice_its_limit_unchanged(name):
    found = list(margins(tomllib.loads((ROOT / name).read_text(encoding="utf-8"))))

    assert found
    assert all(relative < margin <= 2 * relative for relative, margin in found)


@pytest.mark.parametrize("spread", [0.05, 0.1, 0.15])
def test_unchanged_stays_in_reach_of_the_margin_of_init_on_a_busy_machine(spread):
    suite = tomllib.loads((ROOT / SHIPPED[0]).read_text(encoding="utf-8"))
    ((limit, margin),) = margins(suite)
    policy = Policy(floor=math.log1p(limit), margin=math.log1p(margin), session_spread=0.01)
    confirmation = Confirmation(policy=policy, alpha=share_alpha(3), prior_variance=0, prior_df=0)

    # Every two differences have this standard deviation, and no mean.
    noise = itertools.cycle((spread, -spread))
    outcome = None
    while outcome is None:
        outcome = confirmation.add(next(noise))

    assert outcome.call == "unchanged"


def test_what_is_said_of_the_step_time_holds_for_its_cpu_time(folder):
    text = "[limits]\nstep_time_s = { relative = 0.1, margin = 0.15 }\n"
    found = plan(folder, text + "[[suites.smoke.workloads]]\nworkload = 'matmul'")

    limit = found.limits.default["step_cpu_s"]
    assert (limit.relative, limit.margin, limit.gate) == (0.1, 0.15, False)


def test_cpu_time_gates_where_others_use_the_cpu(folder):
    entry = "[[suites.smoke.workloads]]\nworkload = 'matmul'"
    shared = f'[suites.smoke]\npreset = "shared"\n{entry}'
    crowded = a_calibration(noise="crowded", trimmed=True)

    def cpu_time_gates(text, **more):
        return plan(folder, text, **more).limits.of("matmul")["step_cpu_s"].gate

    assert cpu_time_gates(shared)
    assert not cpu_time_gates(entry)
    assert cpu_time_gates(entry, calibration=crowded)
    assert not cpu_time_gates(shared, calibration=a_calibration(noise="shared_host"))
    assert plan(folder, entry, calibration=crowded).limits.trimmed


def test_a_step_time_that_does_not_gate_takes_its_cpu_time_along(folder):
    text = '[suites.smoke]\npreset = "shared"\nlimits = { step_time_s = { gate = false } }\n'
    found = plan(folder, text + "[[suites.smoke.workloads]]\nworkload = 'matmul'")

    assert not found.limits.default["step_cpu_s"].gate

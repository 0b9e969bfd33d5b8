"""What a workload may do to a launch that profiles: it loses what cannot be known, and says so."""

import time

import pytest
import torch

from ci_perf.features.explain.worker import operators
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.features.explain.worker.passes import Passes
from ci_perf.measuring.device import Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.explanation import NAME_CHARS
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase
from tests import profiled
from tests.launches import BUILD, HEAD, failure_of, result_of


@pytest.fixture
def launch(tmp_path):
    """Launch a workload that consists of this source, to profile it."""
    return profiled.launcher(tmp_path / "repository")


# Functions with names that no source can spell, and a thread that calls and dispatches meanwhile.
HOSTILE = f"""{HEAD}
import threading
import time
import torch
def honest(values):
    return values.sin()
def beside():
    while True:
        torch.ones(3).tanh()
        time.sleep(0)
def renamed(name):
    code = honest.__code__.replace(co_name=name, co_qualname=name)
    return type(honest)(code, globals())
names = ["::error::<b>|`\\n\\u202e", "n" * 100_000, "\\ud800"]
functions = [renamed(name) for name in names]
def build(context):
    threading.Thread(target=beside, daemon=True).start()
    def step():
        for function in functions:
            function(torch.ones(3))
    return Workload(step=step, teardown=lambda: 1 / 0)
"""


def test_names_are_cut_and_other_threads_are_not_watched(launch):
    profile = result_of(launch(HOSTILE))
    names = {use.function.function for use in profile.functions}

    assert {name.strip("n") for name in names} == {
        "::error::<b>|`\n\u202e",
        "…",
        "?",
        "build.<locals>.step",
    }
    assert max(map(len, names)) == NAME_CHARS
    assert {use.operator for use in profile.operators} == {"aten::ones", "aten::sin"}
    assert all(use.calls == 1 for use in profile.operators if use.operator == "aten::sin")
    assert (profile.varies, profile.missing) == (
        (),
        {"teardown": "ZeroDivisionError: division by zero"},
    )


@pytest.mark.parametrize(("last", "counted"), [(3, False), (7, True)])
def test_a_step_that_raises_later_keeps_what_was_there_before(launch, last, counted):
    source = f"""{HEAD}
import torch
steps = []
def step():
    torch.ones(3)
    steps.append(1)
    if len(steps) > {last}: raise ValueError("no more data")
{BUILD}"""

    profile = result_of(launch(source))

    reason = "ValueError: no more data"
    assert bool(profile.operators) == bool(profile.functions) == counted
    assert profile.absent == ("" if counted else reason)
    lost = ("step_s", "operators", "functions", "trace") if counted else ()
    assert profile.missing == dict.fromkeys(lost, reason)
    assert profile.step_s is None
    assert all(use.call_s is None for use in profile.operators)


def test_a_step_that_never_runs_is_a_failure_of_its_phase(launch):
    failure = failure_of(launch(f"{HEAD}\ndef step():\n    1 / 0\n{BUILD}"))

    assert (failure.phase, failure.reason) == (
        Phase.FIRST_STEP,
        "ZeroDivisionError: division by zero",
    )


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ("time.sleep(600)", NO_RESULT_IN_TIME),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
    ],
)
def test_a_launch_that_hangs_or_is_killed_while_it_profiles_is_a_failure_of_that_phase(
    launch, then, why
):
    source = f"""{HEAD}
import os, signal, time
steps = []
def step():
    steps.append(1)
    if len(steps) > 5: {then}
{BUILD}"""

    failure = failure_of(launch(source, timeout_s=8))

    assert failure.phase is Phase.COUNTERS
    assert why in failure.reason


def passes(step, root, *, limit_s):
    """Watch a step for which so much time is left."""
    left = TimeLeft(limit_s, time.monotonic)
    return Passes(step, AuthorCode(str(root)), Device(), Group(), Watcher(), left)


def test_a_step_of_many_operators_takes_no_more_than_its_time(tmp_path):
    values = torch.ones(3)
    steps = []

    def step():
        steps.append(1)
        for _ in range(10_000):
            values.add_(1)

    late = passes(step, tmp_path, limit_s=0.01).count()
    assert (late.steps, late.operators, len(steps)) == (0, (), 1)
    assert late.absent == "counting the operators of a step took more than 0 s"

    counted = passes(step, tmp_path, limit_s=600).count()
    assert [use.calls for use in counted.operators] == [10_000]
    steps.clear()
    (timed,) = passes(step, tmp_path, limit_s=0.01).time_operators(counted.operators)
    # One step at least: as many on all ranks.
    assert (len(steps), timed.call_s > 0) == (1, True)


def test_what_comes_after_the_time_is_over_is_not_counted_and_the_step_goes_on(tmp_path):
    with operators.count_calls(AuthorCode(str(tmp_path)), end=0.0) as counted:
        ones = torch.ones(3)

    assert (counted.total(), ones.tolist()) == (0, [1.0, 1.0, 1.0])

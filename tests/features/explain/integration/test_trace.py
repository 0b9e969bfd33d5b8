"""What torch's profiler adds to a launch that profiles: for real, on a CPU."""

import errno
import gzip
import json
import math
import os
import platform

import pytest

from ci_perf.features.explain import limits_report
from ci_perf.features.explain.limits import find_limits
from ci_perf.features.explain.worker import kept_trace, trace
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.features.explain.worker.passes import Passes
from ci_perf.measuring.device import CudaDevice, Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import Instruments, TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.explanation import HostTimes, OperatorTimes, StepProfile
from ci_perf.model.task import TRACE
from ci_perf.report.phrases import plain
from tests import profiled
from tests.fakes.stream import Stream
from tests.launches import BUILD, HEAD, a_task, result_of
from tests.step_profiles import a_use

torch = pytest.importorskip("torch")

LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset
from ci_perf.workload import Workload

class Slow(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.ones(8) * index

def batches(loader):
    while True:
        yield from loader

def build(context):
    net = torch.nn.Linear(8, 8)
    loader = batches(DataLoader(Slow(), batch_size=4, num_workers=WORKERS))
    def step():
        with context.phase("data"):
            batch = next(loader)
        with context.phase("forward"):
            net(batch).sum().backward()
    return Workload(step=step)
"""
OF_ONE_OPERATOR = f"""{HEAD}
import os, torch
from torch import autograd
values = torch.ones(64, 64)
def step():
    values @ values
    if torch.autograd._profiler_enabled():
        os.abort()
{BUILD}"""


@pytest.fixture
def launch(tmp_path):
    return profiled.launcher(tmp_path / "repository")


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    """The profile of a step whose process loads its own data slowly, and the trace of it."""
    folder = tmp_path_factory.mktemp("starved")
    kept = folder / "it.head.pt.trace.json.gz"
    outcome = profiled.launcher(folder / "repository")(
        LOADER.replace("WORKERS", "0"), trace_to=kept
    )
    return result_of(outcome), kept


def test_a_starved_loader_gets_its_cure(starved):
    assert_starved(starved[0], "process", "workers")


def test_starved_workers_get_their_cure(launch, tmp_path):
    profile = result_of(launch(LOADER.replace("WORKERS", "1")))

    assert_starved(profile, "workers", "more_workers")
    assert profile.trace_file == ""
    assert list(tmp_path.rglob("*.gz")) == []


def assert_starved(profile, loader, cure):
    limits = find_limits(profile)
    assert profile.missing == {}
    assert (limits.part, limits.limits[0].reason) == ("host", "data")
    assert (limits.limits[0].loader, limits.limits[0].cures) == (loader, (cure,))
    assert limits.limits[0].share > 0.5
    assert "num_workers" in plain(limits_report.describe_limits(limits)[1])


def test_a_step_that_computes_is_not_said_to_starve(launch):
    source = LOADER.replace("time.sleep(0.002)", "pass").replace("WORKERS", "0")
    large = "torch.ones(300, 300) @ torch.ones(300, 300)"
    busy = source.replace("net(batch)", f"for _ in range(20): {large}\n            net(batch)")

    limits = find_limits(result_of(launch(busy)))

    assert limits.busy > 0.5
    assert all(limit.reason != "data" or limit.share < 0.5 for limit in limits.limits)


def test_the_operators_of_a_step_are_in_its_table(starved):
    host = starved[0].host

    calls = {use.operator: use.calls for use in host.operators}
    assert 1 <= host.steps <= trace.MOST_STEPS
    assert calls["aten::addmm"] == 1
    assert sum(use.host_s for use in host.operators) <= host.step_s


def test_keeps_a_trace_that_viewers_open_and_that_names_no_machine(starved):
    profile, kept = starved

    assert profile.trace_file == kept.name
    text = gzip.decompress(kept.read_bytes()).decode()
    assert str(kept.parent) not in text
    assert f'"{platform.node()}"' not in text
    whole = json.loads(text)
    assert whole["schemaVersion"] == 1
    assert whole["host_name"] == ""
    lasting = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    for event in lasting:
        assert event["name"]
        assert {"pid", "tid"} <= event.keys()
        assert math.isfinite(event["ts"])
        assert event["dur"] >= 0
    annotated = [event["name"] for event in lasting if event.get("cat") == "user_annotation"]
    steps = [name for name in annotated if name.startswith("ProfilerStep#")]
    assert len(steps) == profile.host.steps
    assert annotated.count("forward") == len(steps)
    assert any("Input Dims" in event.get("args", {}) for event in lasting)
    assert any(event["name"] == "[memory]" for event in whole["traceEvents"])
    assert not any(event.get("cat") == "python_function" for event in lasting)


def test_a_profiler_that_ends_the_process_loses_only_the_trace(launch, tmp_path):
    kept = tmp_path / "it.head.pt.trace.json.gz"

    profile = result_of(launch(OF_ONE_OPERATOR, trace_to=kept))

    assert [use.operator for use in profile.operators] == ["aten::mm"]
    assert (profile.host, profile.device, profile.trace_file) == (None, None, "")
    assert profile.missing["trace"] == profile.missing["trace_file"] == trace.ENDED
    assert find_limits(profile).absent == trace.ENDED


def test_a_workload_without_torch_has_no_trace(launch):
    profile = result_of(launch(f"{HEAD}\ndef step(): sum(range(1000))\n{BUILD}"))

    assert profile.missing["trace"] == "torch was not imported"


def test_a_process_that_is_timed_meets_no_profiler(launch):
    """`import torch` imports torch.profiler: we import no more of it, and nothing of it runs."""
    source = f"""{HEAD}
import sys
assert "torch" not in sys.modules
import torch
def profilers():
    return {{name for name in sys.modules if "profiler" in name}}
of_torch = profilers()
torch.profiler.profile = torch.autograd.profiler.profile = None  # who starts one fails
def step():
    assert not torch.autograd._profiler_enabled()
    assert not torch.autograd.profiler._is_profiler_enabled
    assert profilers() == of_torch
    ours = [name for name in sys.modules if name.startswith("ci_perf.features.explain.worker")]
    assert not ours, ours
    torch.ones(8) + 1
{BUILD}"""

    result = result_of(launch(source, profile=False))

    assert result.process.absent == {}


# --- in this process


@pytest.fixture
def traced(tmp_path):
    """Trace a step of one operator in this process."""

    def take(step=lambda: torch.ones(64) + 1, *, limit_s=60.0, here=None):
        group, left = Group(), TimeLeft(limit_s, clock=lambda: 0.0)
        code = AuthorCode(str(tmp_path))
        passes = Passes(step, code, here or Device(), group, Watcher(), left)
        todo = a_task(tmp_path / "it.py", trace_to=TRACE)
        instruments = Instruments(left, 1e-3, group)
        return trace.add_trace(StepProfile(steps=2), passes, todo, tmp_path, instruments)

    return take


@pytest.mark.parametrize(
    ("error", "why"),
    [(ValueError("no profiler here"), "ValueError: no profiler here"), (SystemExit, "SystemExit:")],
)
def test_a_step_that_fails_beneath_the_profiler_has_no_trace(traced, error, why):
    def step():
        if torch.autograd._profiler_enabled():
            raise error

    profile = traced(step)

    assert (profile.host, profile.device) == (None, None)
    assert profile.missing["trace"] == why


def test_a_short_step_is_traced_often(traced):
    profile = traced()

    assert profile.missing == {}
    assert profile.host.steps == trace.MOST_STEPS


def test_fewer_steps_are_traced_where_they_have_many_events(traced, monkeypatch):
    monkeypatch.setattr(trace, "MOST_EVENTS", 100)

    profile = traced(lambda: [torch.ones(8) for _ in range(10)])

    assert 1 <= profile.host.steps < trace.MOST_STEPS


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("MOST_EVENTS", 2, "events is too much to trace"),
        ("_SHARE", 0.0, "events is too much to trace"),
    ],
)
def test_says_why_there_is_no_trace(traced, monkeypatch, name, value, why):
    monkeypatch.setattr(trace, name, value)

    profile = traced()

    assert profile.host is None
    assert why in profile.missing["trace"]


def test_a_disk_that_is_full_loses_the_file_and_not_what_is_read_off_the_trace(
    traced, tmp_path, monkeypatch
):
    def write(_source, target, _root):
        target.write_text("half of a trace")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kept_trace, "write", write)

    profile = traced()

    assert profile.host is not None
    assert profile.missing == {"trace_file": "the trace cannot be kept: No space left on device"}
    assert not (tmp_path / TRACE).exists()


def test_a_gpu_that_the_profiler_does_not_see_leaves_the_host(traced):
    with pytest.warns(UserWarning, match="CUDA"):
        profile = traced(here=CudaDevice(Stream(launch_ns=1, record_ns=1), 0, clock=lambda: 0))

    assert profile.device is None
    assert profile.host is not None
    assert "CUPTI" in profile.missing["device"]


def test_operators_take_what_device_or_host_work_for_them_and_no_wait():
    """A wait around a call costs as much as a small kernel; the trace knows the kernels alone."""
    large = a_use("aten::mm", calls=100, call_s=210e-6, arguments="f32[8,64]")
    small = a_use("aten::mm", calls=5, call_s=105e-6, arguments="f32[1,8]")
    launched = a_use("aten::add", calls=10, call_s=30e-6)
    unknown = a_use("aten::empty", calls=3, call_s=1e-6)
    times = [
        OperatorTimes(operator="aten::mm", calls=105, host_s=0.001, device_s=0.0205),
        OperatorTimes(operator="aten::add", calls=10, host_s=100e-6, device_s=20e-6),
    ]
    host = HostTimes(steps=1, step_s=0.021, operators=tuple(times))

    scaled = trace.scale_to_trace([large, small, launched, unknown], host)

    seconds = [use.calls * (use.call_s or 0.0) for use in scaled]
    assert sum(seconds[:2]) == pytest.approx(0.0205)
    assert seconds[0] / seconds[1] == pytest.approx(40)  # as they were timed
    assert scaled[2].call_s == pytest.approx(10e-6)  # bound by the host that launches it
    assert scaled[3] == unknown

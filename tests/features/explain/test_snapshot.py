"""What is asked of CUDA's allocator by a launch that keeps a snapshot; no GPU is needed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci_perf.features.explain.model import StepProfile
from ci_perf.features.explain.worker import snapshot
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.features.explain.worker.passes import Passes
from ci_perf.measuring.device import CpuDevice, CudaDevice
from ci_perf.measuring.distributed import Solo
from ci_perf.measuring.instruments import Instruments, TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.task import SNAPSHOT
from tests.fakes.stream import Stream


class Allocator:
    """What stands in for torch.cuda.memory: notes what it is asked, and answers."""

    def __init__(self, *, refuses="nothing", lines=1):
        self.asked = []
        self._refuses, self._lines = refuses, lines

    def _record_memory_history(self, enabled, **how):
        self.asked.append((enabled, how.get("max_entries")))
        if enabled == self._refuses:
            raise RuntimeError("cudaMallocAsync does not yet support recordHistory")

    def _dump_snapshot(self, path):
        Path(path).write_bytes(b"1" * 3_000)

    def memory_summary(self):
        return "| PyTorch CUDA memory summary |\n" * self._lines

    def reset_peak_memory_stats(self):
        self.asked.append("reset")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Record the steps of a launch with an allocator; on a CPU without one."""

    def record(allocator, step=lambda: None, *, limit_s=60.0):
        cuda = SimpleNamespace(memory=allocator)
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        here = CudaDevice(Stream(launch_ns=1, record_ns=1), 0, clock=lambda: 0)
        group, left = Solo(), TimeLeft(limit_s, clock=lambda: 0.0)
        device = here if allocator else CpuDevice()
        passes = Passes(step, AuthorCode("/nowhere"), device, group, Watcher(), left)
        instruments = Instruments(left, 1e-3, group)
        return snapshot.add_snapshot(StepProfile(steps=2), passes, tmp_path, instruments)

    return record


def test_a_few_steps_are_recorded_with_so_many_entries_and_then_no_more(recorded, tmp_path):
    steps, allocator = [], Allocator(lines=1_000)

    profile = recorded(allocator, lambda: steps.append(1))

    assert profile.missing == {}
    assert len(steps) == snapshot.STEPS
    assert allocator.asked == ["reset", ("all", snapshot.MOST_ENTRIES), (None, None)]
    assert len(profile.memory_summary) == 10_000
    assert (tmp_path / SNAPSHOT).exists()


def test_a_snapshot_that_is_too_large_is_not_kept(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "MOST_SNAPSHOT_BYTES", 2_000)

    assert "larger than 0 MiB" in recorded(Allocator()).missing["snapshot"]
    assert not (tmp_path / SNAPSHOT).exists()


@pytest.mark.parametrize(
    ("allocator", "step", "limit_s", "why"),
    [
        (None, None, 60.0, "the workload ran on a CPU, and only CUDA's allocator keeps a history"),
        (Allocator(), None, 1e-4, "were too long"),
        (Allocator(refuses="all"), None, 60.0, "does not yet support recordHistory"),
        (Allocator(), lambda: 1 / 0, 60.0, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_fails_loses_only_the_snapshot(recorded, tmp_path, allocator, step, limit_s, why):
    profile = recorded(allocator, step or (lambda: pytest.fail("a step was run")), limit_s=limit_s)

    assert why in profile.missing["snapshot"]
    assert (profile.steps, profile.memory_summary) == (2, "")
    assert not (tmp_path / SNAPSHOT).exists()

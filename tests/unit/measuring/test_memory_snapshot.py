"""What is asked of CUDA's allocator, and what is taken out of a snapshot before people get it.

The snapshots have the form in which torch leaves them; no GPU is needed to write one.
"""

import pickle
import pickletools

import pytest

from ci_perf.measuring.device import CpuDevice
from ci_perf.measuring.distributed import Solo
from ci_perf.measuring.instruments import Instruments, TimeLeft
from ci_perf.measuring.profiling import memory_snapshot
from ci_perf.measuring.profiling.memory_snapshot import MemorySnapshot
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.passes import Passes
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import SNAPSHOT

ROOT = "/home/ann/my.project"
# All that pytorch.org/memory_viz can read, by its own source.
OPCODES = (
    "PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 "
    "LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM "
    "SETITEMS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3"
)


def snapshot(entries=1):
    """A snapshot of one tensor, whose frames all allocations share."""
    frames = [
        {"filename": f"{ROOT}/src/net.py", "line": 7, "name": "forward"},
        {"filename": "/opt/python 3/torch/nn/modules/linear.py", "line": 134, "name": "forward"},
    ]
    block = {"address": 2**46, "size": 512, "requested_size": 400, "state": "active_allocated"}
    rest = {"address": 2**46 + 512, "size": 2**21 - 512, "requested_size": 0, "state": "inactive"}
    alloc = {"action": "alloc", "addr": 2**46, "size": 512, "stream": 0, "time_us": 5}
    segment = {
        "device": 0,
        "address": 2**46,
        "stream": 0,
        "is_expandable": False,
        "total_size": 2**21,
        "allocated_size": 512,
        "active_size": 512,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "blocks": [{**block, "frames": frames}, {**rest, "frames": []}],
    }
    return {
        "segments": [segment],
        "device_traces": [[{**alloc, "frames": frames} for _ in range(entries)]],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1},
        "external_annotations": [{"name": f"data of {ROOT}/sets/one", "weight": 0.5}],
    }


class Allocator:
    """What stands in for torch.cuda.memory: notes what it is asked, and answers."""

    def __init__(self, *, refuses="nothing", lines=1):
        self.asked = []
        self._refuses, self._lines = refuses, lines

    def _record_memory_history(self, enabled, **how):
        self.asked.append((enabled, how.get("max_entries")))
        if enabled == self._refuses:
            raise RuntimeError("cudaMallocAsync does not yet support recordHistory")

    def _snapshot(self):
        return snapshot()

    def memory_summary(self):
        return "| PyTorch CUDA memory summary |\n" * self._lines

    def reset_peak_memory_stats(self):
        self.asked.append("reset")


@pytest.fixture
def recorded(tmp_path):
    """Record the steps of a launch with an allocator."""

    def record(allocator, step=lambda: None, *, limit_s=60.0):
        group, left = Solo(), TimeLeft(limit_s, clock=lambda: 0.0)
        passes = Passes(step, AuthorCode(ROOT), CpuDevice(), group, Watcher(), left)
        instruments = Instruments(left, 1e-3, group)
        of_steps = MemorySnapshot(passes, allocator, tmp_path, ROOT)
        return of_steps.added_to(StepProfile(steps=2), instruments)

    return record


def test_a_snapshot_keeps_its_numbers_and_loses_who_and_where(tmp_path):
    assert memory_snapshot.write(snapshot(), tmp_path / "kept", ROOT) == ""

    kept = pickle.loads((tmp_path / "kept").read_bytes())
    expected = snapshot()
    for frames in (
        expected["segments"][0]["blocks"][0]["frames"],
        expected["device_traces"][0][0]["frames"],
    ):
        frames[0]["filename"], frames[1]["filename"] = "src/net.py", "…/linear.py"
    expected["external_annotations"][0]["name"] = "data of sets/one"
    assert kept == expected


def test_the_viewer_of_torch_reads_it_and_what_allocations_share_is_written_once(tmp_path):
    for entries in (1, 3_001):
        memory_snapshot.write(snapshot(entries), tmp_path / str(entries), ROOT)

    one, data = ((tmp_path / name).read_bytes() for name in ("1", "3001"))
    assert (len(data) - len(one)) / 3_000 < 60
    assert {operation.name for operation, *_ in pickletools.genops(data)} <= set(OPCODES.split())
    viewer = pytest.importorskip("torch.cuda._memory_viz")
    assert "3001 entries" in viewer.trace(pickle.loads(data))
    assert "total_allocated: 400.0B" in viewer.segsum(pickle.loads(data))


def test_nothing_but_plain_data_is_written(tmp_path):
    class Hostile:
        def __reduce__(self):
            return print, ("obeyed",)

    class Text(str):
        __slots__ = ()

    seen = {"a": Hostile(), Text("b"): Text(f"{ROOT}/c.py"), "d": {1, 2}, "e": b"f"}
    memory_snapshot.write(seen, tmp_path / "kept", ROOT)

    kept = pickle.loads((tmp_path / "kept").read_bytes())
    assert kept == {"a": None, "b": "c.py", "d": None, "e": None}
    assert {type(name) for name in kept} == {str}


def test_a_snapshot_that_is_too_large_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_snapshot, "MOST_SNAPSHOT_BYTES", 2_000)

    assert "larger than 0 MiB" in memory_snapshot.write(snapshot(3_000), tmp_path / "kept", ROOT)
    assert not (tmp_path / "kept").exists()


def test_a_few_steps_are_recorded_with_so_many_entries_and_then_no_more(recorded, tmp_path):
    steps, allocator = [], Allocator(lines=1_000)

    profile = recorded(allocator, lambda: steps.append(1))

    assert profile.missing == {}
    assert len(steps) == memory_snapshot.STEPS
    assert allocator.asked == ["reset", ("all", memory_snapshot.MOST_ENTRIES), (None, None)]
    assert len(profile.memory_summary) == 10_000
    assert (tmp_path / SNAPSHOT).exists()


@pytest.mark.parametrize(
    ("allocator", "limit_s", "why"),
    [
        (None, 60.0, "the workload ran on a CPU, and only CUDA's allocator keeps a history"),
        (Allocator(), 1e-4, "were too long"),
    ],
)
def test_on_a_cpu_or_without_time_there_is_none_and_no_step_is_run(
    recorded, allocator, limit_s, why
):
    profile = recorded(allocator, lambda: pytest.fail("a step was run"), limit_s=limit_s)

    assert why in profile.missing["snapshot"]


@pytest.mark.parametrize(
    ("allocator", "step", "why"),
    [
        (Allocator(refuses="all"), lambda: None, "does not yet support recordHistory"),
        (Allocator(), lambda: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_what_fails_loses_only_the_snapshot(recorded, tmp_path, allocator, step, why):
    profile = recorded(allocator, step)

    assert why in profile.missing["snapshot"]
    assert (profile.steps, profile.memory_summary) == (2, "")
    assert not (tmp_path / SNAPSHOT).exists()


def test_who_makes_what_stays_is_noted_and_a_refusal_stops_no_build():
    allocator = Allocator()
    with memory_snapshot.noting_what_stays(allocator):
        allocator.asked.append("build")
    with memory_snapshot.noting_what_stays(Allocator(refuses="state")):
        pass
    with memory_snapshot.noting_what_stays(None):
        pass

    assert allocator.asked == [("state", None), "build", (None, None)]

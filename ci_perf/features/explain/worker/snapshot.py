"""Record what CUDA's allocator does in some steps, for people: a snapshot, and torch's summary.

The last pass of a launch that profiles, and only where somebody asks: the allocator notes the stack
of each allocation. A snapshot is a pickle that torch writes, and nothing of ours reads it.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_perf.features.explain.model import StepProfile
from ci_perf.features.explain.worker.passes import Passes
from ci_perf.features.explain.worker.trace import note_missing
from ci_perf.measuring.device import CpuDevice, Device
from ci_perf.measuring.instruments import Instruments
from ci_perf.model.task import MOST_SNAPSHOT_BYTES, SNAPSHOT

STEPS: Final = 3
# Allocations and releases. One takes some 500 bytes of the file, and microseconds to write.
MOST_ENTRIES: Final = 50_000
# A struct refuses a longer text; torch's table has half of that.
_SUMMARY_CHARS: Final = 10_000
_ON_CPU: Final = "the workload ran on a CPU, and only CUDA's allocator keeps a history"
ENDED: Final = "the process ended while CUDA's allocator kept its history"


@contextlib.contextmanager
def note_frames(here: Device) -> Iterator[None]:
    """Within, have the allocator note who makes tensors: a later snapshot tells of those alive."""
    if isinstance(here, CpuDevice):
        yield
        return
    memory = sys.modules["torch"].cuda.memory
    with contextlib.suppress(Exception):  # the snapshot itself will say why
        memory._record_memory_history("state", context="state", stacks="python")  # noqa: SLF001
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            memory._record_memory_history(None)  # noqa: SLF001


def add_snapshot(
    profile: StepProfile, passes: Passes, folder: Path, instruments: Instruments
) -> StepProfile:
    """Return the profile with torch's summary, beside a snapshot in `folder`; or why there is none.

    Of several ranks, raises what a step raises.
    """
    if isinstance(passes.here, CpuDevice):
        return note_missing(profile, "snapshot", _ON_CPU)
    memory = sys.modules["torch"].cuda.memory
    taken = instruments.take(
        "snapshot", lambda: _take_snapshot(profile, passes, memory, folder / SNAPSHOT), steps=STEPS
    )
    return taken or note_missing(profile, "snapshot", instruments.absent["snapshot"])


def _take_snapshot(
    profile: StepProfile,
    passes: Passes,
    memory: Any,  # noqa: ANN401  torch is untyped
    target: Path,
) -> StepProfile:
    is_first = passes.group.rank == 0
    if is_first:
        memory.reset_peak_memory_stats()
        memory._record_memory_history("all", stacks="python", max_entries=MOST_ENTRIES)  # noqa: SLF001
    try:
        for _ in range(STEPS):
            passes.run()
        if not is_first:
            return profile
        memory._dump_snapshot(str(target))  # noqa: SLF001
        summary = memory.memory_summary()[:_SUMMARY_CHARS]
    finally:
        if is_first:
            memory._record_memory_history(None)  # noqa: SLF001
    profile = msgspec.structs.replace(profile, memory_summary=summary)
    if target.stat().st_size <= MOST_SNAPSHOT_BYTES:
        return profile
    target.unlink()
    why = f"the snapshot is larger than {MOST_SNAPSHOT_BYTES // 2**20} MiB"
    return note_missing(profile, "snapshot", why)

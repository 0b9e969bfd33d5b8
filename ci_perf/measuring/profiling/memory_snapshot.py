"""Record what CUDA's allocator does in some steps, for people: a snapshot, and torch's own summary.

The last pass of a launch that profiles, and only where somebody asks: the allocator notes the stack
of each allocation. A snapshot is a pickle. This process writes it, and nothing of ours reads it.
"""

import contextlib
import functools
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import msgspec

from ci_perf.measuring.device import CpuDevice, Device
from ci_perf.measuring.instruments import Instruments
from ci_perf.measuring.profiling import kept_trace
from ci_perf.measuring.profiling.passes import Passes
from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import MOST_SNAPSHOT_BYTES, SNAPSHOT

STEPS: Final = 3
# Allocations and releases. One takes some 500 bytes of the file, and microseconds to write.
MOST_ENTRIES: Final = 50_000
# The newest that pytorch.org/memory_viz reads.
_PROTOCOL: Final = 4
# A struct refuses a longer text; torch's table has half of that.
_SUMMARY_CHARS: Final = 10_000
_ON_CPU: Final = "the workload ran on a CPU, and only CUDA's allocator keeps a history"
_ENDED: Final = "the process ended while CUDA's allocator kept its history"
_PLAIN: Final = frozenset({int, float, bool, type(None)})


class CudaMemory(Protocol):
    """What is used of `torch.cuda.memory`, for the current device."""

    def _record_memory_history(self, enabled: str | None, **how: Any) -> object:  # noqa: ANN401
        """Begin to record as `how` says, or end with `None`."""

    def _snapshot(self) -> object:
        """Return all segments and their blocks, and what has been recorded."""

    def memory_summary(self) -> str:
        """Return the allocator's counts as a table."""

    def reset_peak_memory_stats(self) -> object:
        """Make the present use of memory the new peak."""


def of_device(here: Device) -> CudaMemory | None:
    """Return torch's view of the memory of a device; `None` on a CPU."""
    if isinstance(here, CpuDevice):
        return None
    memory: CudaMemory = sys.modules["torch"].cuda.memory
    return memory


@contextlib.contextmanager
def noting_what_stays(memory: CudaMemory | None) -> Iterator[None]:
    """Within, have the allocator note who makes tensors: a later snapshot tells of those alive."""
    if memory is None:
        yield
        return
    with contextlib.suppress(Exception):  # the snapshot itself will say why
        memory._record_memory_history("state", context="state", stacks="python")  # noqa: SLF001
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            memory._record_memory_history(None)  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Records the steps of `passes`, in a file of `folder`; ``memory`` is `None` on a CPU."""

    passes: Passes
    memory: CudaMemory | None
    folder: Path
    root: str

    def missing(self, profile: StepProfile, why: str = _ENDED) -> StepProfile:
        """Return the profile as it is without a snapshot."""
        return msgspec.structs.replace(profile, missing=profile.missing | {"snapshot": why})

    def added_to(self, profile: StepProfile, instruments: Instruments) -> StepProfile:
        """Return the profile with torch's summary, beside a snapshot; or why there is none.

        Of several ranks, raises what a step raises.
        """
        if profile.absent:
            return profile
        if self.memory is None:
            return self.missing(profile, _ON_CPU)
        memory = self.memory
        taken = instruments.take("snapshot", lambda: self._added_to(profile, memory), steps=STEPS)
        return taken or self.missing(profile, instruments.absent["snapshot"])

    def _added_to(self, profile: StepProfile, memory: CudaMemory) -> StepProfile:
        if self.passes.group.rank != 0:
            self._run()
            return profile
        memory.reset_peak_memory_stats()
        memory._record_memory_history(  # noqa: SLF001
            "all", context="alloc", stacks="python", max_entries=MOST_ENTRIES
        )
        try:
            self._run()
            seen = memory._snapshot()  # noqa: SLF001
            summary = memory.memory_summary()[:_SUMMARY_CHARS]
        finally:
            memory._record_memory_history(None)  # noqa: SLF001
        profile = msgspec.structs.replace(profile, memory_summary=summary)
        why = write(seen, self.folder / SNAPSHOT, self.root)
        return self.missing(profile, why) if why else profile

    def _run(self) -> None:
        for _ in range(STEPS):
            self.passes.run()


def write(seen: object, target: Path, root: str) -> str:
    """Write a snapshot that torch has taken; else return why there is none.

    Its frames lose the paths of this machine as a kept trace does. Raises OSError.
    """
    plain = cleaned(seen, kept_trace.scrubber(root))
    try:
        with target.open("wb") as file:
            pickle.dump(plain, _Bounded(file), protocol=_PROTOCOL)
    except _TooLargeError:
        target.unlink()
        return f"the snapshot is larger than {MOST_SNAPSHOT_BYTES // 2**20} MiB"
    return ""


def cleaned(seen: object, scrubbed: Callable[[str], str]) -> object:
    """Return plain data, each text in it `scrubbed`; what is shared, as frames are, stays shared.

    Anything that is no plain data becomes `None`: no pickle of ours names a class.
    """
    done: dict[int, object] = {}

    @functools.cache
    def text(value: str) -> str:
        return scrubbed(f'"{value}"')[1:-1]  # a path with blanks ends at its quotes

    def of(value: object) -> object:
        if isinstance(value, str):
            return text(value)
        if type(value) in _PLAIN:
            return value
        if id(value) not in done:
            done[id(value)] = of_many(value)
        return done[id(value)]

    def of_many(value: object) -> object:
        if isinstance(value, dict):
            return {of(key): of(content) for key, content in value.items()}
        if isinstance(value, list):
            return list(map(of, value))
        return tuple(map(of, value)) if isinstance(value, tuple) else None

    return of(seen)


class _TooLargeError(Exception):
    """A snapshot has more bytes than are kept."""


class _Bounded:
    """A file that refuses to grow further."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        if self._file.tell() + len(data) > MOST_SNAPSHOT_BYTES:
            raise _TooLargeError
        return self._file.write(data)

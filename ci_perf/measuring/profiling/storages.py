"""Follow the memory of tensors, exact to the byte, by the lines whose operators made it.

Each storage that an operator returns is followed by a weak reference until torch frees it; views
and operators in place share one. Not seen is what torch's operators do not return: memory that an
operator takes for itself while it runs, the parts of sparse tensors, storages that are made or
resized without an operator, and all that is not torch's (numpy's arrays; but `torch.from_numpy`
counts as the line that makes them). What was made before `build`, or in another thread, is seen
once an operator of this thread returns it or a view of it, and belongs to that line.
"""

import contextlib
import gc
import sys
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ci_perf.measuring.distributed import Group
from ci_perf.measuring.profiling import forks
from ci_perf.measuring.profiling.operators import name_of
from ci_perf.measuring.profiling.origins import AuthorCode, Origins
from ci_perf.model.process import Ranks
from ci_perf.model.step_profile import (
    MOST_ALLOCATIONS,
    Allocation,
    AuthorFunction,
    MemoryUse,
)

# What belongs to no memory of a device.
_WITHOUT_MEMORY = "meta"


class _Line(NamedTuple):
    operator: str
    caller: AuthorFunction | None
    line: int
    in_build: bool


class _Living(NamedTuple):
    reference: "weakref.ref[Any]"
    size: int
    line: _Line


class Storages:
    """What is alive of what operators have made since this began to follow."""

    def __init__(self, origins: Origins) -> None:
        self.is_late = False
        self.is_paused = False
        self._origins = origins
        self._in_build = True
        self._living: dict[int, _Living] = {}
        # A storage may end at any time, in any thread: here it only says so.
        self._ended: deque[int] = deque()
        self._alive: Counter[_Line] = Counter()
        self._total = 0
        self._peak = 0
        self._is_highest = False
        self._at_peak: dict[_Line, int] = {}
        self._after_steps: list[dict[_Line, int]] = []

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Within, follow nothing: what is made is ours."""
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False

    def built(self) -> None:
        """Say that `build` has returned."""
        self._origins.forget()
        self._in_build = False

    def begin(self) -> None:
        """Look for the peak, and for what steps leave behind, from here on."""
        self._settle()
        self._peak, self._is_highest = self._total, True
        self._after_steps = [dict(self._alive)]

    def step_ended(self) -> None:
        """Note what a step has left behind."""
        self._origins.forget()
        self._settle()
        self._after_steps.append(dict(self._alive))

    def use(self) -> MemoryUse:
        """Return what has been seen since `begin`."""
        self._settle()
        if self._is_highest:
            self._keep_peak()
        growth = self._growth()
        lines = self._at_peak.keys() | growth.keys()
        # What grows is small at first, and must not be cut.
        ordered = sorted(
            lines, key=lambda line: (line not in growth, -self._at_peak.get(line, 0), _order(line))
        )
        allocations = [
            Allocation(
                **line._asdict(),
                peak_bytes=self._at_peak.get(line, 0),
                growth_bytes=growth.get(line, 0),
            )
            for line in ordered[:MOST_ALLOCATIONS]
        ]
        return MemoryUse(
            peak_bytes=self._peak,
            growth_bytes=sum(growth.values()),
            allocations=tuple(sorted(allocations, key=lambda each: -each.peak_bytes)),
            cut=max(len(ordered) - MOST_ALLOCATIONS, 0),
        )

    def note(self, tensors: Sequence[Any], place: Callable[[], tuple[str, Any, int]]) -> None:
        """Follow the storages of what an operator has returned; `place` says which, and where."""
        self._bury()
        for tensor in tensors:
            with contextlib.suppress(NotImplementedError, RuntimeError):  # sparse ones have none
                storage = tensor.untyped_storage()
                if storage.device.type != _WITHOUT_MEMORY:
                    self._note(storage, place)

    def _note(self, storage: Any, place: Callable[[], tuple[str, Any, int]]) -> None:  # noqa: ANN401  torch is untyped
        identity, size = storage._cdata, storage.nbytes()  # noqa: SLF001
        known = self._living.get(identity)
        if known is not None and known.size != size:  # resized
            self._change(known.line, -known.size)
            self._living[identity] = known._replace(size=size)
            self._change(known.line, size)
        if known is None and size:
            line = _Line(*place(), self._in_build)
            ended = self._ended
            reference = weakref.ref(storage, lambda _: ended.append(identity))
            self._living[identity] = _Living(reference, size, line)
            self._change(line, size)

    def _change(self, line: _Line, size: int) -> None:
        """Count bytes that come to be alive, or are no longer."""
        if size < 0 and self._is_highest:
            self._keep_peak()
        self._alive[line] += size
        self._total += size
        if not self._alive[line]:
            del self._alive[line]
        if self._total > self._peak:
            self._peak, self._is_highest = self._total, True

    def _bury(self) -> None:
        """Count what has ended since an operator was last called, before its place is taken."""
        while self._ended:
            ended = self._living.pop(self._ended.popleft())
            self._change(ended.line, -ended.size)

    def _keep_peak(self) -> None:
        self._at_peak, self._is_highest = dict(self._alive), False

    def _settle(self) -> None:
        gc.collect()  # what waits for the collector is not left behind
        self._bury()

    def _growth(self) -> dict[_Line, int]:
        """Return what every step has left behind at least, by line."""
        steps = list(zip(self._after_steps, self._after_steps[1:], strict=False))
        return {
            line: growth
            for line in self._alive
            if (growth := min((b.get(line, 0) - a.get(line, 0) for a, b in steps), default=0)) > 0
        }


@contextlib.contextmanager
def follow(code: AuthorCode, end: float) -> Iterator[Storages | None]:
    """Within, follow what this thread makes; `None` where torch has not been imported yet.

    From `end` on, by the monotonic clock, nothing is followed.
    """
    if "torch" not in sys.modules:
        yield None
        return
    import torch

    origins = Origins(code)
    storages = Storages(origins)

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        if storages.is_paused:
            return func(*args, **kwargs)
        if storages.is_late or time.monotonic() > end:
            storages.is_late = True
            return func(*args, **kwargs)
        function, line, _ = origins.of(sys._getframe(1))  # noqa: SLF001
        result = func(*args, **kwargs)
        several = result if isinstance(result, (list, tuple)) else (result,)
        tensors = [each for each in several if isinstance(each, torch.Tensor)]
        storages.note(tensors, lambda: (name_of(func), function, line))
        return result

    with forks.calling(call):
        yield storages


class UnfollowedGroup:
    """A group of ranks, of whose exchanges no tensor is followed: threads may hold these a while.

    See Group.
    """

    def __init__(self, group: Group, storages: Storages) -> None:
        self._group = group
        self._storages = storages
        self.rank = group.rank
        self.world_size = group.world_size

    def maximum(self, value: float) -> float:
        """See Group."""
        with self._storages.paused():
            return self._group.maximum(value)

    def gather(self, value: float) -> tuple[float, ...]:
        """See Group."""
        with self._storages.paused():
            return self._group.gather(value)

    def barrier(self) -> None:
        """See Group."""
        with self._storages.paused():
            self._group.barrier()

    def describe(self, skew: float | None) -> Ranks | None:
        """See Group."""
        return self._group.describe(skew)

    def leave(self) -> None:
        """See Group."""
        self._group.leave()


def _order(line: _Line) -> tuple[object, ...]:
    caller = line.caller
    place = (caller.file, caller.line, caller.function) if caller else ("", 0, "")
    return (*place, line.line, line.operator, line.in_build)

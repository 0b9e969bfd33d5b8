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
from collections.abc import Iterator
from typing import Any, NamedTuple

from ci_perf.features.explain.model import (
    MOST_ALLOCATIONS,
    Allocation,
    AuthorFunction,
    MemoryUse,
)
from ci_perf.features.explain.worker.operators import operator_name, watch_dispatch
from ci_perf.features.explain.worker.origins import AuthorCode, Origins


class _Line(NamedTuple):
    operator: str
    caller: AuthorFunction | None
    line: int
    in_build: bool


class Storages:
    """What is alive of what operators have made since this began to follow."""

    def __init__(self, origins: Origins | None) -> None:
        """Follow nothing without `origins`, as where torch has not been imported yet."""
        self.is_late = origins is None
        self.is_paused = False
        self._origins = origins
        self._in_build = True
        self._living: dict[int, tuple[weakref.ref[Any], int, _Line]] = {}
        # A storage may end at any time, in any thread: here it only says so.
        self._ended: deque[int] = deque()
        self._alive: Counter[_Line] = Counter()
        self._total = 0
        self._peak = 0
        self._is_highest = False
        self._at_peak: dict[_Line, int] = {}
        self._after_steps: list[dict[_Line, int]] = []

    def end_build(self) -> None:
        """Say that `build` has returned."""
        self._forget_nodes()
        self._in_build = False

    def begin(self) -> None:
        """Look for the peak, and for what steps leave behind, from here on."""
        self._settle()
        self._peak, self._is_highest = self._total, True
        self._after_steps = [dict(self._alive)]

    def end_step(self) -> None:
        """Note what a step has left behind."""
        self._forget_nodes()
        self._settle()
        self._after_steps.append(dict(self._alive))

    def read_use(self) -> MemoryUse | None:
        """Return what has been seen since `begin`: the peak, and what every step leaves behind.

        `None` where not everything was followed.
        """
        if self.is_late:
            return None
        self._settle()
        if self._is_highest:
            self._at_peak = dict(self._alive)
        growth: dict[_Line, int] = {}
        steps = list(zip(self._after_steps, self._after_steps[1:], strict=False))
        for line in self._alive:
            least = min(
                (after.get(line, 0) - before.get(line, 0) for before, after in steps), default=0
            )
            if least > 0:
                growth[line] = least
        # What grows is small at first, and must not be cut.
        lines = sorted(
            self._at_peak.keys() | growth.keys(),
            key=lambda line: (line not in growth, -self._at_peak.get(line, 0), repr(line)),
        )
        allocations = [
            Allocation(
                **line._asdict(),
                peak_bytes=self._at_peak.get(line, 0),
                growth_bytes=growth.get(line, 0),
            )
            for line in lines[:MOST_ALLOCATIONS]
        ]
        return MemoryUse(
            peak_bytes=self._peak,
            growth_bytes=sum(growth.values()),
            allocations=tuple(sorted(allocations, key=lambda each: -each.peak_bytes)),
            cut=max(len(lines) - MOST_ALLOCATIONS, 0),
        )

    def note(self, result: object, func: Any, caller: AuthorFunction | None, line: int) -> None:  # noqa: ANN401  torch is untyped
        """Follow the storages of what an operator has returned."""
        import torch

        self._bury()
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if not isinstance(tensor, torch.Tensor):
                continue
            with contextlib.suppress(NotImplementedError, RuntimeError):  # sparse ones have none
                storage = tensor.untyped_storage()
                identity, size = storage._cdata, storage.nbytes()  # noqa: SLF001
                if storage.device.type == "meta":
                    continue
                known = self._living.get(identity)
                if known is not None and known[1] != size:  # resized
                    reference, before, where = known
                    self._living[identity] = reference, size, where
                    self._add(where, size - before)
                elif known is None and size:
                    where = _Line(operator_name(func), caller, line, self._in_build)
                    self._follow(storage, identity, size, where)

    def _follow(self, storage: Any, identity: int, size: int, where: _Line) -> None:  # noqa: ANN401  torch is untyped
        ended = self._ended
        reference = weakref.ref(storage, lambda _: ended.append(identity))
        self._living[identity] = reference, size, where
        self._add(where, size)

    def _add(self, line: _Line, size: int) -> None:
        """Count bytes that come to be alive, or are no longer."""
        if size < 0 and self._is_highest:
            self._at_peak, self._is_highest = dict(self._alive), False
        self._alive[line] += size
        self._total += size
        if not self._alive[line]:
            del self._alive[line]
        if self._total > self._peak:
            self._peak, self._is_highest = self._total, True

    def _bury(self) -> None:
        """Count what has ended since an operator was last called, before its place is taken."""
        while self._ended:
            _, size, line = self._living.pop(self._ended.popleft())
            self._add(line, -size)

    def _forget_nodes(self) -> None:
        if self._origins is not None:
            self._origins.forget()

    def _settle(self) -> None:
        gc.collect()  # what waits for the collector is not left behind
        self._bury()


@contextlib.contextmanager
def follow_storages(code: AuthorCode, end: float) -> Iterator[Storages]:
    """Within, follow what this thread makes; nothing where torch has not been imported yet.

    Nor from `end` on, by the monotonic clock.
    """
    if "torch" not in sys.modules:
        yield Storages(None)
        return
    origins = Origins(code)
    storages = Storages(origins)

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        storages.is_late |= time.monotonic() > end
        if storages.is_paused or storages.is_late:
            return func(*args, **kwargs)
        function, line, _ = origins.find(sys._getframe(1))  # noqa: SLF001
        result = func(*args, **kwargs)
        storages.note(result, func, function, line)
        return result

    with watch_dispatch(call):
        yield storages

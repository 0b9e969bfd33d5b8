"""Time the named parts of a step, in a separate pass: the timed region contains no clocks."""

import contextlib
from collections.abc import Callable, Iterator

import msgspec

from ci_perf.measuring.device import Device, Stamp
from ci_perf.measuring.user_code import WorkloadError
from ci_perf.model.base import Name
from ci_perf.model.process import StepPhase, StepPhases
from ci_perf.workload import PhaseMaker, enter_unwatched

MAX_PHASES = 50


class Watcher:
    """Gives the author `context.phase`, which is nothing until `watch` looks."""

    def __init__(self) -> None:
        self._device: Device | None = None
        self._mark: PhaseMaker = enter_unwatched
        self._spans: list[tuple[str, Stamp, Stamp]] = []
        self._entered: set[str] = set()
        self._known: set[str] = set()

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Enter the part of a step called `name`; while watched, WorkloadError for what is no name.

        Nothing is looked at before: torch.compile traces this, and a check would break its graph.
        """
        if self._device is None:
            return enter_unwatched(name)
        if name not in self._known:
            _check(name, len(self._known))
            self._known.add(name)
        return self._span(self._device, name)

    @contextlib.contextmanager
    def marking(self, device: Device, mark: PhaseMaker) -> Iterator[None]:
        """Within, enter with each phase what `mark` makes of its name."""
        self._device, self._mark = device, mark
        try:
            yield
        finally:
            self._device, self._mark = None, enter_unwatched
            self._spans.clear()

    def watch(self, device: Device, step: Callable[[], object], steps: int) -> StepPhases | None:
        """Run `steps` steps and return their parts, in the order in which they first came.

        `None` where the step has none. A phase that is entered several times in a step counts as
        their sum.
        """
        self._device = device
        try:
            # Compiled code that enters a phase is compiled again once phases are timed.
            step()
            self._spans.clear()
            device.synchronize()
            start = device.stamp()
            for _ in range(steps):
                step()
            end = device.stamp()
            device.synchronize()
        finally:
            self._device = None
        if not self._spans:
            return None
        whole_s, device_s = device.between(start, end)
        step_s = (whole_s if device_s is None else max(whole_s, device_s)) / steps
        return StepPhases(step_s=step_s, phases=self._sums(device, steps))

    @contextlib.contextmanager
    def _span(self, device: Device, name: str) -> Iterator[None]:
        if name in self._entered:  # its outer one counts the whole
            yield
            return
        self._entered.add(name)
        start = device.stamp()
        try:
            with self._mark(name):
                yield
        finally:
            self._spans.append((name, start, device.stamp()))
            self._entered.discard(name)

    def _sums(self, device: Device, steps: int) -> dict[str, StepPhase]:
        sums: dict[str, tuple[float, float | None]] = {}
        for name, start, end in self._spans:
            host_s, device_s = device.between(start, end)
            if name in sums:
                host_so_far, device_so_far = sums[name]
                host_s += host_so_far
                device_s = None if device_s is None else device_s + (device_so_far or 0.0)
            sums[name] = host_s, device_s
        return {
            name: StepPhase(
                host_s=host_s / steps, device_s=None if device_s is None else device_s / steps
            )
            for name, (host_s, device_s) in sums.items()
        }


def _check(name: object, so_far: int) -> None:
    if so_far == MAX_PHASES:
        raise WorkloadError(
            f"context.phase: expected at most {MAX_PHASES} names, found {name!r:.100} as one more"
        )
    try:
        msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise WorkloadError(
            f"context.phase: expected one word of letters, digits and _.=+-, found {name!r:.100}"
        ) from None

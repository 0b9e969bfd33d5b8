"""Steps of a loop and numbers of a program, kept in its own process for the launch that waits.

Outside of a check nothing is kept: the program runs as it is written.
"""

import atexit
import functools
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ci_perf.model import codec
from ci_perf.model.metrics import check_own
from ci_perf.model.plant import PLANT_VARIABLE, burn
from ci_perf.model.process import CompileCounts, DeviceMemory
from ci_perf.model.step_report import ANOTHER_PROCESS, REPORT_VARIABLE, StepReport

T = TypeVar("T")
_WARMUP, _STEPS = 20, 50
# Of the whole loop: they are compared between the sides, as far as both have them.
_MOST_LOSSES = 100


class StepRecorder:
    """Times the iterations of a loop, and writes a report when Python ends.

    Without a loop, it has the numbers of the program alone.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._process = path, os.getpid()
        self._loop: object = None
        self._warmup, self._steps, self._items = 0, 0, 1.0
        self._ended = 0
        self._times_s: list[float] = []
        self._since: Any = None
        self._events: list[tuple[Any, Any]] = []
        self._losses: list[Any] = []
        self._metrics: dict[str, list[float]] = {}
        self._device_memory: DeviceMemory | None = None
        self._compiles: CompileCounts | None = None
        self._has_begun = self._has_written = False
        self._plant = int(os.environ.get(PLANT_VARIABLE, "0"))
        self.is_open = False
        self.is_done = False
        atexit.register(self._write)

    def ask(self, loop: object, warmup: int, steps: int, items: float) -> None:
        """Ask for `steps` iterations after the `warmup`, each of `items`.

        `loop` says which one: its place, or its callback. Raises ValueError: a number below 1, or
        another loop than before.
        """
        for name, value in (("warmup", warmup), ("steps", steps)):
            if value < 1:
                raise ValueError(f"{name}: expected a number from 1 on, found {value!r}")
        if not self._steps:
            self._loop = loop
            self._warmup, self._steps, self._items = warmup, steps, items
        elif loop != self._loop and not self.is_open:
            raise ValueError(
                f"expected one loop in a program, found {self._loop} and {loop}; keep ci_perf in "
                "the one that is to be timed"
            )

    def begin(self) -> None:
        """Start the clock of an iteration; what came since the last one belongs to none."""
        self._has_begun = True
        if not self.is_done and self._ended >= self._warmup:
            self._since = self._read()

    def end(self) -> bool:
        """End an iteration, and begin the next one. Return whether all are done."""
        if self.is_done:
            return True
        if self._plant:
            _synchronize()
            burn(self._plant)
        self._ended += 1
        if self._ended == self._warmup:
            _synchronize()
            _reset_peaks()
        if self._since is not None:
            self._keep(self._since, self._read())
        if self._ended == self._warmup + self._steps:
            self._finish()
            return True
        self.begin()
        return False

    def record_loss(self, loss: object) -> None:
        """Keep a loss, a number or a tensor of one; it is read when the loop has ended."""
        if not self.is_done and len(self._losses) < _MOST_LOSSES:
            # A copy: a tensor may be changed in place before the loop has ended.
            self._losses.append(loss.detach().clone() if hasattr(loss, "detach") else loss)

    def record_metrics(self, numbers: Mapping[str, float]) -> None:
        """Keep metrics of the user's own, but for those of a warm-up. Raises ValueError."""
        for name, value in numbers.items():
            check_own(name, float(value))
            if not self._has_begun or self._ended >= self._warmup:
                self._metrics.setdefault(name, []).append(float(value))

    def _read(self) -> Any:  # noqa: ANN401  an event of torch, or seconds
        """Return a moment: an event in the stream of a GPU in use, else the time of the host.

        An event waits for nothing, so the loop goes on as it is written.
        """
        torch = _find_cuda()
        if torch is None:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _keep(self, since: Any, now: Any) -> None:  # noqa: ANN401  as `_read`
        if isinstance(now, float):
            self._times_s.append(now - since)
        else:
            self._events.append((since, now))

    def _finish(self) -> None:
        self.is_done = True
        _synchronize()
        self._times_s += [since.elapsed_time(now) / 1000 for since, now in self._events]
        self._events.clear()
        self._device_memory, self._compiles = _read_device_memory(), _count_compiles()
        self._write()

    def _write(self) -> None:
        """Write what there is: the first of several ranks does, and no fork of it.

        Where another process has written, say so: nobody knows which of them is meant.
        """
        if not _is_first_rank() or os.getpid() != self._process:
            return
        report = StepReport(
            asked=self._warmup + self._steps,
            ended=self._ended,
            steps_s=tuple(self._times_s) if self.is_done else (),
            items_per_step=float(self._items),
            losses=tuple(filter(math.isfinite, map(float, self._losses))),
            metrics={name: tuple(values) for name, values in self._metrics.items()},
            device_memory=self._device_memory,
            compiles=self._compiles,
        )
        try:
            with self._path.open("w" if self._has_written else "x", encoding="utf-8") as file:
                file.write(codec.encode(report))
        except FileExistsError:
            self._path.with_name(ANOTHER_PROCESS).touch()
        else:
            self._has_written = True


@functools.cache  # one report of a process, whoever asks
def open_recorder() -> StepRecorder | None:
    """Return what records this process; `None` outside of a check."""
    path = os.environ.get(REPORT_VARIABLE)
    return StepRecorder(Path(path)) if path else None


def open_loop(loop: object, warmup: int, steps: int, items: float) -> StepRecorder | None:
    """Return what times the loop of this process; `None` outside of a check.

    The same one in a row goes on counting, as epochs do. Raises ValueError: another one.
    """
    if (recorder := open_recorder()) is not None:
        recorder.ask(loop, warmup, steps, items)
    return recorder


def steps(
    batches: Iterable[T], *, warmup: int = _WARMUP, steps: int = _STEPS, items: float = 1
) -> Iterable[T]:
    """Return what a loop goes through; in a check, the loop ends once it has been timed.

        for batch in ci_perf.steps(loader, warmup=20, steps=50, items=batch_size):

    `warmup` iterations come first, then `steps` are timed from batch to batch, with the loading of
    data; each does `items` of work. The same loop several times in a row, as of epochs, is one.
    Outside of a check these are `batches` themselves.

    Raises RuntimeError: another loop is still going on; ValueError: another one has been timed, or
    a number below 1.
    """
    if open_recorder() is None:
        return batches
    caller = sys._getframe(1)  # noqa: SLF001  the documented way to name a place
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    recorder = open_loop(place, warmup, steps, items)
    return batches if recorder is None else _go_through(batches, recorder)


def _go_through(batches: Iterable[T], recorder: StepRecorder) -> Iterator[T]:
    if recorder.is_open:
        raise RuntimeError("ci_perf.steps: expected one loop at a time, found one within another")
    if recorder.is_done:
        return
    recorder.is_open = True
    try:
        recorder.begin()
        for batch in batches:
            yield batch
            if recorder.end():
                return
    finally:
        recorder.is_open = False


def record(metrics: Mapping[str, float] | None = None, /, *, loss: object = None) -> None:
    """Keep metrics of your own, and the loss of a step, a number or a tensor of one.

        ci_perf.record({"time.ttft": 0.031, "rate.tokens": 812.0}, loss=loss)

    A name begins with its kind, as in `Workload.metrics`. Values in the warm-up of a loop are left
    out; several give their median, of an exact metric the worst. Outside of a check, nothing is
    done. Raises ValueError: another name, or a number that says nothing.
    """
    if (recorder := open_recorder()) is None:
        return
    if loss is not None:
        recorder.record_loss(loss)
    recorder.record_metrics(metrics or {})


def _is_first_rank() -> bool:
    """Whether this process is the first of those that train together, or alone."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return bool(distributed.get_rank() == 0)
    return os.environ.get("RANK", "") in {"", "0"}


def _find_cuda() -> Any:  # noqa: ANN401  the module
    """Return torch where it uses a GPU in this process, `None` else."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None


def _synchronize() -> None:
    if (torch := _find_cuda()) is not None:
        torch.cuda.synchronize()


def _reset_peaks() -> None:
    if (torch := _find_cuda()) is not None:
        torch.cuda.reset_peak_memory_stats()


def _read_device_memory() -> DeviceMemory | None:
    """Return the peaks of torch's allocator since the warm-up."""
    if _find_cuda() is None:
        return None
    from ci_perf.measuring.device import highest, open_device

    return highest(open_device("cuda").memory())


def _count_compiles() -> CompileCounts | None:
    """Return what torch.compile has done in this process, where it was used."""
    if "torch._dynamo.utils" not in sys.modules:
        return None
    from ci_perf.measuring.counters import count_compiles

    return count_compiles("empty")

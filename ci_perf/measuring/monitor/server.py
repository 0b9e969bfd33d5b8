"""The monitor process: watches the GPUs and the host while a worker measures.

Run as `python -P -m ci_perf.measuring.monitor.server FOLDER PARENT SOCKET HZ UUID...`: FOLDER is
its own, PARENT the id of the process that waits, SOCKET the handle of the socket on
which it hears the worker. It ends when its stdin does, and leaves evidence.json.

A process of its own, so that reading never holds the interpreter lock of the workload, and outlives
it when it is killed.
"""

import contextlib
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.measuring.monitor import kernel_counters, nvml
from ci_perf.measuring.monitor.gpu_watch import GpuWatch
from ci_perf.measuring.monitor.kernel_counters import KernelCounters, MemoryBelow
from ci_perf.model import task
from ci_perf.model.task import MonitorMark
from ci_perf.model.validity import Evidence, HostEvidence
from ci_perf.system import files, linux

_STDIN = 0
# So many times the CPU time that reading what processes below hold has taken, they are left alone.
_REST = 50

# Longer than any mark.
_MAX_DATAGRAM = 200
# struct ucred of the kernel: who has sent a datagram, whatever he says.
_CREDENTIALS = struct.Struct("3i")
# An open file that came with a datagram.
_HANDLE = struct.Struct("i")


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of a worker: said by `pid`, who waits until `deadline` for an answer."""

    word: MonitorMark
    pid: int
    deadline: float


@dataclass(frozen=True, slots=True)
class _Border:
    """One side of the timed region, as the host and our own clocks have it."""

    clock_s: float
    own_cpu_s: float
    kernel: KernelCounters


class Monitor:
    """What has been heard and seen so far. The first look at every GPU is taken when it is made."""

    def __init__(
        self,
        gpus: Sequence[nvml.Gpu],
        *,
        clock: Callable[[], float] = time.monotonic,
        proc: Path = linux.PROC,
        cgroups: Path = linux.CGROUPS,
    ) -> None:
        self._clock = clock
        self._proc, self._cgroups = proc, cgroups
        self._gpus = [GpuWatch(gpu) for gpu in gpus]
        self._pids: list[int] = []
        self._timing: set[int] = set()
        self._rss_peaks: dict[int, int] = {}
        self._below: MemoryBelow | None = None
        self._below_due = 0.0
        self._start = self._border()
        self._begin: _Border | None = None
        self._end: _Border | None = None
        self._late = False

    @property
    def is_watching(self) -> bool:
        """Whether a worker has said that it is there."""
        return bool(self._pids)

    def poll(self) -> None:
        """Read what changes from moment to moment."""
        for gpu in self._gpus:
            gpu.poll(timing=self._begin is None or bool(self._timing))
        for pid in self._pids:
            self._note_rss_peak(pid)
        if self._timing and self._clock() >= self._below_due:
            self._note_below()

    def hear(self, mark: Mark) -> None:
        """Take the readings that belong to a word of a worker."""
        {
            MonitorMark.HELLO: self._hello,
            MonitorMark.BEGIN: self._began,
            MonitorMark.END: self._ended,
        }[mark.word](mark)

    def evidence(self) -> Evidence:
        """Say what was seen over the timed region, or over everything when there was none."""
        begin, end = self._begin or self._start, self._end or self._border()
        wall_s = max(0.0, end.clock_s - begin.clock_s)
        peaks = self._rss_peaks.values()
        return Evidence(
            host=HostEvidence(
                wall_s=wall_s,
                cpu_s=kernel_counters.cpu_s(begin.kernel, end.kernel),
                cpu_pressure=_share(begin.kernel.cpu_wait_s, end.kernel.cpu_wait_s, wall_s),
                memory_pressure=_share(
                    begin.kernel.memory_wait_s, end.kernel.memory_wait_s, wall_s
                ),
                throttled_s=_difference(begin.kernel.throttled_s, end.kernel.throttled_s),
            ),
            gpus=tuple(gpu.evidence(wall_s) for gpu in self._gpus),
            host_rss_peak_bytes=sum(peaks) if peaks else None,
            below_bytes=self._below.size if self._below else None,
            below_by=self._below.by if self._below else "",
            below_count=self._below.count if self._below else 0,
            below_largest_bytes=self._below.largest if self._below else 0,
            overhead_cpu_s=max(0.0, end.own_cpu_s - begin.own_cpu_s),
            trouble=self._problem(),
        )

    def _hello(self, mark: Mark) -> None:
        self._watch(mark.pid)
        if self._clock() > mark.deadline:
            for gpu in self._gpus:
                gpu.came_too_late("the first reading came when the worker no longer waited for it")

    def _began(self, mark: Mark) -> None:
        """Begin with the first rank that does."""
        self._watch(mark.pid)
        self._timing.add(mark.pid)
        if self._begin is None:
            for gpu in self._gpus:
                gpu.begin()
            self._note_below()
            self._begin = self._border()
            self._late |= self._clock() > mark.deadline

    def _ended(self, mark: Mark) -> None:
        """End with the last rank that does."""
        if mark.pid not in self._timing:
            return
        self._end = self._border()
        for gpu in self._gpus:
            gpu.end()
        self._late |= self._clock() > mark.deadline
        self._timing.discard(mark.pid)
        self._note_rss_peak(mark.pid)
        self._note_below()

    def _watch(self, pid: int) -> None:
        if pid not in self._pids:
            self._pids.append(pid)

    def _border(self) -> _Border:
        kernel = kernel_counters.read(self._pids, proc=self._proc, cgroups=self._cgroups)
        return _Border(self._clock(), time.process_time(), kernel)

    def _note_rss_peak(self, pid: int) -> None:
        peak = kernel_counters.rss_peak_bytes(pid, self._proc)
        if peak is not None:
            self._rss_peaks[pid] = peak

    def _note_below(self) -> None:
        """Read what processes below hold, rarely where that takes long: the kernel locks them."""
        start_s = time.process_time()
        now_below = [kernel_counters.memory_below(pid) for pid in self._pids]
        self._below = max([*now_below, *filter(None, [self._below])], key=lambda each: each.size)
        self._below_due = self._clock() + _REST * (time.process_time() - start_s)

    def _problem(self) -> str:
        if self._begin is None:
            return "timing never began: these are differences over the monitor's whole life"
        if self._end is None or self._timing:
            return "timing never ended: these are differences until the end of the monitor"
        if self._late:
            return "the monitor answered late: its borders are not those of the timed region"
        return ""


def serve(monitor: Monitor, line: socket.socket, *, hz: float) -> None:
    """Poll `hz` times a second, and answer each mark on `line`, until stdin ends.

    Nothing is read before the first mark: the worker may have to wait while another one measures.
    """
    period_s = 1 / hz
    due = time.monotonic() + period_s
    with selectors.DefaultSelector() as selector:
        selector.register(_STDIN, selectors.EVENT_READ)
        selector.register(line, selectors.EVENT_READ)
        while True:
            wait_s = max(0.0, due - time.monotonic()) if monitor.is_watching else None
            for key, _ in selector.select(wait_s):
                if key.fd == _STDIN:
                    if not os.read(_STDIN, 4096):
                        return
                else:
                    _answer(monitor, line)
            if monitor.is_watching and time.monotonic() >= due:
                monitor.poll()
                due = time.monotonic() + period_s  # a slow driver is not asked without end


def _answer(monitor: Monitor, line: socket.socket) -> None:
    """Hear one datagram. Who sends junk gets no answer, and who is gone none either."""
    space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_HANDLE.size)
    data, ancillary, _, _ = line.recvmsg(_MAX_DATAGRAM, space)
    said = {kind: what for level, kind, what in ancillary if level == socket.SOL_SOCKET}
    with _answers(said.get(socket.SCM_RIGHTS, b"")) as back:
        mark = _mark(data, said.get(socket.SCM_CREDENTIALS, b""))
        if mark is None or back is None:
            return
        monitor.hear(mark)
        with contextlib.suppress(OSError):
            back.send(mark.word, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


@contextlib.contextmanager
def _answers(handles: bytes) -> Iterator[socket.socket | None]:
    """Provide the socket that came with a mark; whatever else came is closed, too."""
    received = [handle for (handle,) in _HANDLE.iter_unpack(handles[: _whole(handles)])]
    try:
        # Of another kind than a socket it is nothing that we would write to.
        back = socket.socket(fileno=os.dup(received[0])) if received else None
    except OSError:
        back = None
    try:
        yield back
    finally:
        if back is not None:
            back.close()
        for handle in received:
            os.close(handle)


def _whole(handles: bytes) -> int:
    """Return how many of these bytes are whole handles: the kernel may cut the last."""
    return len(handles) - len(handles) % _HANDLE.size


def _mark(data: bytes, credentials: bytes) -> Mark | None:
    word, _, deadline = data.partition(b" ")
    with contextlib.suppress(ValueError, struct.error):
        return Mark(MonitorMark(word), _CREDENTIALS.unpack(credentials)[0], float(deadline))
    return None


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def _share(before: float | None, after: float | None, wall_s: float) -> float | None:
    waited = _difference(before, after)
    return None if waited is None or wall_s <= 0 else min(1.0, waited / wall_s)


def main(folder: Path, line: socket.socket, hz: float, uuids: Sequence[str]) -> None:
    """Watch until stdin ends, then leave the evidence."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with nvml.open_gpus(uuids) as gpus:
        monitor = Monitor(gpus)
        serve(monitor, line, hz=hz)
        files.write(folder / task.EVIDENCE, monitor.evidence())


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    with socket.socket(fileno=int(sys.argv[3])) as listener:
        main(Path(sys.argv[1]), listener, float(sys.argv[4]), sys.argv[5:])
    os._exit(0)  # an interpreter takes itself apart for longer than it writes the evidence

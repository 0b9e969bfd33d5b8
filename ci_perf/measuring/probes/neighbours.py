"""Whether a second program on the device is noticed, and what it costs, running and stopped."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ci_perf.measuring.monitor.nvml import Gpu
from ci_perf.measuring.probes import Bench, CannotTryError, gpu_state
from ci_perf.measuring.probes.steps import median_s, product, warm
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

_MODULE = "ci_perf.measuring.probes.neighbour"
_HELD_BYTES = 256 * 2**20
# What is queued when a process is stopped still runs to its end.
_SETTLE_S = 1.0

Start = Callable[[Bench], AbstractContextManager[int]]


@contextlib.contextmanager
def neighbour(bench: Bench) -> Iterator[int]:
    """Run a second program on the device within; yields its process id. Raises CannotTryError."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", _MODULE, str(os.getpid()), bench.name, str(_HELD_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        try:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise CannotTryError("a second program could not use the device")
            yield child.pid
        finally:
            child.kill()


def foreign_process(bench: Bench, start: Start = neighbour) -> Iterator[Figure]:
    """Look at memory and processes by NVML, before and while another program is there."""
    with gpu_state.opened(bench) as gpu:
        bench.device.synchronize()
        before_bytes, before = _held(gpu)
        with start(bench):
            after_bytes, after = _held(gpu)
    yield Figure(name="memory_over_known", value=(after_bytes - before_bytes) / _HELD_BYTES)
    yield Figure(name="memory", value=after_bytes - before_bytes, unit=Unit.BYTE)
    if before is not None and after is not None:
        yield Figure(name="processes", value=after - before, unit=Unit.COUNT)


def _held(gpu: Gpu) -> tuple[int, int | None]:
    """Return bytes in use and the number of processes. Raises CannotTryError."""
    now = gpu.readings()
    if now.used_bytes is None:
        raise CannotTryError(f"NVML does not tell memory in use: {gpu.absent['used_bytes']}")
    return now.used_bytes, now.processes


def two_processes(bench: Bench) -> Iterator[Figure]:
    """Time steps alone, beside a second process that is stopped, and beside one that runs.

    Alone is measured before and after: the middle of both forgets how the clocks drift.
    """
    step = product(bench)
    count = warm(bench, step)
    before_s = median_s(bench, step, count)
    with neighbour(bench) as pid:
        running_s = median_s(bench, step, count)
        os.kill(pid, signal.SIGSTOP)
        bench.sleep(_SETTLE_S)
        warm(bench, step)
        stopped_s = median_s(bench, step, count)
    bench.sleep(_SETTLE_S)
    warm(bench, step)
    alone_s = (before_s + median_s(bench, step, count)) / 2
    yield Figure(name="beside_stopped", value=stopped_s / alone_s)
    yield Figure(name="beside_running", value=running_s / alone_s)
    yield Figure(name="alone", value=alone_s, unit=Unit.SECOND)

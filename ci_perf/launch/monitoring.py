"""Run the monitor while a worker runs. If the monitor fails, the worker's result stands.

The monitor is started before the worker and outside of its launch: it bears no cookie and has a
session of its own, so that cleaning up after the worker does not end it. It ends when our end of
its stdin closes, at the latest when we die; in addition it calls `linux.end_with_parent`.
"""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model import task
from ci_perf.model.validity import Evidence
from ci_perf.system import scratch
from ci_perf.system.scratch import Scratch

# To write a few figures; a driver that hangs may take for ever.
_END_S = 5.0
_LAST_GASP_S = 5.0

# What the monitor says when it dies; nobody else writes there.
_STDERR = "monitor.stderr"
_STDERR_BYTES = 64 * 1024
_PROBLEM_CHARS = 500


class MonitorReport:
    """The evidence of the monitor, once the block has ended. ``problem`` says why there is none."""

    def __init__(self, problem: str) -> None:
        self._evidence: Evidence | None = None
        self.problem = problem

    def evidence(self) -> Evidence | None:
        """Return what the monitor saw, `None` if it was not started or died."""
        return self._evidence

    def read(self, code: int, folder: Scratch) -> None:
        """Read the evidence of a monitor that ended with `code`."""
        try:
            self._evidence = folder.read(task.EVIDENCE, Evidence) if code == 0 else None
        except InvalidFileError as error:
            self.problem = f"the monitor left no evidence: {error}"[:_PROBLEM_CHARS]
            return
        self.problem = "" if self._evidence else _last_words(code, folder)


@contextlib.contextmanager
def watch_host(
    folder: Path,
    gpus: Sequence[str],
    hz: float,
    python: Sequence[str],
    environment: Mapping[str, str],
    *,
    end_s: float = _END_S,
) -> Iterator[MonitorReport]:
    """Within, a monitor reads `gpus` and the host `hz` times a second; with 0 there is none.

    It listens in `folder`, that of the launch; `python` is the command that starts Python with its
    switches; `end_s` is how long the monitor may take to end. Raises nothing of its own.
    """
    report = MonitorReport("the monitor was not started")
    with contextlib.ExitStack() as stack:
        started = None
        if hz > 0:
            try:
                started = _start(stack, folder, gpus, hz, python, environment)
            except OSError as error:
                report.problem = f"the monitor could not be started: {error}"
        try:
            yield report
        finally:
            if started is not None:
                _finish(*started, report, end_s)


def without_partner(evidence: Evidence) -> Evidence:
    """Return the evidence of one process of a resident pair, without its partner.

    The monitor counts the partner among the processes on a GPU, and cannot tell whose energy it
    was. The figures of the host hold: only one of both processes runs at any time.
    """
    gpus = (
        msgspec.structs.replace(
            gpu,
            processes=None if gpu.processes is None else max(0, gpu.processes - 1),
            energy_j=None,
            absent={**gpu.absent, "energy_j": "a resident pair shares the GPU"},
        )
        for gpu in evidence.gpus
    )
    return msgspec.structs.replace(evidence, gpus=tuple(gpus))


def _start(
    stack: contextlib.ExitStack,
    folder: Path,
    gpus: Sequence[str],
    hz: float,
    python: Sequence[str],
    environment: Mapping[str, str],
) -> "tuple[subprocess.Popen[bytes], Scratch]":
    """Start the monitor with a folder of its own. Raises OSError.

    The worker may put links into the folder that it shares with us. A monitor that wrote there
    would write wherever these lead, with rights that a worker in a container does not have. The
    socket is ours first: the worker may speak as soon as it likes, and is answered once the monitor
    has had its first look at the machine.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, handle)
    own = stack.enter_context(scratch.folder())
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line,
        (own.path / _STDERR).open("wb") as stderr,
    ):
        line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        line.bind(task.monitor_address(handle))
        ours = [str(own.path), str(os.getpid()), str(line.fileno()), str(hz)]
        monitor = subprocess.Popen(
            [*python, "-m", task.MONITOR, *ours, *gpus],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(line.fileno(),),
            start_new_session=True,
        )
    return monitor, own


def _finish(
    monitor: "subprocess.Popen[bytes]", folder: Scratch, report: MonitorReport, end_s: float
) -> None:
    """Let the monitor end, or end it, and read what it left."""
    assert monitor.stdin is not None
    with contextlib.suppress(OSError):
        monitor.stdin.close()
    try:
        code = monitor.wait(timeout=end_s)
    except subprocess.TimeoutExpired:
        report.problem = f"the monitor did not end within {end_s:g} s"
        return
    finally:
        if monitor.returncode is None:
            monitor.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hold it
                monitor.wait(timeout=_LAST_GASP_S)
    report.read(code, folder)


def _last_words(code: int, folder: Scratch) -> str:
    try:
        said = (folder.read_bytes(_STDERR, limit=_STDERR_BYTES) or b"").decode(errors="replace")
    except InvalidFileError as error:
        said = str(error)
    line = (said.strip() or "no words").splitlines()[-1]
    return f"the monitor ended with code {code} and left no evidence: {line}"[:_PROBLEM_CHARS]

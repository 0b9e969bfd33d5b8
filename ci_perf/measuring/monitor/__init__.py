"""The monitor, which watches GPUs and host while a worker measures, and how it hears of timing.

A mark is a datagram with the word and the moment until which the worker waits, and a socket on
which the monitor sends the word back when it has taken its readings: a name of ours it could not
reach from outside of our container. Without a monitor marks do nothing. They never raise, and a
monitor that does not answer in time is not waited for again.
"""

import array
import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from ci_perf.model import task
from ci_perf.model.task import MonitorMark

# A driver that no program has kept awake takes seconds for its first answer.
_HELLO_S = 10.0
_MARK_S = 2.0


class Marks:
    """The worker's end of the line to the monitor that `folder` names.

    `mark_s` is how long to wait for its answer to `begin` and `end`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        mark_s: float = _MARK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mark_s = mark_s
        self._clock = clock
        self._folder = -1
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError):
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            if (folder / task.MONITOR_SOCKET).is_socket():
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._answered, self._answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def hello(self) -> None:
        """Say that this process is the one to watch, and wait for the first look at the machine.

        Comes before anything that touches a GPU.
        """
        self._say(MonitorMark.HELLO, _HELLO_S)

    def begin(self) -> None:
        """Say that timing begins, and wait until the counters have been read."""
        self._say(MonitorMark.BEGIN, self._mark_s)

    def end(self) -> None:
        """Say that timing has ended, and wait until the counters have been read."""
        self._say(MonitorMark.END, self._mark_s)

    def _say(self, word: MonitorMark, timeout_s: float) -> None:
        if self._socket is None:
            return
        deadline = self._clock() + timeout_s
        try:
            self._socket.settimeout(timeout_s)
            self._answered.settimeout(timeout_s)
            answers = array.array("i", [self._answers.fileno()])
            # Not socket.send_fds: Python 3.11 forgets the address there.
            self._socket.sendmsg(
                [b"%b %.6f" % (word, deadline)],
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, answers)],
                0,
                task.monitor_address(self._folder),
            )
            while self._answered.recv(len(MonitorMark.HELLO) + 1) != word:
                self._answered.settimeout(max(0.001, deadline - self._clock()))
        except OSError:  # nobody listens, or nobody answers in time
            for handle in (self._socket, self._answered, self._answers):
                handle.close()
            self._socket = None

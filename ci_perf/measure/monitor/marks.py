"""The worker's words to the monitor: here I am, timing begins, timing has ended.

Each is a datagram with the word and the moment until which the worker waits; the monitor sends the
word back when it has taken its readings. Without a monitor they do nothing. They never raise, and
a monitor that does not answer in time is not waited for again.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

# The files of the monitor, in the folder of a launch.
SOCKET = "monitor"
EVIDENCE = "evidence.json"

HELLO = b"hello"
BEGIN = b"begin"
END = b"end"

# A driver that no program has kept awake takes seconds for its first answer.
_HELLO_S = 10.0
_MARK_S = 2.0


def address(folder: int) -> str:
    """Name the monitor's socket in an open folder: its own path may be too long for a socket."""
    return f"/proc/self/fd/{folder}/{SOCKET}"


class Marks:
    """The worker's end of the line to the monitor that `folder` names."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._folder = -1
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError):
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            if (folder / SOCKET).is_socket():
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.bind("")  # the kernel finds a name by which we can be answered

    def hello(self) -> None:
        """Say that this process is the one to watch, and wait for the first look at the machine.

        Comes before anything that touches a GPU.
        """
        self._say(HELLO, _HELLO_S)

    def begin(self) -> None:
        """Say that timing begins, and wait until the counters have been read."""
        self._say(BEGIN, _MARK_S)

    def end(self) -> None:
        """Say that timing has ended, and wait until the counters have been read."""
        self._say(END, _MARK_S)

    def _say(self, word: bytes, patience_s: float) -> None:
        if self._socket is None:
            return
        deadline = self._clock() + patience_s
        try:
            self._socket.settimeout(patience_s)
            self._socket.sendto(b"%b %.6f" % (word, deadline), address(self._folder))
            while self._socket.recv(len(HELLO) + 1) != word:
                self._socket.settimeout(max(0.001, deadline - self._clock()))
        except OSError:  # nobody listens, or nobody answers in time
            self._socket.close()
            self._socket = None

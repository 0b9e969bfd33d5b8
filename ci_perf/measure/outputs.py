"""The last output of several processes, each by a pipe of its own.

A named pipe, because torchrun redirects a process to a path. Files would do, if no process ever
printed gigabytes.
"""

import contextlib
import os
import select
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

# What is kept of each process: enough for a traceback.
TAIL_BYTES = 16 * 1024

_CHUNK = 65_536


class Outputs:
    """Pipes, drained by a thread for as long as the block lasts.

    ``paths`` are what the processes write to, stdout and stderr alike.
    """

    def __init__(self, folder: Path, count: int) -> None:
        """Make `count` pipes in `folder`. Raises OSError."""
        self.paths = [folder / f"output.{number}" for number in range(count)]
        self._handles = [_pipe(path) for path in self.paths]
        self._tails = [b""] * count
        self._spoken = [0.0] * count
        self._stop, self._stopped = os.pipe()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.write(self._stopped, b".")
        self._thread.join()
        for handle in (*self._handles, self._stop, self._stopped):
            os.close(handle)

    def tail(self, number: int) -> str:
        """Return the last output of one process, all that it has written so far."""
        self._read(number)
        return self._tails[number].decode(errors="replace")

    def spoken_at(self, number: int) -> float:
        """Return when its latest output was read, by `time.time`; 0 when it wrote nothing."""
        self._read(number)
        return self._spoken[number]

    def _drain(self) -> None:
        numbers = {handle: number for number, handle in enumerate(self._handles)}
        while True:
            ready, _, _ = select.select([self._stop, *numbers], [], [])
            if self._stop in ready:
                return
            for handle in ready:
                self._read(numbers[handle])

    def _read(self, number: int) -> None:
        """Take what is in the pipe, a full pipe at most: some never stop talking."""
        with self._lock, contextlib.suppress(BlockingIOError):
            for _ in range(2):
                chunk = os.read(self._handles[number], _CHUNK)
                self._tails[number] = (self._tails[number] + chunk)[-TAIL_BYTES:]
                self._spoken[number] = time.time()


def _pipe(path: Path) -> int:
    """Open both ends: it never ends then, whoever comes and goes, and no writer has to wait."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

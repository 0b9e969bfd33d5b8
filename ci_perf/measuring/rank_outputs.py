"""The last output of processes that torchrun starts, one pipe each."""

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
    """The last output of several processes: a pipe each, drained by a thread within the block.

    ``paths`` are what the processes write to, stdout and stderr alike. They are named pipes,
    because torchrun redirects a process to a path; files would fill the disk. A process is named by
    its rank: ``first`` is the lowest one here, of ``world_size``, once it is known.
    """

    def __init__(self, folder: Path, count: int) -> None:
        """Make `count` pipes in `folder`. Raises OSError."""
        self.paths = [folder / f"output.{number}" for number in range(count)]
        self.first, self.world_size = 0, count
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

    @property
    def ranks(self) -> range:
        """The ranks that are here."""
        return range(self.first, self.first + len(self.paths))

    def tail(self, rank: int) -> str:
        """Return the last output of one process, all that it has written so far."""
        self._read(rank - self.first)
        return self._tails[rank - self.first].decode(errors="replace")

    def spoken_at(self, rank: int) -> float:
        """Return when its latest output was read, by `time.time`; 0 when it wrote nothing."""
        self._read(rank - self.first)
        return self._spoken[rank - self.first]

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
    """Make a pipe and open both ends: it stays open, and no writer waits for a reader."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

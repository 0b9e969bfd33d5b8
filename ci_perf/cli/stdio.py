"""The three standard streams, made so that no state of them can change what a command answers.

A job may close them, fill the disk behind them, or stop reading. stdout that cannot be written is
remembered and answered with exit code 3; stderr is for people, and nobody listening is no failure.
"""

import io
import os
import sys
from typing import TextIO


class Unfailing(io.TextIOWrapper):
    """A stream that goes silent at its first failure, and remembers it."""

    failure: OSError | None = None

    def write(self, text: str, /) -> int:
        """Write what can be written."""
        try:
            return super().write(text)
        except OSError as error:
            self._go_silent(error)
            return len(text)

    def flush(self) -> None:
        """Flush what can be flushed."""
        try:
            super().flush()
        except OSError as error:
            self._go_silent(error)

    def _go_silent(self, error: OSError) -> None:
        self.failure = self.failure or error
        # What is still buffered goes nowhere, also at the interpreter's end.
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123  a device, not a path
            os.dup2(nowhere.fileno(), self.fileno())


def prepare() -> None:
    """Give every closed stream a place to go, and make the open ones unfailing."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken: a file of ours must never become stdout.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = _unfailing(sys.stdout or os.fdopen(1, "w", closefd=False))
    sys.stderr = _unfailing(sys.stderr or os.fdopen(2, "w", closefd=False))


def failure_of_stdout() -> OSError | None:
    """Return what kept the result from being written; a reader that went away does not count."""
    sys.stdout.flush()
    failure: OSError | None = getattr(sys.stdout, "failure", None)
    return None if isinstance(failure, BrokenPipeError) else failure


def _unfailing(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody's own stream, in a notebook or a test
    encoding, buffered = stream.encoding, stream.line_buffering
    return Unfailing(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",  # a character that the stream cannot show is spelled out
        line_buffering=buffered,
    )

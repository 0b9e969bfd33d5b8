"""Where results go: a file, whole or not at all, or stdout. People are spoken to on stderr.

No state of the standard streams changes what a command answers. A job may close them, fill the disk
behind them, or stop reading. stdout that cannot be written is remembered and answered with exit
code 3; nobody listening to stderr is no failure.
"""

import io
import os
import sys
from pathlib import Path
from typing import TextIO

import click

from ci_perf.errors import CiPerfError

# Columns where no terminal limits them: every column of a comparison has room.
_NO_TERMINAL = 160


def emit(text: str, *, output: Path | None) -> None:
    """Write the result of a command. A reader that went away changes no verdict."""
    if output is not None:
        from ci_perf.system import files

        files.write_text(output, text)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def say(text: str) -> None:
    """Tell the person at the terminal; never part of the result, and harmless."""
    from ci_perf.report import escape

    click.echo("\n".join(escape.visible(line) for line in text.splitlines()), err=True)


def say_error(error: CiPerfError) -> None:
    """Tell the person what went wrong, with what a child process has printed."""
    from ci_perf.report import escape

    say("\n".join([f"error: {error}", *escape.quote_lines(error.output)]))


def in_color() -> bool:
    """Whether stdout wants colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Return the columns of the terminal; wide enough for a table where there is none.

    `shutil.get_terminal_size` asks the stdout that Python began with, which `prepare` has replaced.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # no terminal; a stream without a file has no number either
        return _NO_TERMINAL
    return columns or _NO_TERMINAL  # a terminal that nobody has told its size says 0


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
    sys.stdout = _make_unfailing(sys.stdout or os.fdopen(1, "w", closefd=False))
    sys.stderr = _make_unfailing(sys.stderr or os.fdopen(2, "w", closefd=False))


def failure_of_stdout() -> OSError | None:
    """Return what kept the result from being written; a reader that went away does not count."""
    sys.stdout.flush()
    failure: OSError | None = getattr(sys.stdout, "failure", None)
    return None if isinstance(failure, BrokenPipeError) else failure


def _make_unfailing(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody's own stream, in a notebook or a test
    encoding, buffered = stream.encoding, stream.line_buffering
    return Unfailing(
        stream.detach(),
        encoding=encoding,
        errors="backslashreplace",  # a character that the stream cannot show is spelled out
        line_buffering=buffered,
    )

"""Where results go: a file, whole or not at all, or stdout. People are spoken to on stderr."""

import os
import sys
from pathlib import Path

import click

_SHOWN_LINES = 12
# Columns where no terminal limits them: every column of a comparison has room.
_NO_TERMINAL = 160


def emit(text: str, *, output: Path | None) -> None:
    """Write the result of a command. A reader that went away changes no verdict (see stdio)."""
    if output is not None:
        from ci_perf.system import files

        files.write_text(output, text)
    else:
        click.echo(text, nl=not text.endswith("\n"))


def say(text: str) -> None:
    """Tell the person at the terminal; never part of the result, and harmless."""
    click.echo("\n".join(harmless(line) for line in text.splitlines()), err=True)


def harmless(line: str) -> str:
    """Return one line in a form that can command neither a terminal nor a CI.

    GitHub obeys `::command::` at the start of a line and `##[command]` anywhere in it.
    """
    from ci_perf.report import escape

    return escape.visible(line)


def fenced(text: str) -> list[str]:
    """Return the last lines of foreign text, set apart and harmless."""
    return [harmless(f"  | {line}") for line in text.splitlines()[-_SHOWN_LINES:]]


def in_color() -> bool:
    """Whether stdout wants colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Return the columns of the terminal; wide enough for a table where there is none.

    `shutil.get_terminal_size` asks the stdout that Python began with, which `stdio` has replaced.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # no terminal; a stream without a file has no number either
        return _NO_TERMINAL
    return columns or _NO_TERMINAL  # a terminal that nobody has told its size says 0

"""Where results go: a file, whole or not at all, or stdout. People are spoken to on stderr."""

import os
import re
import shutil
import sys
from pathlib import Path

import click

from ci_perf import files

_SHOWN_LINES = 12
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def emit(text: str, *, output: Path | None) -> None:
    """Write the result of a command. A reader that went away changes no verdict."""
    if output is not None:
        files.write_text(output, text)
        return
    try:
        click.echo(text, nl=not text.endswith("\n"))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Tell the person at the terminal; never part of the result."""
    click.echo(text, err=True)


def fenced(text: str) -> list[str]:
    """Return the last lines of foreign text in a form that can command neither terminal nor CI.

    GitHub obeys `::command::` at the start of a line and `##[command]` anywhere in it.
    """
    lines = text.splitlines()[-_SHOWN_LINES:]
    return [_CONTROL.sub("", f"  | {line}").replace("##[", "# #[") for line in lines]


def in_color() -> bool:
    """Whether stdout wants colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Return the columns of the terminal; wide enough for a table where there is none."""
    return shutil.get_terminal_size(fallback=(160, 24)).columns

"""Where results go: a file, whole or not at all, or stdout. People are spoken to on stderr."""

import os
import sys
from pathlib import Path

import click

from ci_perf import files


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

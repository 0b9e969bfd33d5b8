"""Where results go: a file, whole or not at all, or stdout. People are spoken to on stderr."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from ci_perf.errors import UsageError
from ci_perf.model import codec
from ci_perf.model.calibration import Calibration, Qualification
from ci_perf.model.comparison import Comparison
from ci_perf.report import escape
from ci_perf.report.tables import Page
from ci_perf.system import files

_SHOWN_LINES = 12
# Columns where no terminal limits them: every column of a comparison has room.
_NO_TERMINAL = 160


def emit(text: str, *, output: Path | None) -> None:
    """Write the result of a command. A reader that went away changes no verdict (see streams)."""
    if output is not None:
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
    return escape.visible(line)


def fenced(text: str) -> list[str]:
    """Return the last lines of foreign text, set apart and harmless."""
    return [harmless(f"  | {line}") for line in text.splitlines()[-_SHOWN_LINES:]]


def report_format(asked: str | None, target: Path | None) -> str:
    """Return the form that was asked for; else that of terminals where a person reads at one."""
    is_on_terminal = target is None and sys.stdout.isatty()
    return asked or ("terminal" if is_on_terminal else "markdown")


def in_color() -> bool:
    """Whether stdout wants colour: a terminal, and nobody said no (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Return the columns of the terminal; wide enough for a table where there is none.

    `shutil.get_terminal_size` asks the stdout that Python began with, which `streams` has replaced.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # no terminal; a stream without a file has no number either
        return _NO_TERMINAL
    return found or _NO_TERMINAL  # a terminal that nobody has told its size says 0


def check_target(form: str | None, target: Path | None, *, inputs: Iterable[Path]) -> None:
    """Find out before the work that the report has nowhere to go, or would destroy its own input.

    Raises UsageError and CannotWriteError.
    """
    for path in inputs:
        if target is not None and _is_within(target, path):
            raise UsageError(f"--output {target}: would overwrite {path}; name another file")
    if form in {"csv", "parquet"}:
        from ci_perf.report import frame

        frame.require(form)
    if form == "parquet" and target is None:
        raise UsageError("--format parquet is binary: name a file with --output")
    if target is not None:
        files.check_target(target)


def _is_within(target: Path, path: Path) -> bool:
    """Whether `target` is `path`, or lies in it: by what they resolve to, links and all."""
    try:
        return target.resolve().is_relative_to(path.resolve())
    except (OSError, RuntimeError):
        return False  # a loop of links, which writing will refuse


def emit_comparison(comparison: Comparison, form: str | None, target: Path | None) -> None:
    """Write the report in the form that was asked for; into a file, and its first line to a log.

    The log names the exit code after the file is written: a full disk ends with another one.
    """
    form = report_format(form, target)
    if form == "parquet" and target is not None:
        from ci_perf.report import frame

        files.write_bytes(target, frame.parquet(frame.of_comparison(comparison)))
    else:
        emit(_text(comparison, form), output=target)
    if target is not None:
        say(_told(comparison, target))


def _told(comparison: Comparison, target: Path) -> str:
    from ci_perf.report import terminal

    return f"{terminal.headline(comparison)}\nreport: {target}\nexit code: {comparison.exit_code}"


def _text(comparison: Comparison, form: str) -> str:
    if form == "json":
        return codec.encode(comparison)
    if form == "csv":
        from ci_perf.report import frame

        return frame.csv(frame.of_comparison(comparison))
    if form == "terminal":
        from ci_perf.report import terminal

        return terminal.render(comparison, width=width(), color=in_color())
    from ci_perf.report import markdown

    return markdown.render(comparison)


def check_table_target(target: Path | None, run_output: Path) -> None:
    """Find out before the work that the table of a machine has nowhere to go.

    Raises UsageError and CannotWriteError.
    """
    if target is None:
        return
    files.check_target(target)
    if target.resolve() == run_output.resolve():
        raise UsageError(f"--output {target}: would overwrite the run; name another file")


def emit_machine(document: Calibration | Qualification, form: str, target: Path | None) -> None:
    """Write what was found out of a machine."""
    if form == "json":
        emit(codec.encode(document), output=target)
        return
    from ci_perf.report import calibration_report

    emit_page(calibration_report.page(document), form, target)


def emit_page(page: Page, form: str, target: Path | None) -> None:
    """Write a page of tables, as Markdown or for a terminal."""
    from ci_perf.report import tables

    if form == "markdown":
        emit(tables.markdown(page), output=target)
    else:
        emit(tables.terminal(page, width=width(), color=in_color()), output=target)

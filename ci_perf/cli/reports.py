"""Write a report in the form that was asked for: to stdout, or whole or not at all to a file."""

import sys
from collections.abc import Iterable
from pathlib import Path

from ci_perf.cli import console
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.report.tables import Page
from ci_perf.system import files


def report_format(asked: str | None, target: Path | None) -> str:
    """Return the form that was asked for; else that of terminals where a person reads at one."""
    is_on_terminal = target is None and sys.stdout.isatty()
    return asked or ("terminal" if is_on_terminal else "markdown")


def check_target(form: str | None, target: Path | None, *, inputs: Iterable[Path]) -> None:
    """Find out before the work that the report has nowhere to go, or would destroy its own input.

    Raises UsageError, CannotWriteError and CiPerfError.
    """
    files.check_apart("--output", target, *inputs)
    if form == "csv":
        from ci_perf.report import frame

        frame.pandas()
    if target is not None:
        files.check_target(target)


def emit_comparison(comparison: Comparison, form: str | None, target: Path | None) -> None:
    """Write the report in the form that was asked for; into a file, and its first line to a log.

    The log names the exit code after the file is written: a full disk ends with another one.
    """
    from ci_perf.report import markdown, terminal

    form = report_format(form, target)
    if form == "csv":
        from ci_perf.report import frame

        console.emit(frame.csv(frame.frame_comparison(comparison)), output=target)
    elif form == "json":
        console.emit(codec.encode(comparison), output=target)
    elif form == "terminal":
        text = terminal.render(comparison, width=console.width(), color=console.in_color())
        console.emit(text, output=target)
    else:
        console.emit(markdown.render(comparison), output=target)
    if target is not None:
        headline = terminal.render_headline(comparison)
        console.say(f"{headline}\nreport: {target}\nexit code: {comparison.exit_code}")


def emit_page(page: Page, form: str | None, target: Path | None) -> None:
    """Write a page of tables: into a file as Markdown, as a report is, unless it was asked for."""
    from ci_perf.report import tables

    if (form or ("terminal" if target is None else report_format(form, target))) == "markdown":
        console.emit(tables.markdown(page), output=target)
    else:
        console.emit(
            tables.terminal(page, width=console.width(), color=console.in_color()), output=target
        )

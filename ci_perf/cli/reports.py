"""Write a report in the form that was asked for: to stdout, or whole or not at all to a file."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from ci_perf.cli import console
from ci_perf.errors import UsageError
from ci_perf.model import codec
from ci_perf.model.base import Struct
from ci_perf.model.comparison import Comparison
from ci_perf.report.tables import Page
from ci_perf.system import files

T = TypeVar("T")


def report_format(asked: str | None, target: Path | None) -> str:
    """Return the form that was asked for; else that of terminals where a person reads at one."""
    is_on_terminal = target is None and sys.stdout.isatty()
    return asked or ("terminal" if is_on_terminal else "markdown")


def check_target(target: Path | None, *, inputs: Iterable[Path]) -> None:
    """Find out before the work that the report has nowhere to go, or would destroy its own input.

    Raises UsageError and CannotWriteError.
    """
    files.check_apart("--output", target, *inputs)
    if target is not None:
        files.check_target(target)


def emit(
    forms: Mapping[str, Callable[[T], str]], document: T, form: str, target: Path | None
) -> None:
    """Write a document in one of its forms. Raises UsageError: it has no such form."""
    if form not in forms:
        raise UsageError(f"--format: expected {' or '.join(forms)} for this result, found {form}")
    console.emit(forms[form](document), output=target)


def emit_comparison(comparison: Comparison, form: str | None, target: Path | None) -> None:
    """Write the report in the form that was asked for; into a file, and its first line to a log.

    The log names the exit code after the file is written: a full disk ends with another one.
    """
    emit(COMPARISON_FORMS, comparison, report_format(form, target), target)
    if target is not None:
        from ci_perf.report import headline

        line = headline.render(comparison)
        console.say(f"{line}\nreport: {target}\nexit code: {comparison.job_exit_code}")


def emit_page(
    page: Page, form: str | None, target: Path | None, *, document: Struct | None = None
) -> None:
    """Write a page of tables: into a file as Markdown, as a report is, unless it was asked for.

    Where it shows a `document`, that may be asked for, too: as JSON.
    """
    forms = dict(PAGE_FORMS)
    if document is not None:
        forms["json"] = lambda _page: codec.encode(document)
    emit(forms, page, form or ("terminal" if target is None else "markdown"), target)


def _comparison_as_markdown(comparison: Comparison) -> str:
    from ci_perf.report import markdown

    return markdown.render(comparison)


def _comparison_for_terminal(comparison: Comparison) -> str:
    from ci_perf.report import terminal

    return terminal.render(comparison, width=console.width(), color=console.in_color())


def _comparison_as_csv(comparison: Comparison) -> str:
    from ci_perf.report import frame

    return frame.tabulate_comparison(comparison).to_csv()


def _page_as_markdown(page: Page) -> str:
    from ci_perf.report import tables

    return tables.markdown(page)


def _page_for_terminal(page: Page) -> str:
    from ci_perf.report import terminal_page

    return terminal_page.render(page, width=console.width(), color=console.in_color())


# What --format may name, and how each is written.
COMPARISON_FORMS: Mapping[str, Callable[[Comparison], str]] = {
    "markdown": _comparison_as_markdown,
    "json": codec.encode,
    "terminal": _comparison_for_terminal,
    "csv": _comparison_as_csv,
}
PAGE_FORMS: Mapping[str, Callable[[Page], str]] = {
    "terminal": _page_for_terminal,
    "markdown": _page_as_markdown,
}

"""A comparison as the Markdown that people read on a pull request."""

from ci_perf.model.comparison import Comparison
from ci_perf.report import comparison_page, tables
from ci_perf.report.escape import Words
from ci_perf.report.sentences import say
from ci_perf.report.sheet import Sheet, make_sheet
from ci_perf.report.tables import Page

# GitHub's limit for a comment is 65,536, of characters or bytes depending on whom one asks;
# whoever publishes the report adds a few lines.
COMMENT_BYTES = 60_000
# How many rows are shown: the first number that keeps the report within its bytes.
_SHOWN = (1_000, 100, 30, 10, 3, 1)
# A table is not made where it cannot fit, even if each of its rows were as short as this.
_SMALLEST_ROW = 60


def render(
    comparison: Comparison,
    *,
    max_bytes: int = COMMENT_BYTES,
    notes: Page = (),
    end: Page = (),
    body: str = "",
    url: str = "",
) -> str:
    """Show the verdict, what to do, what changed; the rest folded. Cut at whole rows to fit.

    ``notes`` stand below the first lines, and are always shown with them; ``end`` is left out
    first. ``body`` is what stands between, where it is known; the page at ``url`` shows all of it.
    """
    sheet = make_sheet(comparison)
    opening = tables.join_markdown([*comparison_page.introduce(sheet), *notes]) + "\n"
    ending = "\n" + tables.join_markdown(end) if end else ""
    left = max_bytes - len(opening.encode())
    if not body or len((body + ending).encode()) > left:
        body = render_body(sheet, max_bytes=left - len(ending.encode()))
    for rest in (body + ending, body):
        if len(rest.encode()) <= left:
            return opening + rest
    return opening + tables.join_markdown([say("too_long", url=Words(url))])


def render_body(sheet: Sheet, *, max_bytes: int) -> str:
    """Return what stands below the opening, cut at whole rows to fit."""
    text = ""
    for rows in _SHOWN:
        if min(rows, len(sheet.findings)) * _SMALLEST_ROW > max_bytes:
            continue
        text = tables.join_markdown(list(comparison_page.continue_page(sheet, rows=rows)))
        if len(text.encode()) <= max_bytes:
            break
    return text

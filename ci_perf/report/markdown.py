"""A comparison as the Markdown that people read on a pull request."""

from ci_perf.features.explain.report import MOST_EXPLAINED
from ci_perf.model.comparison import Comparison
from ci_perf.report import comparison_page, tables

# GitHub's limit for a comment is 65,536, of characters or bytes depending on whom one asks;
# whoever publishes the report adds a few lines.
COMMENT_BYTES = 60_000
# How many rows and explanations are shown: the first that keep the report within its bytes.
_SHOWN = ((1_000, MOST_EXPLAINED), (100, MOST_EXPLAINED), (30, 5), (10, 3), (3, 1), (3, 0))


def render(comparison: Comparison, *, max_bytes: int = COMMENT_BYTES) -> str:
    """Show the verdict, what to do, what changed; the rest folded. Cut at whole rows to fit."""
    opening = tables.join_markdown(list(comparison_page.introduce(comparison)))
    left = max_bytes - len(opening.encode()) - 1
    return f"{opening}\n{render_body(comparison, max_bytes=left)}"


def render_body(comparison: Comparison, *, max_bytes: int) -> str:
    """Return what stands below the opening, cut at whole rows to fit."""
    text = ""
    for rows, explained in _SHOWN:
        page = comparison_page.continue_page(comparison, rows=rows, explained=explained)
        text = tables.join_markdown(list(page))
        if len(text.encode()) <= max_bytes:
            break
    return text

"""A comparison for the person at a terminal: the same sentences and rows, in colour if wanted."""

from ci_perf.model.comparison import Comparison
from ci_perf.report import comparison_page, terminal_page
from ci_perf.report.sheet import make_sheet

# More rows than this scroll the verdict away; the other formats have them all.
_SHOWN = 200


def render(comparison: Comparison, *, width: int, color: bool) -> str:
    """Show the verdict, what to do, and what changed. Foreign text cannot steer the terminal."""
    sheet = make_sheet(comparison)
    below = comparison_page.continue_page(sheet, rows=_SHOWN, is_folding=False)
    page = [*comparison_page.introduce(sheet), *below]
    return terminal_page.render(page, width=width, color=color)

"""A comparison for the person at a terminal: the same sentences and rows, in colour if wanted."""

from ci_perf.model.comparison import Comparison
from ci_perf.report import comparison_page, headline, phrases, terminal_page

# More rows than this scroll the verdict away; the other formats have them all.
_SHOWN = 200


def render(comparison: Comparison, *, width: int, color: bool) -> str:
    """Show the verdict, what to do, and what changed. Foreign text cannot steer the terminal."""
    below = comparison_page.continue_page(comparison, rows=_SHOWN, is_folding=False)
    page = [*comparison_page.introduce(comparison), *below]
    return terminal_page.render(page, width=width, color=color)


def render_headline(comparison: Comparison) -> str:
    """Say the verdict in one plain line, for a log; the whole report is in a file."""
    return phrases.plain(headline.summarise(comparison))

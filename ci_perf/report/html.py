"""A run or a comparison as a fragment of HTML for notebooks, escaped by jinja2's autoescape."""

from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.report import comparison_page, page, side_by_side
from ci_perf.report.sheet import make_sheet
from ci_perf.report.tables import Page

_SHOWN = 1_000


def run(measured: Run) -> str:
    """Show the latency, throughput, memory and FLOPs of each workload."""
    return _render(side_by_side.page([(f"run {measured.id}", measured)]))


def comparison(judged: Comparison) -> str:
    """Show what the Markdown report shows."""
    sheet = make_sheet(judged)
    below = comparison_page.continue_page(sheet, rows=_SHOWN)
    return _render([*comparison_page.introduce(sheet), *below])


def _render(shown: Page) -> str:
    return page.environment().get_template("fragment.html.jinja").render(page=shown)

"""Every shape of report as a file that a person reviews; all headlines together in one.

After a change that is meant: `REWRITE_GOLDEN=1 python -m pytest tests/unit/report`, then read the
diff as the author of a pull request would.
"""

import functools
import re

import pytest

from ci_perf.report import headline, markdown
from tests.reviewed import GOLDEN, assert_all_reviewed, assert_reviewed
from tests.unit.report import shapes
from tests.unit.report.rendered import Page, as_html

EACH = pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)


@functools.cache
def render(shape):
    """Render each shape once."""
    return markdown.render(shape())


def test_the_headlines_read_as_reviewed():
    lines = {shape.__name__: render(shape).splitlines()[0] for shape in shapes.ALL}

    assert_all_reviewed(lines, GOLDEN / "headlines.md")


@EACH
def test_the_report_below_its_headline_reads_as_reviewed(shape):
    _, _, below = render(shape).partition("\n\n")

    assert_reviewed(below, GOLDEN / f"report_{shape.__name__}.md")


@EACH
def test_the_report_renders_into_complete_tables_and_closed_folds(shape):
    page = Page(render(shape))

    assert page.open == []
    assert set(page.rows) <= {3, 4, 5, 6}
    assert page.tags.count("details") == page.tags.count("summary") >= 1
    assert "|" not in page.prose
    assert "**" not in page.prose


@EACH
def test_the_report_is_read_in_20_seconds(shape):
    unfolded = re.sub("<details>.*?</details>", "", render(shape), flags=re.DOTALL)
    seen = re.sub("<[^>]*>", " ", as_html(unfolded))
    words = [word for word in seen.split() if any(map(str.isalnum, word))]

    assert len(words) <= (40 if headline.is_calm(shape()) else 120)


def test_every_golden_file_belongs_to_a_shape():
    expected = {f"report_{shape.__name__}.md" for shape in shapes.ALL}

    assert {path.name for path in GOLDEN.glob("report_*.md")} == expected

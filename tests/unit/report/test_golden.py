"""Every shape of report as a file that a person can review.

After a change that is meant: `REWRITE_GOLDEN=1 python -m pytest tests/unit/report`, then read the
diff as the author of a pull request would.
"""

import os
import re
from pathlib import Path

import pytest

from ci_perf.report import markdown
from tests.unit.report import shapes
from tests.unit.report.rendered import Page, as_html

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
def test_the_report_reads_as_reviewed(shape):
    report, golden = markdown.render(shape()), GOLDEN / f"report_{shape.__name__}.md"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(report, encoding="utf-8")

    assert report == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
def test_the_report_renders_into_complete_tables_and_closed_folds(shape):
    page = Page(markdown.render(shape()))

    assert page.open == []
    assert set(page.rows) <= {3, 4, 5, 6}
    assert page.tags.count("details") == page.tags.count("summary") >= 1
    assert "|" not in page.prose
    assert "**" not in page.prose


@pytest.mark.parametrize("shape", shapes.ALL, ids=lambda shape: shape.__name__)
def test_the_report_is_read_in_20_seconds(shape):
    report = markdown.render(shape())
    seen = re.sub(
        "<[^>]*>", " ", as_html(re.sub("<details>.*?</details>", "", report, flags=re.DOTALL))
    )
    words = [word for word in seen.split() if any(map(str.isalnum, word))]

    assert len(words) <= (40 if report.startswith("### ✅") else 120)


def test_every_golden_file_belongs_to_a_shape():
    expected = {f"report_{shape.__name__}.md" for shape in shapes.ALL}

    assert {path.name for path in GOLDEN.glob("report_*.md")} == expected

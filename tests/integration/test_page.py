"""Pages in a real browser: readable by all, without a request, a message or sideways scrolling."""

import pytest

from ci_perf.report import page
from tests.browser import look_at
from tests.unit.report import page_shapes

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


STORY, *OTHERS = page_shapes.ALL


@pytest.mark.parametrize(
    "shape",
    [pytest.param(STORY, marks=pytest.mark.story), *OTHERS],
    ids=lambda shape: shape.__name__,
)
def test_a_page_is_accessible_quiet_and_fits_every_width(browser, shape, tmp_path):
    comparison, run, base = shape()
    file = tmp_path / "page.html"
    file.write_text(page.render(comparison, run=run, base=base))

    for seen in look_at(browser, file):
        assert seen.foreign == 0
        for row in comparison.rows:
            assert row.workload[:40] in seen.text

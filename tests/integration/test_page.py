"""Pages in a real browser: readable by all, without a request, a message or sideways scrolling."""

import os

import pytest

from ci_perf.report import page
from ci_perf.report.page import history_page
from tests import browser as browsers
from tests.unit.report import history_shapes, page_shapes

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SIZES = [(1600, "light"), (400, "dark")]
# One scale of type; nothing is smaller.
TEXT_PX = {12, 14, 16, 18, 22}


@pytest.fixture(scope="module")
def browser():
    if reason := browsers.missing():
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(f"REQUIRE_BROWSER is set, but {reason}")
        pytest.skip(reason)
    with browsers.browser() as started:
        yield started


@pytest.mark.parametrize("shape", page_shapes.ALL, ids=lambda shape: shape.__name__)
def test_a_page_is_accessible_quiet_and_fits_every_width(browser, shape, tmp_path):
    comparison, run, base = shape()
    file = tmp_path / "page.html"
    file.write_text(page.render(comparison, run=run, base=base))

    for seen in looked_at(browser, file):
        assert seen.foreign == 0
        for row in comparison.rows:
            assert row.workload[:40] in seen.text


@pytest.mark.parametrize("shape", history_shapes.ALL, ids=lambda shape: shape.__name__)
def test_the_history_of_a_branch_is_as_good(browser, shape, tmp_path):
    history = shape()
    file = tmp_path / "index.html"
    file.write_text(history_page.render(history))

    for seen in looked_at(browser, file):
        for each in history.workloads:
            assert each.workload[:40] in seen.text


def looked_at(browser, file):
    """Look at a page in every size and scheme."""
    for width, scheme in SIZES:
        seen = browser.see(file, width=width, scheme=scheme)
        assert seen.violations == []
        assert (seen.messages, seen.requests) == ([], [])
        assert seen.content_width <= width
        assert set(seen.text_sizes_px) <= TEXT_PX
        assert seen.overlaps == []
        yield seen

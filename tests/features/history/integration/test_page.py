"""The page of a history in a real browser."""

import pytest

from ci_perf.features.history import history_page
from tests.browser import look_at
from tests.features.history import history_shapes

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.mark.parametrize("shape", history_shapes.ALL, ids=lambda shape: shape.__name__)
def test_the_history_of_a_branch_is_as_good(browser, shape, tmp_path):
    history = shape()
    file = tmp_path / "index.html"
    file.write_text(history_page.render(history))

    for seen in look_at(browser, file):
        for each in history.workloads:
            assert each.workload[:40] in seen.text

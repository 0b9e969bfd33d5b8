"""The last sessions of a row as text."""

import pytest

from ci_perf.report import markdown, sparklines, tables
from tests.comparisons import a_change, a_comparison
from tests.unit.report.shapes import SESSIONS_S

FLAT = SESSIONS_S[:1] * 9


@pytest.mark.parametrize(
    ("numbers", "height", "line"),
    [
        ((1, 2, 3, 4, 5, 6, 7, 8), 0, "▁▂▃▄▅▆▇█"),
        ((1.0, 1.001, 1.0), 0.07, "▁▁▁"),
        ((5, 5), 0, "▁▁"),
    ],
    ids=["a slope", "less than the limit", "flat and exact"],
)
def test_bars_are_as_high_as_the_numbers_differ_or_as_the_limit(numbers, height, line):
    assert sparklines.line(numbers, height=height) == line


@pytest.mark.parametrize(
    "change",
    [{"history": SESSIONS_S[:4]}, {"history": SESSIONS_S, "gate": False}, {"history": FLAT}],
    ids=["too few sessions", "cannot fail the job", "never moved"],
)
def test_rows_that_say_nothing_of_how_they_go_have_no_line(change):
    assert "last sessions" not in markdown.render(a_comparison(a_change("mlp", **change)))


def test_lines_that_are_left_out_are_counted():
    rows = [a_change(f"w{i}", history=SESSIONS_S) for i in range(12)]
    text = tables.markdown(sparklines.page(rows, shown=10))

    assert text.count("▂▂▁▂▃▂▇▇█▇") == 10
    assert "10 of 12 rows are shown." in text

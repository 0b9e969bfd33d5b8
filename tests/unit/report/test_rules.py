"""The rule of a row as text: an interval lies on its side of the limit, and of half of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.model.comparison import Interval, Verdict
from ci_perf.report import rules, terminal
from tests.comparisons import a_change, a_comparison, an_uncompared

ZERO = rules.WIDTH // 2


def drawn(low, ratio, high, *, limit=0.02):
    change = a_change(ratio=ratio, interval=Interval(low=low, high=high), limit=limit)
    return rules.text(change)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ((1.012, 1.02, 1.028), "·········(··┊··│··┊━━◆━━·······"),
        ((0.992, 1.0, 1.008), "·········(··┊━━◆━━┊··)·········"),
        ((0.97, 1.01, 1.2), "······━━━┿━━┿━━┿━━◆━━┿━━━━━━━━━"),
        ((1.1, 1.2, 1.3), "·········(··┊··│··┊··)········▶"),
        ((0.8, 0.9, 0.96), "◀━━━·····(··┊··│··┊··)·········"),
    ],
    ids=["regressed", "unchanged", "undecided", "far worse", "far better"],
)
def test_a_row_is_drawn_beside_its_limit_and_half_of_it(row, text):
    assert drawn(*row) == text


@pytest.mark.parametrize("row", [(1.01001, 1.0101, 1.0102), (0.99001, 1.0, 1.00999)])
def test_an_interval_that_hardly_clears_half_the_limit_is_not_drawn_across_it(row):
    assert drawn(*row).count("┊") == 2


@given(
    st.floats(0.001, 1.0),
    st.lists(st.floats(-0.9, 9.0), min_size=3, max_size=3).map(sorted),
)
def test_the_drawing_and_the_numbers_say_the_same(limit, sizes):
    low, size, high = (1 + each for each in sizes)
    text = drawn(low, size, high, limit=limit)

    bar = [at for at, mark in enumerate(text) if mark in "━┿◆▶◀"]
    end = 2.5 * limit
    ticks = {tick: ZERO + round(ZERO * tick / end) for tick in (limit / 2, -limit / 2, limit)}
    assert len(text) == rules.WIDTH
    for tick, column in ticks.items():
        assert (low - 1 > tick) == (bar[0] > column) or low - 1 == pytest.approx(tick, abs=2e-9)
        assert (high - 1 < tick) == (bar[-1] < column) or high - 1 == pytest.approx(tick, abs=2e-9)


WIDE = a_comparison(
    a_change("mlp", Verdict.REGRESSED, ratio=1.023),
    an_uncompared("conv", note="boom"),
)


def test_a_wide_terminal_draws_the_rows_that_have_an_interval():
    lines = terminal.render(WIDE, width=120, color=False).splitlines()

    drawings = [line for line in lines if "┊" in line]
    assert len(drawings) == 2  # the row, and what the marks mean
    assert "·(··┊··│··┊━━┿◆━━━·" in drawings[0]


@pytest.mark.parametrize("width", [80, 119])
def test_a_narrow_terminal_keeps_the_table_as_it_was(width):
    assert "┊" not in terminal.render(WIDE, width=width, color=False)


def test_a_terminal_of_ascii_gets_drawings_of_ascii():
    text = terminal.render(WIDE, width=120, color=False, is_ascii=True)

    assert ".(..:..|..:==+*===." in text

import pytest

from ci_perf.report import tables, terminal_page
from ci_perf.report.escape import Words
from ci_perf.report.tables import Table
from tests.unit.report.rendered import Page

EVIL = "a|b`c\n::error::x <img> @you \x1b[31m"


def a_page(name="matmul.size=256"):
    row = [name, Words("1.2 %"), Words("quiet")]
    return [
        [Words("All is well with "), name],
        Table([Words("workload"), "spread", "note"], [row], left=["note"]),
        [Words("That is all.")],
    ]


def terminal(page, width=100, *, color=False):
    return terminal_page.render(page, width=width, color=color)


def test_a_table_in_markdown_is_a_table():
    page = Page(tables.markdown(a_page()))

    assert page.rows == [3, 3]
    assert "matmul.size=256" in page.code
    assert "All is well" in page.prose


def test_numbers_stand_on_the_right_and_words_on_the_left():
    assert "| :-- | --: | :-- |" in tables.markdown(a_page())


def test_foreign_text_stays_in_its_cell():
    page = Page(tables.markdown(a_page(EVIL)))

    assert page.rows == [3, 3]
    assert "img" not in page.tags
    assert "@you" not in page.prose


def test_foreign_text_cannot_steer_a_terminal():
    shown = terminal(a_page(EVIL))

    assert "\x1b" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, terminal(a_page(), width).splitlines())) <= width


def test_a_name_is_never_cut():
    shown = terminal(a_page("x" * 30), 40)

    assert shown.count("x") == 60


def test_colour_is_used_where_it_is_wanted():
    assert "\x1b[1m" in terminal(a_page(), color=True)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_that_has_no_room_becomes_sentences_and_loses_no_number(width):
    headings = [Words(f"column {number}") for number in range(12)]
    row = ["matmul", *(Words(f"{number}.25 ms") for number in range(11))]

    shown = " ".join(terminal([[Words("All is well")], Table(headings, [row])], width).split())

    assert all(f"{number}.25 ms" in shown for number in range(11))
    assert ("matmul: column 1 0.25 ms, column 2 1.25 ms" in shown) is (width < 120)

"""Machines compared in words, tables and a picture."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from ci_perf.judging import value
from ci_perf.judging.value import PricedClass
from ci_perf.model.hardware import Price
from ci_perf.report import hardware, tables
from ci_perf.report.page import price_picture, tables_page
from tests.hardware import A100, H100, L4, a_machine_run
from tests.runs import a_failed


def a_class(run, name, per_hour=None):
    price = per_hour and Price(per_hour=per_hour, as_of="2026-11-01", source="contract | 17")
    return PricedClass(
        name=name,
        machine=name,
        hard=run.environment.hard,
        runs=(run,),
        price=price,
        age_days=22 if price else None,
    )


def compared(*classes, currency="EUR", notes=()):
    return value.of(classes, currency=currency, notes=notes)


PRICED = compared(a_class(A100, "a100", 2), a_class(H100, "h100", 5), a_class(L4, "l4"))


def shown(answer):
    return tables.markdown(hardware.page(answer))


def drawn(answer):
    picture = price_picture.picture(answer)
    assert picture is not None
    return picture


def test_the_fastest_and_the_cheapest_come_first():
    text = shown(PRICED)

    assert text.startswith("**Fastest: `h100`; most for the money: `a100`**")
    assert "3 classes of machines, 1 workload of `smoke` at `d4e5f6a7d4e5`" in text
    assert "| `h100` | 1 | 2\N{MULTIPLICATION SIGN}" in text
    assert "| `l4` | 2 | 1\N{MULTIPLICATION SIGN}" in text


def test_a_machine_without_a_price_has_a_dash():
    row = next(line for line in shown(PRICED).splitlines() if line.startswith("| `l4` | 2 |"))

    assert row.endswith("| 4 | \N{EN DASH} | \N{EN DASH} | \N{EN DASH} |")


def test_amounts_have_their_range_in_their_unit():
    text = shown(PRICED)

    assert re.search(r"\| 1 \| 10[0-9]k \[9[0-9.]+, 10[0-9.]+\] \|", text), text
    assert "images per EUR | EUR per million |" in text
    assert "`contract \\| 17`" in text


def test_without_prices_no_money_is_spoken_of():
    text = shown(compared(a_class(A100, "a100"), a_class(H100, "h100"), currency=""))

    assert text.startswith("**Fastest: `h100`**")
    assert "price" not in text
    assert "EUR" not in text


def test_what_overlaps_is_named_together():
    text = shown(compared(a_class(A100, "a100"), a_class(L4, "l4"), currency=""))

    assert text.startswith("**Fastest: `a100` or `l4`**")


def test_a_workload_that_failed_says_why_below_its_table():
    broken = a_machine_run("NVIDIA L4", 2.0, a_failed("gpt", "out | of memory"))

    text = shown(compared(a_class(H100, "h100"), a_class(broken, "l4"), notes=("a note",)))

    assert "`l4`: `timed: out \\| of memory`" in text
    assert "`h100`: `not measured`" in text
    assert "note: `a note`" in text


def test_the_picture_says_in_words_what_it_draws():
    picture = drawn(PRICED)

    assert picture.label == (
        "Price against speed. a100: 2 EUR per hour, speed 1; h100: 5 EUR per hour, speed 2. "
        "On the line lies the most speed for the money."
    )
    a100, h100 = picture.marks
    assert a100.x < h100.x
    assert a100.y > h100.y  # faster is higher
    assert {"a100", "h100", "EUR per hour"} <= {each.text for each in picture.captions}


def test_names_of_machines_of_one_speed_do_not_lie_on_each_other():
    many = [a_class(A100, f"a100-{number}", 2 + number / 100) for number in range(6)]

    captions = drawn(compared(*many)).captions

    heights = sorted(each.y for each in captions if each.text.startswith("a100-"))
    assert min(after - before for before, after in itertools.pairwise(heights)) >= 14.9


def test_the_svg_is_xml_in_which_no_name_is_obeyed():
    named = compared(a_class(A100, "a&<script>", 2), a_class(H100, "h100", 5))

    root = ET.fromstring(price_picture.svg(drawn(named)))

    words = [each.text for each in root.iter() if each.tag.endswith("}text")]
    assert "a&<script>" in words
    assert not [each for each in root.iter() if each.tag.endswith("}script")]


def test_without_a_price_there_is_nothing_to_draw():
    assert price_picture.picture(compared(a_class(A100, "a100"))) is None


@pytest.mark.parametrize("answer", [PRICED, compared(a_class(A100, "a100"), currency="")])
def test_the_page_has_the_picture_where_there_is_one(answer):
    picture = price_picture.picture(answer)

    html = tables_page.render(hardware.page(answer), tone="same", picture=picture)

    assert ("<figure" in html) == (picture is not None)
    assert "Fastest" in html

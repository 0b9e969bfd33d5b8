"""The figures of the house: how a value is followed, and what `report` must not import."""

from dataclasses import dataclass

import pytest

from benchmarks import house


@dataclass(frozen=True)
class Held:
    value: object


def is_sought(value):
    return value == "x"


@pytest.mark.parametrize("holder", ["x", ("x",), {"key": "x"}, Held("x"), Held(Held("x"))])
def test_a_value_is_found_in_what_holds_it(holder):
    assert house._holds(holder, is_sought, house.DEPTH)


def test_a_value_is_found_in_the_function_that_encloses_it():
    value = "x"

    assert house._holds(lambda: value, is_sought, house.DEPTH)


def test_a_value_is_looked_for_no_deeper_than_told():
    assert not house._holds(Held(Held("x")), is_sought, 1)


def test_the_command_with_the_token_imports_nothing_of_the_measuring_side():
    ours, of_measuring = house.imports()

    assert ours[1] != 0
    assert of_measuring[1] == 0

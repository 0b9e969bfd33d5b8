"""The figures of the house: how a value is followed, and what `report` must not import."""

from dataclasses import dataclass

import pytest

from benchmarks import house
from ci_perf.model.run import Source


@dataclass(frozen=True)
class Held:
    value: object


def is_sought(value):
    return value == "x"


@pytest.mark.parametrize("holder", ["x", ("x",), {"key": "x"}, Held("x"), Held(Held("x"))])
def test_a_value_is_found_in_what_holds_it(holder):
    assert house._holds(holder, is_sought, documents=False)


def test_a_value_is_found_in_the_function_that_encloses_it():
    value = "x"

    assert house._holds(lambda: value, is_sought, documents=False)


def test_a_value_is_looked_for_no_deeper_than_told():
    assert not house._holds(Held(Held("x")), is_sought, documents=False, depth=1)


@pytest.mark.parametrize("documents", [True, False])
def test_a_document_holds_a_value_where_documents_count(documents):
    source = Source(commit="x", branch="", dirty=False)

    assert house._holds(source, is_sought, documents=documents) == documents


def test_the_command_with_the_token_imports_nothing_of_the_measuring_side():
    ours, of_measuring = house.imports()

    assert ours[1] != 0
    assert of_measuring[1] == 0

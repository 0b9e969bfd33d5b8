"""The parts of a source: what is equal, what differs, and what cannot be parsed."""

import textwrap

import pytest

from ci_perf.program import units

NET = """
import os

LIMIT = 3


class Net(Base, metaclass=Meta):
    depth: int = 2

    def forward(self, x, *, scale=1.0):
        def inner(y):
            return y * scale
        return inner(x)

    if os.name == "posix":
        @property
        def size(self):
            return 1


def helper(n: int = LIMIT) -> int:
    return n + 1
"""


def digests(text):
    return units.digests(textwrap.dedent(text).encode())


def changed(before, after):
    one, other = digests(before), digests(after)
    return {name for name in one | other if one.get(name) != other.get(name)}


def test_a_source_is_divided_as_its_code_objects_are_called():
    assert digests(NET).keys() == {":", "Net:", "Net.forward", "Net.size", "helper"}


@pytest.mark.parametrize(
    ("old", "new", "units_changed"),
    [
        ("return n + 1", "return n + 2", {"helper"}),
        ("y * scale", "y + scale", {"Net.forward"}),
        ("LIMIT = 3", "LIMIT = 4", {":"}),
        ("depth: int = 2", "depth: int = 3", {"Net:"}),
        ("scale=1.0", "scale=2.0", {"Net:", "Net.forward"}),
        ("n: int = LIMIT", "n: int = 0", {":", "helper"}),
        ("metaclass=Meta", "metaclass=Other", {":"}),
        ("@property", "@cached", {"Net:", "Net.size"}),
        ("import os", "import os, sys", {":"}),
        ("return n + 1", "yield n + 1", {":", "helper"}),  # a call does not run it any more
        ("return 1", "return super().size", {"Net:", "Net.size"}),  # the class gets a cell
        ("return 1", "self.a = 1", {"Net:", "Net.size"}),  # __static_attributes__
        ("return n + 1", '"""A docstring."""\n    return n + 1', set()),
        ("return n + 1", "return (n\n  +   1)  # more", set()),
        ("LIMIT = 3", "LIMIT = 0x3", set()),
        ("LIMIT = 3", "LIMIT = 3.0", {":"}),
        ("LIMIT = 3", "LIMIT = True", {":"}),
        ("def helper", "async def helper", {":", "helper"}),
        ("def helper", "def helped", {":", "helper", "helped"}),
    ],
)
def test_a_change_is_seen_in_the_units_that_it_changes(old, new, units_changed):
    assert changed(NET, NET.replace(old, new)) == units_changed


def test_an_import_from_the_future_changes_every_unit():
    future = f"from __future__ import annotations\n{NET}"

    assert changed(NET, future) == {*digests(NET)}


def test_functions_of_one_name_are_one_unit():
    before = "if x:\n    def f(): return 1\nelse:\n    def f(): return 2"

    assert changed(before, before.replace("return 1", "return 3")) == {"f"}


def test_what_is_left_out_of_a_list_is_not_what_is_not_there():
    assert changed("d = {**a, 1: 2}", "d = {1: 2, **a}") == {":"}
    assert changed("x = None", "x = ...") == {":"}
    assert changed("def f(): return", "def f(): return None") == {"f"}


def test_a_string_is_the_same_in_any_encoding_and_a_changed_one_is_not():
    utf8 = units.digests("x = 'é'".encode())

    assert units.digests("# coding: latin-1\nx = 'é'".encode("latin-1")) == utf8
    assert units.digests("# coding: latin-1\nx = 'é'".encode()) != utf8
    assert units.digests(b"\xef\xbb\xbf" + "x = 'é'".encode()) == utf8


HOSTILE = {
    "parentheses": b"(" * 100_000,
    "negations": b"-" * 100_000 + b"1",
    "sums": b"+".join([b"1"] * 100_000),
    "attributes": b"a" + b".b" * 100_000,
    "calls": b"a" + b"()" * 100_000,
    "branches": b"if x:\n pass\n" + b"elif x:\n pass\n" * 20_000,
    "a null": b"x = 1\0",
    "half a character": b"x = '\xff'",
    "a codec of somebody": b"# coding: rot13\nk = 1",
    "an unknown codec": b"# coding: nonsense\nx = 1",
    "digits": b"x = " + b"9" * 100_000,
    "size": b"#" * (units.MAX_SOURCE_BYTES + 1),
    "syntax": b"def f(:",
    "a later syntax": b"x = t'{y}' @@ 1",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_parsed_is_a_value_error(source):
    with pytest.raises(ValueError, match="expected"):
        units.digests(source)


def test_a_deep_tree_that_parses_is_hashed():
    assert units.digests(b"+".join([b"1"] * 2_000)).keys() == {":"}


def test_a_source_that_warns_does_not_warn():
    assert units.digests(rb"x = '\d'") == units.digests(rb"x = '\\d'")

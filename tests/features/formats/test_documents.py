"""The names of readings, and files that are none of any format."""

import re

import pytest

from ci_perf import hooks
from ci_perf.features.formats import documents
from ci_perf.measuring.written_numbers import WrittenNumbers

FORMATS = hooks.find_formats()


def read(name, path):
    return hooks.load(FORMATS[name])(path)


def test_a_name_keeps_what_a_metric_may_have():
    readings = documents.collect([("a/b::c[1-2] d=3+4.5_%", WrittenNumbers(values=(1.0,)))])

    assert list(readings) == ["a_b__c_1-2__d=3+4.5__"]


def test_two_benchmarks_of_one_name_are_refused():
    same = WrittenNumbers(values=(1.0,))

    with pytest.raises(
        ValueError, match=re.escape("found 'a[1]' and 'a(1)', which are both read as 'a_1_'")
    ):
        documents.collect([("a[1]", same), ("a(1)", same)])


def test_long_names_end_in_a_digest_and_stay_apart():
    same, name = WrittenNumbers(values=(1.0,)), f"bench --{'x' * 300}"
    readings = documents.collect([(f"{name} a", same), (f"{name} b", same)])

    first, second = readings
    assert first != second
    assert {len(first), len(second)} == {194}
    assert first.startswith("bench_--xxx")
    assert list(documents.collect([("y" * 194, same)])) == ["y" * 194]


@pytest.mark.parametrize("name", ["json", "vllm", "hyperfine"])
def test_a_key_that_is_there_twice_is_refused(name, tmp_path):
    file = tmp_path / "results"
    file.write_text('{"results": [{"median": 1, "median": 2}]}')

    with pytest.raises(ValueError, match=r"^expected each key once, found 'median' twice"):
        read(name, file)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (None, float("nan"), "a finite number, found nan"),
        ("bytes", float("inf"), "a finite number, found inf"),
        ("time", 0.0, "a time above 0, found 0"),
        ("tail", -1.0, "a tail above 0, found -1"),
        ("rate", 0.0, "a rate above 0, found 0"),
    ],
)
def test_a_value_that_cannot_be_judged_is_refused(kind, value, expected):
    with pytest.raises(ValueError, match=f"^name: expected {expected}$"):
        documents.collect([("name", WrittenNumbers(values=(1.0, value), kind=kind))])


def test_a_count_may_be_0():
    zero = WrittenNumbers(values=(0.0,), kind="count")

    assert documents.collect([("errors", zero)]) == {"errors": zero}


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"tensorboard"}))
@pytest.mark.parametrize(
    "text", ["", " \n", "{", "not JSON", "[" * 100_000, '{"other": "x"}', "[]", "{}", "null"]
)
def test_a_file_of_something_else_is_refused(name, text, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)

    with pytest.raises(ValueError, match="expected"):
        read(name, path)


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"tensorboard"}))
def test_a_file_that_is_missing_or_binary_is_refused(name, tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ValueError, match="expected a file of text, found: No such file"):
        read(name, tmp_path / "missing")
    with pytest.raises(ValueError, match="expected a file of text, found: "):
        read(name, tmp_path / "binary")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest-benchmark", '{"benchmarks": []}'),
        ("asv", '{"version": 2, "result_columns": [], "results": {}}'),
        ("nvbench", '{"benchmarks": null}'),
        ("google-benchmark", '{"context": {}, "benchmarks": []}'),
        ("hyperfine", '{"results": []}'),
        ("guidellm", '{"benchmarks": []}'),
        ("hud", "[]"),
        ("json", '{"text": "only", "flag": true}'),
    ],
)
def test_a_file_without_a_benchmark_is_refused(name, text, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)

    with pytest.raises(ValueError, match="expected at least one benchmark, found none"):
        read(name, path)

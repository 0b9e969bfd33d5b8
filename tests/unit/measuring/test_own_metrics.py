"""Metrics of the user's own: what a command prints or writes, in seconds, bytes and counts."""

import os

import msgspec
import pytest

from ci_perf import hooks
from ci_perf.measuring import own_metrics
from ci_perf.measuring.own_metrics import OwnMetrics
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.suite import OwnMetric


def opened(reads="regex", **metrics):
    declared = {name: OwnMetric(**entry) for name, entry in metrics.items()}
    return OwnMetrics(reads, msgspec.json.encode(declared).decode())


def printed(text, *runs, **metrics):
    """Return the numbers of a launch whose runs have printed these texts."""
    own = opened(**metrics)
    return own_metrics.join_runs(
        [own.read_run(run.splitlines(), None, None) for run in (text, *runs)]
    )


@pytest.fixture
def a_format(monkeypatch):
    """A format that reads "NAME NUMBER" a line; a time where the name ends in `_s`."""

    def read(path):
        rows = [line.split() for line in path.read_text().splitlines()]
        if not rows:
            raise ValueError("expected a line, found none")
        return {
            name: WrittenNumbers(values=(float(value),), kind="time" if name[-2:] == "_s" else None)
            for name, value in rows
        }

    monkeypatch.setattr(hooks, "find_formats", lambda: {"lines": "here:read"})
    monkeypatch.setattr(hooks, "load", lambda _: read)


def test_a_time_is_the_median_of_what_a_run_prints_in_seconds():
    numbers = printed("x 1 ms\nx 9 ms\nx 2 ms", a_ms={"kind": "time", "find": "x ([0-9]+) ms"})

    assert numbers == {"time.a_ms": pytest.approx(0.002)}


def test_the_numbers_of_a_launch_are_the_middle_of_its_runs():
    numbers = printed("x 9", "x 2", "x 3", a_s={"kind": "time", "find": "x (.)"})

    assert numbers == {"time.a_s": 3.0}


@pytest.mark.parametrize(("kind", "number"), [("count", 7.0), ("score", 3.0)])
def test_of_what_is_exact_the_worst_counts(kind, number):
    numbers = printed("x 3\nx 7", n={"kind": kind, "find": "x (.)"})

    assert numbers == {f"{kind}.n": number}


@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [("a_us", "", 5e-6), ("a", "ms", 5e-3), ("a_ms", "s", 5.0), ("a_mib", "", 5 * 2.0**20)],
)
def test_the_unit_is_that_of_the_entry_or_the_end_of_the_name(name, unit, value):
    kind = "bytes" if name == "a_mib" else "time"
    numbers = printed("x 5", **{name: {"kind": kind, "find": "x (.)", "unit": unit}})

    assert numbers == {f"{kind}.{name}": pytest.approx(value)}


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        ("x 0", {"kind": "time"}, r"time\.n: expected a number above 0, up to 1e18, found 0"),
        ("x 0", {"kind": "rate"}, r"rate\.n: expected a number above 0, up to 1e18, found 0"),
        ("x nan", {"kind": "time"}, r"time\.n: expected a number above 0, up to 1e18, found nan"),
        ("x inf", {"kind": "bytes"}, r"bytes\.n: expected a number above 0, up to 1e18, found inf"),
        ("x -1", {"kind": "count"}, r"count\.n: expected a number from 0 to 1e18, found -1"),
        ("x one", {"kind": "time"}, "expected a number, found 'one' in 'x one'"),
        ("y 1", {"kind": "time"}, r"metrics\.n: expected 'x \(\.\*\)', found none"),
        ("x 2", {"kind": "validity", "at_most": 1}, "n: expected at most 1, found 2"),
        ("x 2", {"kind": "validity", "at_least": 3}, "n: expected at least 3, found 2"),
    ],
)
def test_a_number_that_says_nothing_is_never_fast(text, entry, message):
    with pytest.raises(ValueError, match=message):
        printed(text, n={"find": "x (.*)", **entry})


def test_an_optional_metric_may_be_absent():
    entry = {"kind": "tail", "find": "p99 (.)", "optional": True}

    assert printed("nothing", p99_s=entry) == {}


def test_a_validity_that_holds_is_no_metric():
    assert (
        printed("failed 0", failed={"kind": "validity", "find": "failed (.)", "at_most": 0}) == {}
    )


def read_lines(tmp_path, text, **metrics):
    (tmp_path / "output").write_text(text)
    return opened("lines", **metrics).read_run([], tmp_path / "output", None)


@pytest.mark.parametrize(
    ("metrics", "numbers"),
    [
        ({}, {"time.a_s": 2.0}),
        ({"o": {"kind": "count", "find": "other"}}, {"count.o": 5.0}),
        # A known kind is in its unit, whatever the name of the entry ends in.
        ({"a_ms": {"kind": "tail", "find": "a_s"}}, {"tail.a_ms": 2.0}),
    ],
    ids=["what the format knows", "what a table chooses", "another name"],
)
@pytest.mark.usefixtures("a_format")
def test_numbers_are_those_of_the_format_or_of_the_table(tmp_path, metrics, numbers):
    assert read_lines(tmp_path, "a_s 2\nother 5\n", **metrics) == numbers


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "rate", "find": "a_s"}, r"rate\.x: expected a kind in s and no unit"),
        (
            {"kind": "time", "find": "a_s", "unit": "ms"},
            r"time\.x: expected a kind in s and no unit",
        ),
        ({"kind": "bytes", "find": "other", "unit": "ms"}, "expected a unit of byte, found 'ms'"),
    ],
)
@pytest.mark.usefixtures("a_format")
def test_a_number_is_never_taken_for_another_quantity(tmp_path, entry, message):
    with pytest.raises(ValueError, match=message):
        read_lines(tmp_path, "a_s 2\nother 5", x=entry)


@pytest.mark.usefixtures("a_format")
def test_a_file_of_an_earlier_run_does_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text("a_s 2\n")
    own = opened("lines:old.txt")
    before = own_metrics.stamp(own.find_file(tmp_path / "output"))

    with pytest.raises(ValueError, match=r"expected a file of this run at old\.txt, found none"):
        own.read_run([], tmp_path / "output", before)


def test_a_folder_is_as_new_as_its_newest_file(tmp_path):
    (tmp_path / "events").mkdir()
    assert own_metrics.stamp(tmp_path / "events") is None

    for number, name in enumerate("ab", 1):
        (tmp_path / "events" / name).touch()
        os.utime(tmp_path / "events" / name, ns=(number, number))

    assert own_metrics.stamp(tmp_path / "events") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"\{output\}, read as lines: expected a line, found none"),
        ("other 5\n", r"lines: expected a table of metrics in suite\.toml"),
    ],
    ids=["what a format refuses", "numbers of no known kind"],
)
@pytest.mark.usefixtures("a_format")
def test_a_file_without_numbers_is_told_by_its_name(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_lines(tmp_path, text)


def test_a_benchmark_that_failed_fails_the_launch(tmp_path, monkeypatch):
    """Even where another one has numbers."""
    readings = {
        "a": WrittenNumbers(values=(1.0,), kind="time"),
        "b": WrittenNumbers(failure="no GPU"),
    }
    monkeypatch.setattr(hooks, "find_formats", lambda: {"lines": "here:read"})
    monkeypatch.setattr(hooks, "load", lambda _: lambda _: readings)
    (tmp_path / "output").write_text("")

    with pytest.raises(ValueError, match=r"\{output\}: b: expected numbers, found: no GPU"):
        opened("lines").read_run([], tmp_path / "output", None)

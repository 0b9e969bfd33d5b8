import io

import pytest
from rich.console import Console
from rich.progress import Progress

from ci_perf.cli import progress
from ci_perf.cli.pace import Pace
from ci_perf.cli.progress import GroupedListener, PlainListener, TerminalListener
from tests.clocks import Clock
from tests.runs import a_failed


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def said(capsys):
    """Return what has been said since the last time."""

    def lines():
        captured = capsys.readouterr()
        assert not captured.out
        return captured.err.splitlines()

    return lines


def measured(listener, clock, workload, number, of, seconds):
    listener.started(workload, number, of)
    clock.now += seconds
    listener.finished(workload, seconds)


def test_a_workload_has_one_line_when_its_last_process_is_done(clock, said):
    listener = PlainListener(clock)
    listener.planned({"a": 2, "b": 2}, 0)
    for number in (1, 2):
        for name in ("a", "b"):
            measured(listener, clock, name, number, 2, 10)
        listener.round_finished(number, 2)

    assert said() == [
        "measuring 2 workloads in 4 processes",
        "round 1 of 2 done in 20 s; about 20 s left",
        "[1/2] a: 2 processes in 20 s; about 10 s left",
        "[2/2] b: 2 processes in 20 s",
    ]


def test_a_log_is_not_silent_for_long_while_something_ends(clock, said):
    listener = PlainListener(clock)
    listener.planned({"a": 2, "b": 2}, 0)
    measured(listener, clock, "a", 1, 2, 40)
    measured(listener, clock, "b", 1, 2, 40)

    assert said()[1:] == ["[0/2] b: process 1 done; about 1 min 20 s left"]


def test_canaries_count_for_the_time_left(clock, said):
    listener = PlainListener(clock)
    listener.planned({"a": 2}, 3)
    for left in (2, 1):
        listener.canary_started()
        clock.now += 3
        listener.canary_finished(left)
        measured(listener, clock, "a", 3 - left, 2, 10)
        listener.round_finished(3 - left, 2)

    assert said()[1:] == [
        "round 1 of 2 done in 13 s; about 16 s left",
        "[1/1] a: 2 processes in 20 s; about 3 s left",
    ]


def test_a_failure_is_told_at_once_with_its_last_lines(clock, said):
    listener = PlainListener(clock)
    listener.planned({"bad": 3}, 0)
    listener.started("bad", 1, 3)
    listener.failed(a_failed("bad", "ValueError: boom", output="::error::x"), 2)

    assert said()[1:] == [
        "[1/1] bad: failed in phase timed",
        "  | ValueError: boom",
        "  | : :error::x",
    ]


def test_on_github_what_failed_stands_below_the_group(clock, said):
    listener = GroupedListener(clock)
    listener.planned({"bad": 1}, 0)
    listener.started("bad", 1, 1)
    listener.failed(a_failed("bad", "ValueError: boom"), 0)
    listener.close()
    listener.close()

    assert said() == [
        "::group::measuring 1 workload in 1 process",
        "[1/1] bad: failed in phase timed",
        "::endgroup::",
        "bad: failed in phase timed",
        "  | ValueError: boom",
    ]


def test_who_must_wait_and_never_measures_opens_no_group(clock, said):
    listener = GroupedListener(clock)
    listener.waiting("GPU-0", "::group::somebody")
    listener.close()

    assert said() == ["waiting for GPU-0: held by : :group::somebody"]


@pytest.mark.parametrize(
    ("environment", "kind"), [({"GITHUB_ACTIONS": "true"}, GroupedListener), ({}, PlainListener)]
)
def test_the_listener_suits_the_place(monkeypatch, environment, kind):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with progress.listener() as found:
        assert type(found) is kind


def test_a_group_is_closed_also_when_measuring_breaks(monkeypatch, said):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    def measure():
        with progress.listener() as found:
            found.planned({"a": 1}, 0)
            raise OSError("our own bug")

    with pytest.raises(OSError, match="our own bug"):
        measure()
    assert said()[-1] == "::endgroup::"


def test_a_terminal_shows_what_runs_now(clock):
    known = Pace(clock)
    with Progress(console=Console(file=io.StringIO())) as bar:
        listener = TerminalListener(bar, known)
        listener.planned({"a": 2, "b": 2}, 1)
        listener.canary_started()
        shown = [bar.tasks[0].description]
        listener.canary_finished(0)
        measured(listener, clock, "a", 1, 2, 10)
        listener.started("b", 1, 2)
        shown.append(bar.tasks[0].description)
        listener.failed(a_failed("b"), 1)

        assert shown == ["canaries", "b 1/2"]
        assert (bar.tasks[0].completed, bar.tasks[0].total) == (3, 4)
    assert known.left_s() == pytest.approx(10)

"""What a terminal shows while a run goes on."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from ci_perf.model.comparison import Verdict
from ci_perf.progress.bar import Meter, TerminalListener
from ci_perf.session import Forecast
from tests.clocks import Clock
from tests.comparisons import a_change
from tests.runs import a_failed

FORECAST = Forecast(pairs=4, answerable=1, suspects=1, enough_s=100.0, most_s=100.0)


class Screen:
    """A terminal that remembers, and a clock that a test moves."""

    def __init__(self):
        self.clock = Clock()
        self.meter = Meter(self.clock)
        self._printed = io.StringIO()
        self._bar = Progress(console=Console(file=self._printed, width=400))
        self.listener = TerminalListener(self._bar, self.meter)

    @property
    def description(self):
        return self._bar.tasks[0].description

    @property
    def shown(self):
        """What stands beside the bar: how much of what, and the time left."""
        return self.meter.counted(), self.meter.left()

    @property
    def printed(self):
        return self._printed.getvalue()

    def measured(self, workload, seconds):
        self.listener.started(workload, 1, 2)
        self.clock.now += seconds
        self.listener.finished(workload, seconds)


@pytest.fixture
def screen():
    return Screen()


def test_it_shows_what_runs_now(screen):
    screen.listener.planned({"a": 2, "b": 2})
    screen.listener.canary_started()
    descriptions = [screen.description]
    screen.measured("a", 10)
    screen.listener.started("b", 1, 2)
    descriptions.append(screen.description)
    screen.listener.failed(a_failed("b"), 1)

    assert descriptions == ["canaries", "b 1/2"]
    assert screen.shown == ("3/4 processes", "the rounds end in about 10 s")
    assert screen.meter.share() == 0.75


def test_before_anything_is_planned_nothing_is_counted(screen):
    assert screen.shown == ("", "")


def test_the_time_left_moves_while_nothing_ends(screen):
    screen.listener.planned({"a": 2})
    screen.measured("a", 10)
    screen.listener.started("a", 2, 2)
    screen.clock.now += 4

    assert screen.shown == ("1/2 processes", "the rounds end in about 6 s")


def test_pairs_are_counted_in_seconds_of_the_budget_also_within_one(screen):
    """Once it said "about 23 s left" for minutes: by the pace of rounds that were over."""
    screen.listener.planned({"a": 1})
    screen.measured("a", 10)
    screen.listener.interleaving(["a"], 360.0, FORECAST)
    screen.listener.pair_started("a", 1, 1)
    screen.clock.now += 90

    assert screen.description == "a pair 1, 1 workload undecided"
    assert screen.shown == ("1 min 30 s of the budget of 6 min", "at most 4 min 30 s left")
    assert screen.meter.share() == 0.25


def test_what_pairs_showed_stays_beside_the_next_and_shortens_the_time_left(screen):
    screen.listener.interleaving(["a"], 360.0, FORECAST)
    screen.listener.pair_started("a", 4, 1)
    screen.clock.now += 60
    change = a_change("a", Verdict.INCONCLUSIVE, ratio=1.14, limit=0.05)
    screen.listener.pair_finished("a", change, 30.0)
    screen.listener.pair_started("a", 5, 1)

    assert screen.description == (
        "a pair 5, 1 workload undecided; a pair 4, so far +14.0 % [+13.0, +15.0], decides at 5 %"
    )
    assert screen.shown == ("1 min of the budget of 6 min", "at most 30 s left")


def test_a_pair_that_outlasts_the_budget_is_said_to_be_the_last(screen):
    screen.listener.interleaving(["a"], 60.0, FORECAST)
    screen.clock.now += 75

    assert screen.shown == ("1 min of the budget of 1 min", "the last pair ends")
    assert screen.meter.share() == 1


def test_waiting_is_told_once_and_its_time_moves(screen):
    for waited_s in (0.0, 12.0):
        screen.listener.waiting("cpu", "run a of robin", waited_s, 1800.0)

    assert screen.description == "waiting for cpu"
    assert screen.shown == ("12 s of at most 30 min", "")
    assert screen.printed.count("which run a of robin holds") == 1

    screen.listener.machine_busy("tasks waited for a CPU 90%", 0.0, 60.0)
    screen.listener.machine_awaited("", 7.0)
    screen.listener.planned({"a": 1})

    assert "the machine is quiet after 7 s" in screen.printed
    assert screen.shown == ("0/1 processes", "")

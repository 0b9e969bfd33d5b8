import threading

import msgspec
import pytest

from ci_perf.cli import console
from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, Verdict
from ci_perf.model.process import Exhausted
from ci_perf.progress import PlainListener, sentences
from ci_perf.session import Forecast
from ci_perf.session.schedule import PAIRS_FOR_ALARM
from tests import headlines
from tests.clocks import Clock
from tests.comparisons import a_change, a_comparison
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
    listener = PlainListener(console.say, clock)
    listener.planned({"a": 2, "b": 2})
    for number in (1, 2):
        for name in ("a", "b"):
            measured(listener, clock, name, number, 2, 8)
        listener.round_finished(number, 2)

    assert said() == [
        "measuring 2 workloads in 4 processes",
        "round 1 of 2 done in 16 s; the rounds end in about 16 s",
        "[1/2] a: 2 processes in 16 s; the rounds end in about 8 s",
        "[2/2] b: 2 processes in 16 s",
    ]


def test_a_second_session_counts_no_process_of_the_first(clock, said):
    listener = PlainListener(console.say, clock)
    for _ in range(2):
        listener.planned({"a": 1})
        measured(listener, clock, "a", 1, 1, 8)

    assert said()[-2:] == ["measuring 1 workload in 1 process", "[1/1] a: 1 process in 8 s"]


@pytest.mark.parametrize(
    ("explaining_s", "follows"),
    [(300.0, ["explaining it for at most 5 min; Ctrl-C keeps the verdict"]), (0.0, [])],
)
def test_a_verdict_is_told_before_what_explains_it(said, explaining_s, follows):
    slower = a_change("mlp", Verdict.REGRESSED, ratio=1.1)

    PlainListener(console.say).decided(a_comparison(slower), explaining_s)

    verdict, *more = said()
    assert "mlp +10.0 %" in headlines.named_after(f"verdict: {headlines.FAIL}", verdict)
    assert more == follows


def test_a_log_is_not_silent_for_long_while_something_ends(clock, said):
    listener = PlainListener(console.say, clock)
    listener.planned({"a": 2, "b": 2})
    measured(listener, clock, "a", 1, 2, 14)
    measured(listener, clock, "b", 1, 2, 14)

    assert said()[1:] == ["[0/2] b: process 1 done; the rounds end in about 28 s"]


def test_a_failure_is_told_at_once_with_its_last_lines(clock, said):
    listener = PlainListener(console.say, clock)
    listener.planned({"bad": 3})
    listener.started("bad", 1, 3)
    listener.failed(a_failed("bad", "ValueError: boom", output="::error::x"), 2)

    assert said()[1:] == [
        "[1/1] bad: failed in phase timed",
        "  | ValueError: boom",
        "  | : :error::x",
    ]


def test_who_waits_for_a_lock_says_whose_it_is_how_long_and_how_not_to_wait(clock, said):
    listener = PlainListener(console.say, clock)
    for _ in range(250):
        listener.waiting("cpu", "run a of robin, process 7 in /p", clock.now, 1800.0)
        clock.now += 0.1

    text = (
        "waiting for cpu, which run a of robin, process 7 in /p holds. If the two runs cannot "
        "disturb each other, give one its own folder of locks by CI_PERF_LOCK_DIR. --wait sets the "
        "time"
    )
    assert said() == [
        f"{text} (at most 30 min)",
        f"{text} (20 s of at most 30 min)",
    ]


def test_the_time_that_pairs_may_take_is_told_before_anything_runs(said):
    PlainListener(console.say).planned({"a": 2}, 1200.0)

    assert said() == [
        "measuring 1 workload in 2 processes, then pairs with the base for at most 20 min"
    ]


@pytest.mark.parametrize(
    ("row", "most_s", "last"),
    [
        (
            {"ratio": 1.14, "interval": Interval(low=1.03, high=1.25), "limit": 0.05},
            179.2,
            "a: pair 4, so far +14.0 % [+3.0, +25.0], decides at 5 %, at most 3 min more",
        ),
        (
            {"verdict": Verdict.REGRESSED, "ratio": 1.14, "limit": 0.05},
            0.0,
            "a: pair 4 decides: +14.0 % [+13.0, +15.0], regressed",
        ),
        (
            {"metric": metrics.HOST_RSS_PEAK, "base": 2.0**30, "ratio": 1.14, "limit": 0.05},
            0.0,
            "a: pair 4, so far peak host memory +14.0 % [+13.0, +15.0], decides at 5 %",
        ),
        (None, 60.0, "a: pair 4, at most 1 min more"),
    ],
)
def test_a_pair_says_what_it_showed_what_decides_and_the_time_left(clock, said, row, most_s, last):
    listener = PlainListener(console.say, clock)
    listener.pair_started("a", 4, 1)
    clock.now += 25
    change = row and a_change("a", **{"verdict": Verdict.INCONCLUSIVE, **row})
    listener.pair_finished("a", change, most_s)
    listener.pair_finished("a", change, most_s)

    assert said() == [last]


def test_a_long_launch_is_said_to_run_each_half_minute(clock, said):
    listener = PlainListener(console.say, clock)
    listener.pair_started("a", 2, 1)
    for _ in range(65):
        clock.now += 1
        listener.break_silence()
    listener.pair_finished("a", None, 0.0)
    clock.now += 100
    listener.break_silence()

    assert said() == ["a: pair 2 runs, for 29 s so far", "a: pair 2 runs, for 58 s so far"]


def test_what_is_done_several_times_in_a_row_is_said_once(clock, said):
    listener = PlainListener(console.say, clock)
    for _ in range(3):
        listener.profiling("a")
    listener.profiling("b")

    assert said() == ["a: profiling a step", "b: profiling a step"]


def test_a_log_speaks_by_itself_while_a_session_lasts():
    real, spoken = Clock(), threading.Event()
    listener = PlainListener(lambda _text: spoken.set(), real)
    listener.began()
    listener.started("a", 1, 1)
    real.now += 60

    assert spoken.wait(60)
    listener.ended()


NEXT = "next: --budget {}m, which is enough for all"
PROVEN = f"proving a regression takes at least {PAIRS_FOR_ALARM} pairs, an obvious one 3"
OF_EACH = PROVEN.replace("pairs,", "pairs of each,")


@pytest.mark.parametrize(
    ("forecast", "said_last"),
    [
        (
            Forecast(pairs=9, answerable=3, suspects=3, enough_s=100.0, most_s=120.0),
            f"the budget allows about 9 pairs for 3 workloads; {OF_EACH}",
        ),
        (
            Forecast(pairs=36, answerable=2, suspects=2, enough_s=100.0, most_s=120.0),
            f"the budget allows as many pairs as there can be, 36 for 2 workloads; {OF_EACH}",
        ),
        (
            Forecast(pairs=1, answerable=0, suspects=2, enough_s=301.0, most_s=120.0),
            (
                f"the budget allows about 1 pair, too few to decide any of 2 workloads: {OF_EACH}; "
                f"{NEXT.format(6)}"
            ),
        ),
        (
            Forecast(pairs=0, answerable=0, suspects=1, enough_s=600.0, most_s=120.0),
            (
                f"the budget allows no pair, too few to decide 1 workload: {PROVEN}; "
                f"{NEXT.format(10)}"
            ),
        ),
        (
            Forecast(pairs=7, answerable=1, suspects=2, enough_s=121.0, most_s=120.0),
            (
                "the budget allows about 7 pairs, enough for 1 of 2 workloads, the worst "
                f"first: {OF_EACH}; {NEXT.format(3)}"
            ),
        ),
    ],
)
def test_before_pairs_are_launched_the_log_says_what_the_budget_allows(
    clock, said, forecast, said_last
):
    PlainListener(console.say, clock).interleaving(["b", "a"], 120.0, forecast)

    assert said() == [
        "launching base and head alternately, for at most 2 min: the baselines do not clear b, a",
        said_last,
    ]


def test_who_waits_for_a_quiet_machine_says_why_and_how_long(clock, said):
    listener = PlainListener(console.say, clock)
    for _ in range(12):
        listener.machine_busy("tasks waited for a CPU 90%", clock.now, 300.0)
        clock.now += 2
    listener.machine_awaited("", clock.now)

    why = "waiting for a quiet machine (--wait 0s does not wait): tasks waited for a CPU 90%"
    assert said() == [
        f"{why} (at most 5 min)",
        f"{why} (20 s of at most 5 min)",
        "the machine is quiet after 24 s",
    ]


def test_a_machine_that_stays_busy_is_measured_all_the_same_and_that_is_said(clock, said):
    PlainListener(console.say, clock).machine_awaited("busy", 60.0)

    assert said() == ["the machine is not quiet after 1 min, and is measured all the same: busy"]


@pytest.mark.parametrize(
    ("kind", "helps"),
    [("device", "next: the GPU ran"), ("host", "next: the host ran"), ("limit", "next: a process")],
)
def test_what_ran_out_of_memory_is_told_with_the_next_step(kind, helps):
    failed = msgspec.structs.replace(a_failed("vit"), exhausted=Exhausted(kind=kind))

    *_, last = sentences.describe(failed).splitlines()

    assert last.startswith(helps)
    assert "a smaller batch" in last

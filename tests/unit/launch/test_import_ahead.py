"""Processes that import at once, then run one after the other: threads with the real pipes."""

import threading
import time

import pytest

from ci_perf.launch import turn_scheduler
from ci_perf.launch.memory_check import processes_at_once, servers_at_once
from ci_perf.measuring.turn_client import Ahead
from ci_perf.model.task import TURN_REQUESTS, TurnRequest
from ci_perf.session import schedule
from tests.plans import a_planned


def never():
    return False


def player(name, log, importing=lambda: None, *, fails=False):
    """Import, then go through two phases and a block."""

    def play(slot, _must_stop):
        mine = Ahead(slot.folder)
        mine.take_for_import()
        importing()
        log.append(f"{name} imported")
        if fails:
            return f"{name} failed"
        for _ in range(2):
            mine.take()
            log.append(f"{name} phase")
        assert (mine.take_for_block(None), mine.take_for_block("enough")) == (True, False)
        return name

    return play


def in_a_row(*launches):
    with turn_scheduler.make_ready(launches, never) as ready:
        return [run() for run in ready]


def test_all_import_at_once_and_then_run_one_after_the_other():
    log, meeting = [], threading.Barrier(3, timeout=10)

    results = in_a_row(*(player(name, log, meeting.wait) for name in "abc"))

    assert sorted(log[:3]) == ["a imported", "b imported", "c imported"]
    assert log[3:] == [f"{name} phase" for name in "aabbcc"]
    assert results == ["a", "b", "c"]


def test_nobody_runs_on_before_the_slowest_has_imported():
    log, is_over = [], threading.Event()
    threading.Timer(0.2, is_over.set).start()

    in_a_row(player("quick", log), player("slow", log, is_over.wait))

    assert log[:2] == ["quick imported", "slow imported"]


def test_no_time_passes_for_who_has_imported_while_a_slower_one_imports():
    """Once the limit of a quick workload ran out where it stood behind a slow one."""
    slots = []

    def quick(slot, must_stop):
        slots.append(slot)
        return player("quick", [])(slot, must_stop)

    def until_it_stands_still():
        for _ in range(1000):
            (before,) = [slot.clock() for slot in slots]
            time.sleep(0.01)
            if slots[0].clock() == pytest.approx(before, abs=1e-9):
                return "stands still"
        return "goes on"

    seen = []
    in_a_row(player("slow", [], lambda: seen.append(until_it_stands_still())), quick)

    assert seen == ["stands still"]


def test_who_ends_while_importing_holds_nobody_up():
    log = []

    results = in_a_row(player("a", log, fails=True), player("b", log))

    assert results == ["a failed", "b"]
    assert log[2:] == ["b phase"] * 2


def test_what_was_not_called_is_stopped():
    def launch(slot, must_stop):
        Ahead(slot.folder).take_for_import()
        (slot.folder / TURN_REQUESTS).write_bytes(TurnRequest.PHASE)
        while not must_stop():
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), turn_scheduler.make_ready([launch], never):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1, 1, 1, 1, 1], [(0, 2), (2, 4), (4, 5)]),
        ([1, 2, 1], [(0, 1), (1, 2), (2, 3)]),
        ([8, 1, 1], [(0, 1), (1, 3)]),
        ([], []),
    ],
)
def test_two_processes_at_once_are_those_of_ranks_too(ranks, expected):
    workloads = [
        a_planned(f"w{i}", launch="torchrun", world_size=size) for i, size in enumerate(ranks)
    ]

    assert list(schedule.batches(workloads, 2)) == expected


@pytest.mark.parametrize(("free_gb", "expected"), [(1, 1), (2.5, 1), (5, 2)])
def test_processes_that_wait_take_at_most_half_of_the_free_memory(tmp_path, free_gb, expected):
    (tmp_path / "meminfo").write_text(f"MemAvailable: {round(free_gb * 2**20)} kB\n")

    found = processes_at_once(proc=tmp_path, cgroups=tmp_path, cores=64)

    assert found == expected


def test_a_machine_that_says_nothing_of_its_memory_imports_one_at_a_time(tmp_path):
    assert processes_at_once(proc=tmp_path, cgroups=tmp_path, cores=64) == 1


@pytest.mark.parametrize(("alive", "free_gb", "expected"), [(0, 0.4, 0), (0, 4, 4), (4, 2, 4)])
def test_servers_take_at_most_half_of_the_memory_that_is_free_without_them(
    tmp_path, alive, free_gb, expected
):
    (tmp_path / "meminfo").write_text(f"MemAvailable: {round(free_gb * 2**20)} kB\n")

    assert servers_at_once(alive, proc=tmp_path, cgroups=tmp_path) == expected

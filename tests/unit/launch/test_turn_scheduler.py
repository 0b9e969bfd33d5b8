"""Which process has its turn when. Here a thread stands for a process, with the real pipes."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ci_perf.launch import turn_scheduler
from ci_perf.measuring.turn_client import Shared, TurnTaker
from ci_perf.model.task import TurnAnswer, TurnRequest
from tests.clocks import Clock
from tests.processes import wait_until


def never():
    return False


def player(name, log, *, enough_after=0, capped_after=1000, blocks_at_most=1000):
    """Go through a phase, through blocks, and through one more phase."""

    def play(slot, _must_stop):
        mine = Shared(slot.folder)
        mine.take()
        log.append(f"{name} phase")
        blocks = 0
        while mine.take_for_block(why(blocks, enough_after, capped_after)):
            log.append(f"{name} block")
            blocks += 1
            if blocks == blocks_at_most:
                raise ValueError(name)
        mine.take()
        log.append(f"{name} phase")
        return blocks

    return play


class Sleeper:
    """A process that sleeps, after it has run on one CPU; it notes on which it may wake up."""

    def __init__(self, name, log, cpu):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})
        self.child = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        os.sched_setaffinity(0, allowed)
        # A process that starts may sleep for a moment, too: this one has begun to read.
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        os.write(self.child.stdin.fileno(), b"\n")
        os.read(self.child.stdout.fileno(), 1)
        wait_until(lambda: b"S (sleeping)" in Path(f"/proc/{self.child.pid}/status").read_bytes())
        os.sched_setaffinity(self.child.pid, allowed)
        self._name = name
        self._log = log

    def signal(self, what):
        if what is signal.SIGCONT:
            self._log.append((self._name, os.sched_getaffinity(self.child.pid)))

    def pid(self):
        return self.child.pid


def why(blocks, enough_after, capped_after):
    """Return why a player times no more blocks, `None` while it does."""
    if blocks >= capped_after:
        return "cap"
    return "enough" if blocks >= enough_after else None


def schedule(*launches, shuffle=list.reverse):
    return turn_scheduler.schedule(launches, never, shuffle=shuffle)


def test_phases_come_in_order_and_blocks_as_they_are_shuffled():
    log = []

    schedule(player("a", log, enough_after=2), player("b", log, enough_after=2))

    assert log == [
        *("a phase", "b phase"),
        *("b block", "a block") * 2,
        *("a phase", "b phase"),
    ]


def test_the_order_within_a_pair_of_blocks_is_drawn_each_time():
    log = []

    turn_scheduler.schedule(
        [player("a", log, enough_after=100), player("b", log, enough_after=100)], never
    )

    blocks = [entry for entry in log if entry.endswith("block")]
    assert len(blocks) == 200
    assert {one for one, other in zip(blocks[::2], blocks[1::2], strict=True)} == {
        "a block",
        "b block",
    }
    assert all(one != other for one, other in zip(blocks[::2], blocks[1::2], strict=True))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_each_process_wakes_up_on_the_cpu_on_which_the_other_one_has_run():
    every = os.sched_getaffinity(0)
    cpus = {"a": min(every), "b": max(every)}
    log = []
    sleepers = {name: Sleeper(name, log, cpu) for name, cpu in cpus.items()}

    def play(name):
        def take_turns(slot, must_stop):
            slot.assign(sleepers[name])
            return player(name, [], enough_after=2)(slot, must_stop)

        return take_turns

    try:
        schedule(play("a"), play("b"))
        after = [os.sched_getaffinity(sleeper.pid()) for sleeper in sleepers.values()]
    finally:
        for sleeper in sleepers.values():
            sleeper.child.communicate()  # it ends with its input

    assert log[:2] == [("a", every), ("b", {cpus["a"]})]
    # Two rounds of blocks, in the order in which they are shuffled.
    assert log[2:6] == [
        ("b", {cpus["b"]}),
        ("a", {cpus["b"]}),
        ("b", {cpus["a"]}),
        ("a", {cpus["b"]}),
    ]
    assert after == [every, every]


@pytest.mark.parametrize("more", [(3, 8), (8, 3)])
def test_both_time_equally_many_blocks_until_both_have_enough(more):
    assert schedule(*(player("x", [], enough_after=count) for count in more)) == [8, 8]


def test_who_is_left_alone_stops_when_he_has_enough():
    log = []
    alone = player("b", log, enough_after=10)

    with pytest.raises(ValueError, match="a"):
        schedule(player("a", log, enough_after=10, blocks_at_most=4), alone)

    assert (log.count("a block"), log.count("b block")) == (4, 10)
    assert log[-1] == "b phase"


def test_who_never_asks_holds_nobody_up():
    log = []

    schedule(lambda *_: 0, player("b", log, enough_after=1))

    assert log == ["b phase", "b block", "b phase"]


def test_a_slot_that_cannot_be_told_its_turn_does_not_stop_the_others(tmp_path):
    """Its process has asked as often as the pipe can hold, and reads no answer."""
    slot = turn_scheduler.Slot(tmp_path / "slot")

    for _ in range(100_000):
        slot.answer(TurnAnswer.TAKE)
    slot.close()

    assert not slot.request


def test_the_clock_of_a_slot_stands_still_while_its_process_waits(tmp_path):
    slot = turn_scheduler.Slot(tmp_path / "slot")
    mine = os.open(slot.folder / "asked", os.O_WRONLY)
    os.write(mine, TurnRequest.PHASE)
    slot.wait_for_request()

    waiting = [slot.clock() for _ in range(2)]
    slot.answer(TurnAnswer.TAKE)
    running = [slot.clock() for _ in range(2)]
    slot.close()
    os.close(mine)

    assert waiting[0] == pytest.approx(waiting[1], abs=1e-9)
    assert waiting[1] <= running[0] < running[1]


def test_who_has_no_time_left_waits_for_nobody_to_have_enough():
    log = []

    blocks = schedule(
        player("slow", log, enough_after=1000, capped_after=3), player("quick", log, enough_after=9)
    )

    assert blocks == [3, 3]


def test_a_process_without_a_partner_need_not_wait_and_stops_when_it_has_enough():
    alone = TurnTaker(Clock(5.0))

    alone.take()

    assert alone.clock() == 5.0
    assert (alone.take_for_block(None), alone.take_for_block("enough")) == (True, False)


def test_a_process_that_nobody_grants_turns_any_more_goes_on_alone(tmp_path):
    slot = turn_scheduler.Slot(tmp_path / "slot")
    mine = Shared(slot.folder)
    slot.close()

    mine.take()

    assert (mine.take_for_block(None), mine.take_for_block("enough")) == (True, False)


def test_what_a_process_waits_is_not_on_its_clock(tmp_path):
    asked, answered = 100.0, 150.0
    slot = turn_scheduler.Slot(tmp_path / "slot")
    mine = Shared(slot.folder, iter([10.0, asked, answered, 160.0]).__next__)
    slot.answer(TurnAnswer.TAKE)

    before = mine.clock()
    mine.take()
    after = mine.clock()

    slot.close()
    assert (before, after) == (10.0, 110.0)

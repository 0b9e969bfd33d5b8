"""What functions work and wait by a launch that profiles, and whom it must not watch."""

import time

import pytest

from ci_perf.measuring.profiling import functions
from ci_perf.measuring.profiling.functions import Stack, Times
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.thread_clock import Lap
from ci_perf.model.step_profile import AuthorFunction
from tests import profiled
from tests.launches import HEAD, result_of

PAUSE_S = 0.004
WAITING = f"""{HEAD}
import threading
import time
def sleeps():
    time.sleep({PAUSE_S})
def goes_on():
    for _ in range(3):
        time.sleep({PAUSE_S})
        yield
def hears():
    ears = threading.Lock()
    ears.acquire()
    ears.acquire(timeout={PAUSE_S})
def works():
    return sum(number * number for number in range(50_000))
def calls():
    return sorted([works(), 1])
def build(context):
    def step():
        with context.phase("data"):
            sleeps()
            list(goes_on())
            time.sleep({PAUSE_S})
        with context.phase("forward"):
            calls()
        hears()
    return Workload(step=step)
"""


def test_waiting_is_told_from_working_and_belongs_to_the_innermost_function(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(WAITING))
    by_name = {use.function.function: use for use in profile.functions}

    assert {name: (use.phase, use.waits_in) for name, use in by_name.items()} == {
        "sleeps": ("data", "time.sleep"),
        "goes_on": ("data", "time.sleep"),
        "hears": ("", "lock.acquire"),
        "works": ("forward", ""),
        "calls": ("forward", ""),
        "build.<locals>.step": ("data", "time.sleep"),
    }
    pauses = {"sleeps": 1, "goes_on": 3, "hears": 1, "build.<locals>.step": 1}
    for name, count in pauses.items():
        assert by_name[name].waiting_s > 0.9 * count * PAUSE_S
        assert by_name[name].working_s < by_name[name].waiting_s
    works = by_name["works"]
    # The generator resumes 50 000 times: what watching that takes is not in there.
    assert works.waiting_s < works.working_s < profile.step_s
    assert by_name["calls"].working_s < works.working_s
    assert profile.missing.keys() == {"memory", "trace"}


LIBRARIES = f"""{HEAD}
import copy
import json
import random
import zlib
import torch
RECORDS = [[number] * 50 for number in range(50)]
def log(records):
    return json.dumps(records)
def decode():
    for record in RECORDS:
        zlib.crc32(bytes(1_000_000))
    return torch.tensor(RECORDS).float().mean().item()
def build(context):
    def step():
        decode()
        log(copy.deepcopy(RECORDS))
        [abs(-1) for _ in range(random.randrange(1_000))]
    return Workload(step=step)
"""


def test_calls_of_libraries_are_counted_and_timed_by_function(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(LIBRARIES))
    calls = {(use.caller.function, use.callee): use for use in profile.library_calls}

    assert {name: use.calls for name, use in calls.items()} == {
        ("decode", "zlib.crc32"): 50,
        ("log", "json.dumps"): 1,
        ("build.<locals>.step", "copy.deepcopy"): 1,
        ("build.<locals>.step", "random.Random.randrange"): 1,
    }
    assert "abs in build.<locals>.step (it.py)" in profile.varies
    line = LIBRARIES.splitlines().index("        zlib.crc32(bytes(1_000_000))") + 1
    assert calls["decode", "zlib.crc32"].line == line
    # It is a hundred times as much; what watching takes is not in there.
    slow, fast = calls["decode", "zlib.crc32"], calls["log", "json.dumps"]
    assert slow.working_s > fast.working_s > 0
    assert slow.working_s < profile.step_s


# Items say whether a worker is watched: by the hook, or by the mode under which it was forked.
LOADING = f"""{HEAD}
import sys
import torch
from torch.utils import _python_dispatch, data
class Watched(data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        mode = _python_dispatch._get_current_dispatch_mode()
        return torch.tensor([mode is not None, sys.getprofile() is not None])
def load(loader, watched):
    for batch in loader:
        watched.append(batch.any().item())
def begun():
    while True:
        yield sum(range(100_000))
def build(context):
    numbers = begun()
    next(numbers)  # its code is running: it cannot be replaced
    kept = data.DataLoader(Watched(), num_workers=1, persistent_workers=True)
    list(kept)  # its worker is forked while `build` is followed
    new = data.DataLoader(Watched(), num_workers=1)
    def step():
        watched = []
        load(kept, watched)
        load(new, watched)
        next(numbers)
        if any(watched):
            raise AssertionError("a worker is watched")
    return Workload(step=step)
"""


def test_workers_of_a_loader_are_not_watched_and_what_cannot_be_wrapped_is(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(LOADING))

    assert (profile.absent, profile.missing) == ("", {})
    by_name = {use.function.function: use for use in profile.functions}
    assert by_name["load"].calls == 2
    assert by_name["load"].waiting_s > 0
    assert "Watched.__getitem__" not in by_name
    assert by_name["begun"].working_s > 0


def a_step(*laps):
    """One function's step of laps: CPU time, waiting and events that were watched in it."""
    function = AuthorFunction(file="it.py", function="f", line=1)
    times = Times([function])
    for working, waiting, events in laps:
        times.add(function, "", Lap(working, waiting), events=events)
    return function, times


class Ticks:
    """A clock that moves by one with each lap."""

    def lap(self):
        return Lap(1, 0)

    def restart(self):
        pass


def test_what_watching_takes_is_taken_from_functions_by_what_was_watched():
    function, times = a_step((1000, 5, 90.0))
    times.add(None, "", Lap(100, 0), events=10.0)

    assert times.own(function) == Lap(1000, 5)
    # 1100 instead of 600: of 500, nine tenths fell on the function.
    assert times.own(function, 600.0) == Lap(550, 5)
    assert times.own(function, 2000.0) == Lap(1000, 5)
    assert times.own(function, 0.0).working == 10
    # An event takes 1 by itself; the rest of 500 is how far two steps differ.
    assert times.own(function, 600.0, 1.0).working == 1000 - 90


def test_what_an_event_takes_is_a_part_of_a_call(tmp_path):
    code = AuthorCode(str(tmp_path))
    with functions.time_own(code, Stack(Times(()), Ticks(), str)):
        start = time.thread_time_ns()
        for _ in range(1000):
            a_step()
        watched_ns = time.thread_time_ns() - start

    assert 0 < 2 * functions.event_ns(code) < watched_ns / 1000


def test_a_hook_that_begins_or_ends_within_a_call_loses_nothing_else():
    function, times = a_step()
    stack = Stack(times, Ticks(), str)
    stack.leave_builtin()
    stack.leave()
    stack.enter(function)
    stack.enter_builtin(len)  # never tells of its end
    stack.leave()
    stack.turn()

    assert times.own(function).working == 2
    assert stack._calls == []


@pytest.mark.parametrize(
    ("waits", "name"),
    [
        ([1000_000, 900_000], "time.sleep"),
        ([1000_000, 10_000], ""),  # in one step alone
        ([20_000, 20_000], ""),  # next to nothing of what the function takes
    ],
)
def test_a_built_in_is_named_where_most_of_the_waiting_passes_in_every_step(waits, name):
    function, _ = a_step()
    steps = []
    for waiting in waits:
        _, times = a_step((500_000, 1_000, 0.0))
        times.add(function, "", Lap(0, waiting), builtin=time.sleep)
        steps.append(times)

    assert functions._waits_in(function, steps) == name

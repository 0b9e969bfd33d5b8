"""What functions work and wait by a launch that profiles, and whom it must not watch."""

from ci_perf.features.explain.worker import functions
from ci_perf.features.explain.worker.origins import AuthorCode
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


def test_own_times_hold_waiting_and_belong_to_the_innermost_function(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(WAITING))
    by_name = {use.function.function: use for use in profile.functions}

    assert {name: use.phase for name, use in by_name.items()} == {
        "sleeps": "data",
        "goes_on": "data",
        "hears": "",
        "works": "",
        "calls": "",
        "build.<locals>.step": "",
    }
    pauses = {"sleeps": 1, "goes_on": 3, "hears": 1, "build.<locals>.step": 1}
    for name, count in pauses.items():
        assert by_name[name].own_s > 0.9 * count * PAUSE_S
    # The generator resumes 50 000 times: what watching that takes is not in there.
    assert by_name["calls"].own_s < by_name["works"].own_s < profile.step_s
    assert profile.missing.keys() == {"trace"}


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
    calls = {
        (use.function.function, callee.name): callee
        for use in profile.functions
        for callee in use.callees
    }

    assert {name: each.calls for name, each in calls.items()} == {
        ("decode", "zlib.crc32"): 50,
        ("log", "json.dumps"): 1,
        ("build.<locals>.step", "copy.deepcopy"): 1,
        ("build.<locals>.step", "random.Random.randrange"): 1,
    }
    assert ("abs", "build.<locals>.step") in {
        (each.operator, each.caller.function) for each in profile.varies
    }
    # It is a hundred times as much.
    slow, fast = calls["decode", "zlib.crc32"], calls["log", "json.dumps"]
    assert 2 * profile.step_s > slow.seconds > fast.seconds > 0


def test_a_library_with_several_callers_shares_out_its_time_and_not_the_repositorys(tmp_path):
    source = tmp_path / "it.py"
    source.write_text(
        "import json\n"
        "def few(): json.dumps(list(range(1_000)))\n"
        "def many(): json.dumps(list(range(100_000)))\n"
        "def key(number): return sum(range(1_000 + number))\n"
        "def orders(): sorted(range(100), key=key)\n"
    )
    names = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    code = AuthorCode(str(tmp_path))

    def profile():
        graph = functions.profile_step(
            lambda: [names[name]() for name in ("few", "many", "orders")], code
        )
        return {getattr(name, "function", ""): graph.function_s(name) for name in [*graph.nodes]}

    # The least of several: on a busy machine one of them may have been interrupted.
    every = [profile() for _ in range(10)]
    own_s = {name: min(each[name] for each in every) for name in ("few", "many", "orders", "key")}

    assert 20 * own_s["few"] < own_s["many"]
    # What the key takes is its own, also where `sorted` calls it.
    assert 5 * own_s["orders"] < own_s["key"]


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
    next(numbers)
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


def test_workers_of_a_loader_are_not_watched_and_the_step_waits_for_them(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(LOADING))

    assert (profile.absent, profile.missing) == ("", {})
    by_name = {use.function.function: use for use in profile.functions}
    assert by_name["load"].calls == 2
    assert by_name["load"].own_s > 0
    assert "Watched.__getitem__" not in by_name
    assert by_name["begun"].own_s > 0

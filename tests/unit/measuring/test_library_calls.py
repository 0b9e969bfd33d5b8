"""What functions of the repository call of libraries, and how long that takes."""

import gc

import pytest

from ci_perf.measuring.profiling import functions, library_calls
from ci_perf.measuring.profiling.library_calls import Watching
from ci_perf.measuring.profiling.origins import NAME_CHARS, AuthorCode
from ci_perf.measuring.profiling.tables import MOST_KEPT, Counted, joined
from ci_perf.model.step_profile import MOST_LIBRARY_CALLS


@pytest.fixture
def counted(tmp_path):
    """Count the calls of `step` in a file of a repository: by function, callee and how many."""

    def count(source):
        step = _defined(tmp_path, source)["step"]
        with functions.watch(AuthorCode(str(tmp_path))) as watched:
            step()
        assert watched.library.cut == 0
        return sorted(
            (call.caller.function, call.callee, times)
            for call, times in watched.library.calls.items()
        )

    return count


def _defined(folder, source):
    names = {"__name__": "it"}
    exec(compile(source, str(folder / "it.py"), "exec"), names)
    return names


def test_callees_are_named_as_people_do(counted):
    source = """
import decimal, io, json, os.path, zlib
class Record(dict):
    pass
def own(number):
    return number
def step():
    json.dumps([own(1)])
    zlib.crc32(b"")
    ",".join(str(own(number)) for number in range(3))
    [json.loads("1") for _ in range(2)]
    io.BytesIO().read()
    os.path.join("a", "b")
    Record().get(1)
    json.JSONEncoder()
"""
    assert {callee: times for _, callee, times in counted(source)} == {
        "json.dumps": 1,
        "zlib.crc32": 1,
        "str.join": 1,
        "json.loads": 2,
        "_io.BytesIO.read": 1,
        "posixpath.join": 1,
        "it.Record.get": 1,
        "json.encoder.JSONEncoder": 1,
    }


def test_a_call_belongs_to_the_function_around_it_and_not_to_a_library(counted):
    """What a library calls back counts; what it calls itself, or no line calls, does not."""
    source = """
import functools, gc
from collections import namedtuple
Point = namedtuple("Point", "x y")
def each(a, b):
    return max(a, b)
def step():
    functools.reduce(each, [1, 2, 3])
    sorted([2, 1], key=lambda number: abs(number))
    sum(len(str(number)) for number in range(3))
    import json
    from json import decoder
    exec("repr('')")
    Point(1, 2)
    gc.callbacks.clear()
    max(1, 2)
"""
    assert counted(source) == [
        ("each", "max", 2),
        ("step", "_functools.reduce", 1),
        ("step", "exec", 1),
        ("step", "len", 3),
        ("step", "list.clear", 1),
        ("step", "max", 1),
        ("step", "sorted", 1),
        ("step", "sum", 1),
        ("step.<locals>.<lambda>", "abs", 2),
    ]


def test_what_the_garbage_collector_calls_is_left_out(counted):
    source = """
import gc, json
class Ring:
    def __init__(self):
        self.ring = self
    def __del__(self):
        json.dumps(1)
def step():
    Ring()
    gc.collect()
"""
    gc.collect()
    assert counted(source) == [("step", "gc.collect", 1)]


def test_calls_count_while_another_thread_collects_garbage(counted):
    source = """
import gc, threading, zlib
begun, done = threading.Event(), threading.Event()
class Ring:
    def __init__(self):
        self.ring = self
    def __del__(self):
        begun.set()
        done.wait()
def collect():
    Ring()
    gc.collect()
def step():
    thread = threading.Thread(target=collect)
    thread.start()
    begun.wait()
    zlib.crc32(b"")
    done.set()
    thread.join()
"""
    gc.collect()
    assert ("step", "zlib.crc32", 1) in counted(source)


HOSTILE = """
class Raising(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)
    def __hash__(cls):
        raise RuntimeError
class Silent(dict, metaclass=Raising):
    pass
class Unnamed(dict):
    __module__ = 3
    def __getattr__(self, name):
        raise RuntimeError(name)
Long = type("x" * 100_000, (dict,), {"__module__": "of blanks\\n" * 9})
silent, unnamed, long = dict.__new__(Silent), Unnamed(), Long()
def numbers():
    yield from [1, 2]
def step():
    silent.get(1)
    unnamed.get(1)
    long.get(1)
    sum(numbers())
"""


def test_hostile_names_are_cut_or_left_out(counted):
    calls = counted(HOSTILE)

    assert [callee for _, callee, _ in calls if len(callee) < NAME_CHARS] == ["Unnamed.get", "sum"]
    (long,) = (callee for _, callee, _ in calls if len(callee) == NAME_CHARS)
    assert long.startswith("ofblanksofblanks")


def test_too_many_callees_lose_only_themselves(tmp_path):
    source = f"""
types = [type(f"t{{number}}", (dict,), {{}})() for number in range({MOST_KEPT + 1})]
def step():
    for each in types:
        each.get(1)
"""
    step = _defined(tmp_path, source)["step"]
    with functions.watch(AuthorCode(str(tmp_path))) as watched:
        step()
    assert (len(watched.library.calls), watched.library.cut) == (MOST_KEPT, 1)

    profile = joined([Counted()], [watched.functions], [watched.library])
    assert (profile.library_calls, profile.varies, profile.cut) == ((), (), 0)
    assert profile.missing.keys() == {"library_calls"}
    assert [use.function.function for use in profile.functions] == ["step"]


def test_calls_that_differ_between_steps_are_named_and_not_counted(tmp_path):
    source = (
        "def step(count):\n    for number in range(count):\n        abs(number)\n    max(1, 2)\n"
    )
    step, steps = _defined(tmp_path, source)["step"], []
    for count in (2, 3):
        with functions.watch(AuthorCode(str(tmp_path))) as watched:
            step(count)
        steps.append(watched)
    profile = joined(
        [Counted()], [each.functions for each in steps], [each.library for each in steps]
    )

    assert [(use.callee, use.line, use.calls) for use in profile.library_calls] == [("max", 4, 1.0)]
    assert profile.varies == ("abs in step (it.py)",)


def test_many_calls_that_differ_lose_only_themselves(tmp_path):
    names = ", ".join(f"t{number}=1" for number in range(MOST_LIBRARY_CALLS))
    source = f"""
types = [type(name, (dict,), {{}})() for name in dict({names})]
def step(count):
    for each in types[:count]:
        each.get(1)
"""
    step, steps = _defined(tmp_path, source)["step"], []
    for count in (0, 101):
        with functions.watch(AuthorCode(str(tmp_path))) as watched:
            step(count)
        steps.append(watched.library)

    assert joined([Counted()], [Counted()], steps).varies == ()


TIMED = """
import json, time
def waits():
    time.sleep(0.004)
def each(number):
    waits()
    return number
def step():
    time.sleep(0.002)
    sum(each(number) for number in range(2))
    json.dumps([0] * 100_000)
"""


def test_calls_take_what_passes_in_them_without_what_the_repository_does(tmp_path):
    step, code = _defined(tmp_path, TIMED)["step"], AuthorCode(str(tmp_path))
    with functions.watch(code) as watched:
        step()
    calls = joined([Counted()], [watched.functions], [watched.library]).library_calls
    with library_calls.timing(code, watched.library.calls) as times:
        step()
    took = {
        (use.caller.function, use.callee): (use.working_s or 0.0, use.waiting_s or 0.0)
        for use in library_calls.timed(calls, [(times, Watching())])
    }

    assert took["step", "time.sleep"][1] > 0.001
    assert took["waits", "time.sleep"][1] > 0.006
    # The generator that it sums waits in functions of its own.
    assert took["step", "sum"][1] < 0.006
    assert took["step", "json.dumps"][0] > took["step", "sum"][0]


def test_what_watching_takes_is_taken_off():
    watching = library_calls.watching_of()

    assert watching.call_ns > 0
    assert watching.event_ns > 0
    spent = library_calls.Spent()
    spent.working, spent.waiting, spent.calls, spent.events = 1_000, 7, 2, 10
    assert Watching(call_ns=100, event_ns=10).less(spent) == (700, 7)
    assert Watching(call_ns=100, event_ns=1_000).less(spent) == (250, 7)

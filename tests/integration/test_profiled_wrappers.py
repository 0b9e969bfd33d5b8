"""Functions whose code is replaced by one that tells of begin and end: they must not notice."""

import asyncio
import gc
import os
import runpy
import threading
from types import FunctionType

import pytest

from ci_perf.measuring.profiling import functions
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.wrappers import Boundaries

PROGRAM = """
import contextlib, inspect
class Base:
    def __init__(self, size):
        self.size = size
    def given(self, __first=1, /, second=2, *rest, named=5, **more):
        return self.size, __first, second, rest, named, more
class Derived(Base):
    def __init__(self, size):
        super().__init__(size)
    def counted(self):
        count = [0]
        def add(by=1):
            count[0] += by
            return count[0]
        return add(), [add(2) for _ in range(2)], list(map(lambda each: each + self.size, [1]))
    @property
    def own(self):
        return __class__.__name__
def generated(most):
    got = []
    for number in range(most):
        try:
            got.append((yield number))
        except KeyError as error:
            got.append(error.args)
    return got
def delegated():
    return (yield from generated(3))
@contextlib.contextmanager
def suppressed():
    try:
        yield 5
    except ValueError:
        pass
def deep(left):
    return 0 if left == 0 else 1 + deep(left - 1)
def fails():
    raise ValueError("expected")
def everything():
    it = Derived(7)
    found = [it.given(), it.given(4, 5, 6, named=1, more=2), it.counted(), it.own, deep(20)]
    generator = delegated()
    found += [next(generator), generator.send("sent"), generator.throw(KeyError("thrown"))]
    try:
        generator.send(None)
    except StopIteration as end:
        found.append(end.value)
    closed = generated(2)
    found.append(next(closed))
    closed.close()
    with suppressed() as value:
        found.append(value)
        fails()
    try:
        fails()
    except ValueError as error:
        found.append(str(error))
    late = lambda *, value=4: value
    found += [late(), late.__name__, late.__qualname__, str(inspect.signature(Base.given))]
    found += [inspect.isgeneratorfunction(generated), inspect.getsource(late).strip()]
    return found, late
async def awaited():
    return 1
"""
EVERY = {
    *("Base.__init__", "Base.given", "Derived.__init__", "Derived.counted", "Derived.own"),
    *("Derived.counted.<locals>.add", "Derived.counted.<locals>.<lambda>", "everything"),
    *("everything.<locals>.<lambda>", "generated", "delegated", "suppressed", "deep", "fails"),
}


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return runpy.run_path(str(path))


def codes():
    return {each.__code__ for each in gc.get_objects() if type(each) is FunctionType}


def test_wrapped_functions_do_what_they_did_and_are_restored(program, tmp_path):
    boundaries = Boundaries(AuthorCode(str(tmp_path)))
    open_functions, most = [], []

    def enter(function):
        open_functions.append(function.function)
        most.append(len(open_functions))

    expected, _ = program["everything"]()
    with boundaries.wrapped():
        with boundaries.told(enter, open_functions.pop):
            found, late = program["everything"]()
            assert asyncio.run(program["awaited"]()) == 1
        silent, _ = program["everything"]()

    assert expected == found == silent
    assert {function.function for function in boundaries.entered} == EVERY
    assert open_functions == []
    assert max(most) == 22  # everything, and 21 calls of one function in another
    # Also what was made while all was wrapped.
    assert late() == 4
    assert late.__code__ in program["everything"].__code__.co_consts
    assert not boundaries._before.keys() & set(map(id, codes()))


def test_other_threads_and_processes_are_not_told_of(program, tmp_path):
    boundaries = Boundaries(AuthorCode(str(tmp_path)))

    def fail(*_):
        pytest.fail("told of another thread or process")

    with boundaries.wrapped(), boundaries.told(fail, fail):
        thread = threading.Thread(target=program["deep"], args=(3,))
        thread.start()
        thread.join()
        forked = os.fork()
        if forked == 0:
            try:
                program["deep"](3)
            finally:
                os._exit(len(boundaries.entered))
        _, status = os.waitpid(forked, 0)

    assert boundaries.entered == set()
    assert status == 0


def test_what_begin_and_end_take_is_little(tmp_path):
    code = AuthorCode(str(tmp_path))
    taken_ns = functions.event_ns_wrapped(Boundaries(code))

    def works():
        sum(range(1000))

    assert 0 < taken_ns < functions._calls_ns(works) / functions._CALLS

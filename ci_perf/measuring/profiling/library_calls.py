"""Which functions of libraries, and built-in ones, the repository's functions call themselves.

Torch is left out: its operators are counted by themselves. So is what no line of the repository
calls by name: imports, code that was made by `exec`, and what the garbage collector runs.
"""

import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple

from ci_perf.measuring.profiling import thread_clock
from ci_perf.measuring.profiling.origins import AuthorCode, shown
from ci_perf.measuring.profiling.thread_clock import Lap, ThreadClock, quartile
from ci_perf.model.step_profile import AuthorFunction, LibraryCall

_NS_PER_S: Final = 1e9
_MOST_NAMES: Final = 20_000
_LEFT_OUT: Final = frozenset({"torch", "ci_perf"})
_IMPORTS: Final = "importlib._bootstrap"
# A frozen module of the standard library has a name such as "<frozen posixpath>".
_FILES: Final = ("/", "<frozen ")
_CLASS: Final = ".__init__"
# Of what was watched: what watching takes of it is not known better.
_LEAST_LEFT: Final = 0.25
_TRIALS: Final = 3
_CALLS: Final = 1_000
# What stands in the place of a library and of its caller, to learn what watching them takes.
_TRIAL: Final = compile(
    "def inner(): pass\ndef outer():\n for _ in range(1000): inner()\n", "/trial.py", "exec"
)


class Call(NamedTuple):
    """What is told apart of the calls: see `model.step_profile.LibraryCall`."""

    caller: AuthorFunction
    callee: str
    line: int


class Names:
    """Names what the repository's functions call."""

    def __init__(self, code: AuthorCode) -> None:
        self._code = code
        # With the code, the type or the module itself, whose place in memory another could take.
        self._of_code: dict[int, tuple[CodeType, str]] = {}
        self._of_builtin: dict[tuple[int, str], tuple[object, str]] = {}

    def python(self, frame: FrameType) -> Call | None:
        """Return the call that began this frame; `None` of what is the repository's."""
        caller = frame.f_back
        if caller is None or (function := self._code.calling(caller)) is None:
            return None
        if self._code.calling(frame) is not None:
            return None
        code = frame.f_code
        known = self._of_code.get(id(code))
        if known is None:
            known = code, _python_name(code, dict.get(frame.f_globals, "__name__"))
            if len(self._of_code) < _MOST_NAMES:
                self._of_code[id(code)] = known
        return Call(function, known[1], _line(caller)) if known[1] else None

    def builtin(self, frame: FrameType, builtin: Any) -> Call | None:  # noqa: ANN401
        """Return a frame's call of a built-in function."""
        if (function := self._code.calling(frame)) is None:
            return None
        try:
            owner = builtin.__self__
            kind = owner if issubclass(type(owner), (type, ModuleType)) else type(owner)
            key = id(kind), builtin.__name__
            known = self._of_builtin.get(key)
            if known is None:
                known = kind, _builtin_name(builtin, kind)
                if len(self._of_builtin) < _MOST_NAMES:
                    self._of_builtin[key] = known
        except Exception:  # noqa: BLE001  a metaclass of the program may answer anything
            return None
        return Call(function, known[1], _line(frame)) if known[1] else None


def _python_name(code: CodeType, module: object) -> str:
    """Name a function of Python as people do; empty where it is left out."""
    if type(module) is not str or not code.co_filename.startswith(_FILES):
        return ""
    if _is_left_out(module) or module.startswith(_IMPORTS):
        return ""
    return _spelled(f"{module}.{code.co_qualname.removesuffix(_CLASS)}")


def _builtin_name(builtin: Any, kind: Any) -> str:  # noqa: ANN401
    """Name a built-in function: "str.join", "zlib.crc32"; empty where it is left out."""
    if issubclass(type(kind), ModuleType):
        owners = [kind.__name__]
    else:
        owners = [each.__module__ for each in kind.__mro__]
    module, name = builtin.__module__, builtin.__qualname__
    if any(type(each) is str and _is_left_out(each) for each in (*owners, module)):
        return ""
    if module is None and not issubclass(type(kind), ModuleType):
        module = kind.__module__
    is_alone = type(module) is not str or module == "builtins"
    return _spelled(name if is_alone else f"{module}.{name}")


def _is_left_out(module: str) -> bool:
    return module.partition(".")[0] in _LEFT_OUT


def _spelled(name: str) -> str:
    """Return a name without blanks, which separate names in a profile."""
    return shown("".join(name[:10_000].split()))


def _line(frame: FrameType) -> int:
    return max(frame.f_lineno or frame.f_code.co_firstlineno, 0)


class Collecting:
    """Knows whether the garbage collector runs: what it calls, no line of the program does."""

    def __init__(self) -> None:
        self.is_on = False
        # Another thread may collect while this one goes on.
        self._thread = threading.get_ident()

    def _begin_or_not(self, phase: str, info: object) -> None:
        del info
        if threading.get_ident() == self._thread:
            self.is_on |= phase == "start"

    def _end_or_not(self, phase: str, info: object) -> None:
        del info
        if threading.get_ident() == self._thread:
            self.is_on &= phase != "stop"

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Within, know it: before the first and after the last of those whom it tells."""
        begin, end = self._begin_or_not, self._end_or_not
        gc.callbacks.insert(0, begin)
        gc.callbacks.append(end)
        try:
            yield
        finally:
            for callback in (begin, end):
                with contextlib.suppress(ValueError):  # the step has taken it out
                    gc.callbacks.remove(callback)


# --- times


class Spent:
    """Nanoseconds, and what was watched in them: calls, and events of what these call."""

    __slots__ = ("calls", "events", "waiting", "working")

    def __init__(self) -> None:
        self.working = self.waiting = self.calls = self.events = 0


class Watching(NamedTuple):
    """What watching takes of the CPU time: of a call, and of an event within one."""

    call_ns: float = 0.0
    event_ns: float = 0.0

    def less(self, spent: Spent) -> Lap:
        """Return what was spent, without that; some is left, for that is known only roughly."""
        watching = spent.calls * self.call_ns + spent.events * self.event_ns
        return Lap(round(max(spent.working - watching, _LEAST_LEFT * spent.working)), spent.waiting)


class LibraryTimes:
    """How long the calls of one step take, each without what the repository does in it."""

    def __init__(self, calls: Iterable[Call], clock: ThreadClock) -> None:
        self.spent: dict[Call, Spent] = {call: Spent() for call in calls}
        self._clock = clock
        # Frames with the call that goes on in them; `None` is not timed.
        self._open: list[tuple[FrameType, bool, Spent | None]] = []
        # Since the last turn.
        self.events = 0

    def enter(self, frame: FrameType, call: Call | None, *, is_builtin: bool) -> None:
        """Note that a call begins: in this frame, or as it."""
        spent = None if call is None else self.spent.get(call)
        if spent is None and not self._open:
            return
        self._turn()
        if spent is not None:
            spent.calls += 1
        self._open.append((frame, is_builtin, spent))
        self._clock.restart()

    def leave(self, frame: FrameType, *, is_builtin: bool) -> None:
        """Note that a call ends, if it is the one that goes on."""
        if self._open and self._open[-1][0] is frame and self._open[-1][1] is is_builtin:
            self._turn()
            self._open.pop()
            if self._open:
                self._clock.restart()
        else:
            self.events += 1

    def _turn(self) -> None:
        """Give what has passed to the call that goes on."""
        if self._open and (spent := self._open[-1][2]) is not None:
            lap = self._clock.lap()
            spent.working += lap.working
            spent.waiting += lap.waiting
            spent.events += self.events
        self.events = 0


@contextlib.contextmanager
def timing(code: AuthorCode, calls: Iterable[Call]) -> Iterator[LibraryTimes]:
    """Within, time these calls. Of other code's own calls all events cost about the same."""
    names = Names(code)
    # Of the repository's code whether it is a function, or only a part of one.
    whose: dict[int, tuple[CodeType, bool | None]] = {}

    def told(its: CodeType, frame: FrameType) -> tuple[CodeType, bool | None]:
        is_function = code.function(its) is not None
        is_ours = is_function or code.calling(frame) is not None
        known = whose[id(its)] = its, is_function if is_ours else None
        return known

    with thread_clock.opened() as clock:
        times = LibraryTimes(calls, clock)

        def hook(frame: FrameType, event: str, argument: object) -> None:
            its = frame.f_code
            known = whose.get(id(its)) or told(its, frame)
            if event == "call":
                around = frame.f_back
                if known[1]:
                    times.enter(frame, None, is_builtin=False)
                elif known[1] is None and around is not None:
                    outer = whose.get(id(around.f_code)) or told(around.f_code, around)
                    if outer[1] is None:
                        times.events += 1
                    else:
                        times.enter(frame, names.python(frame), is_builtin=False)
                else:
                    times.events += 1
            elif event == "return":
                times.leave(frame, is_builtin=False)
            elif known[1] is None:
                times.events += 1
            elif event == "c_call":
                times.enter(frame, names.builtin(frame, argument), is_builtin=True)
            else:
                times.leave(frame, is_builtin=True)

        with hooked(hook):
            yield times


@contextlib.contextmanager
def hooked(hook: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Within, tell a hook of all calls in this thread."""
    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(before)


def timed(
    uses: Iterable[LibraryCall], steps: Sequence[tuple[LibraryTimes, Watching]]
) -> Iterator[LibraryCall]:
    """Yield the calls with their times: 25 % quantiles over steps, each with its own watching."""
    for use in uses:
        call = Call(use.caller, use.callee, use.line)
        laps = [watching.less(step.spent[call]) for step, watching in steps]
        yield LibraryCall(
            **call._asdict(),
            calls=use.calls,
            working_s=quartile([lap.working for lap in laps]) / _NS_PER_S,
            waiting_s=quartile([lap.waiting for lap in laps]) / _NS_PER_S,
        )


def watching_of() -> Watching:
    """Measure what watching takes now: it takes longer on a machine that slows down."""
    library: dict[str, Any] = {"__name__": "trial"}
    exec(_TRIAL, library)  # noqa: S102  a text of ours
    code = AuthorCode("/nowhere")
    itself = _call_all.__code__
    code.known[id(itself)] = itself, AuthorFunction(file="trial.py", function="f", line=1)

    def trial(function: Callable[[], object], count: int) -> Spent:
        callee = "trial.outer" if function is library["outer"] else "sys.getrecursionlimit"
        line = itself.co_firstlineno + 2
        call = Call(code.known[id(itself)][1], callee, line)  # type: ignore[arg-type]
        with timing(code, [call]) as times:
            _call_all(function, count)
        return times.spent[call]

    spent = [trial(sys.getrecursionlimit, _CALLS) for _ in range(_TRIALS)]
    call_ns = min(each.working / max(each.calls, 1) for each in spent)
    unwatched = min(_cpu_ns(library["outer"]) for _ in range(_TRIALS))
    spent = [trial(library["outer"], 1) for _ in range(_TRIALS)]
    event_ns = min(
        max(each.working - unwatched - call_ns, 0) / max(each.events, 1) for each in spent
    )
    return Watching(call_ns, event_ns)


def _call_all(function: Callable[[], object], count: int) -> None:
    for _ in range(count):
        function()


def _cpu_ns(function: Callable[[], object]) -> int:
    start = time.thread_time_ns()
    function()
    return time.thread_time_ns() - start

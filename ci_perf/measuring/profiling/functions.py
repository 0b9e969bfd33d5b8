"""Count the repository's functions and what they call, and time them, in the step's thread.

Other threads, such as those that load data ahead, have no step to which their calls belong; what
this thread waits for them shows as waiting; so does what it waits for a device.
"""

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Final, NamedTuple, Protocol

import msgspec

from ci_perf.measuring.profiling import library_calls, thread_clock
from ci_perf.measuring.profiling.library_calls import hooked
from ci_perf.measuring.profiling.origins import AuthorCode, shown
from ci_perf.measuring.profiling.tables import Counted
from ci_perf.measuring.profiling.thread_clock import Lap, quartile
from ci_perf.measuring.profiling.wrappers import Boundaries
from ci_perf.model.step_profile import AuthorFunction, FunctionUse

_NS_PER_S: Final = 1e9
# Two clocks that are read one after the other differ by less.
_SHORTEST_WAIT_NS: Final = 10_000
_PYTHON_EVENTS: Final = ("call", "return")
# What watching takes for a lap, and for an event of a built-in, in events of a Python function: by
# CPython 3.11, where a function's own time came out as it is without watching.
_OF_LAP: Final = 8.0
_OF_BUILTIN: Final = 0.5
# How often calls of a function are timed to learn what an event takes, and how many of them.
_TRIALS: Final = 5
_CALLS: Final = 1_000
# A function that waits for less of its time does not wait, for a reason that could be named.
_LEAST_WAITING: Final = 0.05
# Of a function's waiting: less would be one of several reasons.
_MOST_OF_IT: Final = 0.5


class Watched(NamedTuple):
    """The calls of one step: of the repository's functions, and what these call elsewhere."""

    functions: Counted[AuthorFunction]
    library: Counted[library_calls.Call]


@contextlib.contextmanager
def watch(code: AuthorCode) -> Iterator[Watched]:
    """Within, count calls. A generator that goes on counts as called, as profilers see it."""
    counted = Watched(Counted(), Counted())
    names = library_calls.Names(code)
    collecting = library_calls.Collecting()

    def hook(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            if function := code.function(frame.f_code):
                counted.functions.note(function)
                return
            call = names.python(frame)
        elif event == "c_call":
            call = names.builtin(frame, argument)
        else:
            return
        if call is not None and not collecting.is_on:
            counted.library.note(call)

    with collecting.followed(), hooked(hook):
        yield counted


class LapClock(Protocol):
    """What measures laps: a `ThreadClock`."""

    def lap(self) -> Lap:
        """Return what has passed since the last lap, and begin another one."""

    def restart(self) -> None:
        """Begin another lap: what has passed since the last one is nobody's."""


class _Spent:
    """Nanoseconds of working and of waiting, and how much watching has taken part in the former."""

    __slots__ = ("events", "waiting", "working")

    def __init__(self) -> None:
        self.working = self.waiting = 0
        self.events = 0.0

    def add(self, lap: Lap, events: float) -> None:
        """Add a lap with what has been watched in it."""
        self.working += lap.working
        self.waiting += lap.waiting
        self.events += events


class Times:
    """The own times of one step, of so many functions as are asked for."""

    def __init__(self, functions: Iterable[AuthorFunction]) -> None:
        self.by_phase: dict[AuthorFunction, dict[str, _Spent]] = {each: {} for each in functions}
        # Nanoseconds of waiting, by the name of the built-in function in which it passed.
        self.in_builtins: dict[AuthorFunction, Counter[str]] = {
            each: Counter() for each in self.by_phase
        }
        self._whole = _Spent()

    def add(
        self,
        function: AuthorFunction | None,
        phase: str,
        lap: Lap,
        *,
        builtin: object = None,
        events: float = 0.0,
    ) -> None:
        """Add a lap to what a function has spent, in a built-in or outside of all (`None`)."""
        self._whole.add(lap, events)
        if function is None or (phases := self.by_phase.get(function)) is None:
            return
        if phase not in phases:
            phases[phase] = _Spent()
        phases[phase].add(lap, events)
        if builtin is not None and lap.waiting > _SHORTEST_WAIT_NS:
            self.in_builtins[function][_name_of(builtin)] += lap.waiting

    @property
    def working_ns(self) -> int:
        """Return the CPU time of all functions, and outside of them."""
        return self._whole.working

    def own(
        self,
        function: AuthorFunction,
        unwatched_ns: float | None = None,
        event_ns: float = math.inf,
    ) -> Lap:
        """Return what a function has spent, less what watching has taken, by CPU time.

        That is known of the whole step, which takes `unwatched_ns` when nobody looks, and is taken
        from its functions by what was watched in them: a sum over a generator would otherwise take
        ten times as long as it does. But an event takes `event_ns` at most: what is beyond is
        how far two steps differ, and would fall on the functions in which most was watched.
        """
        parts = self.by_phase[function].values()
        working = sum(part.working for part in parts)
        if unwatched_ns is not None and self._whole.events:
            by_event = max(self._whole.working - unwatched_ns, 0.0) / self._whole.events
            events = sum(part.events for part in parts)
            working = max(round(working - events * min(by_event, event_ns)), 0)
        return Lap(working, sum(part.waiting for part in parts))


class Stack:
    """Gives what passes to the innermost function of the repository."""

    def __init__(self, times: Times, clock: LapClock, phase: Callable[[], str]) -> None:
        self._times = times
        self._clock = clock
        self._phase = phase
        self._phase_before = ""
        # Each function; and each built-in, with the function that has called it.
        self._calls: list[tuple[AuthorFunction | None, object]] = []
        # Events since the last turn, of what is not the repository's.
        self.python_events = 0
        self.builtin_events = 0

    def turn(self) -> None:
        """Give what has passed until now to its function and phase, and begin again."""
        lap = self._clock.lap()
        events = _OF_LAP + self.python_events + _OF_BUILTIN * self.builtin_events
        self.python_events = self.builtin_events = 0
        function, builtin = self._calls[-1] if self._calls else (None, None)
        self._times.add(function, self._phase_before, lap, builtin=builtin, events=events)
        self._phase_before = self._phase()
        self._clock.restart()

    def enter(self, function: AuthorFunction) -> None:
        """Note that a function is called, or a generator goes on."""
        self.turn()
        self._calls.append((function, None))

    def leave(self) -> None:
        """Note that a function returns, or a generator yields."""
        self.turn()
        while self._calls and self._calls.pop()[1] is not None:
            pass  # a built-in that has not told of its end

    def enter_builtin(self, builtin: object) -> None:
        """Note that a built-in function is called."""
        self.turn()
        self._calls.append((self._calls[-1][0] if self._calls else None, builtin))

    def leave_builtin(self) -> None:
        """Note that a built-in function returns."""
        self.turn()
        if self._calls and self._calls[-1][1] is not None:
            self._calls.pop()


@contextlib.contextmanager
def time_own(code: AuthorCode, stack: Stack, *, with_builtins: bool = False) -> Iterator[None]:
    """Within, time functions of the repository; the clocks of built-ins slow what calls many."""
    known = code.known  # looked up here: a call for each event would take as long as all else

    def hook(frame: FrameType, event: str, argument: object) -> None:
        if event in _PYTHON_EVENTS:
            its_code = frame.f_code
            seen = known.get(id(its_code))
            function = seen[1] if seen else code.function(its_code)
            if function is None:
                stack.python_events += 1
            elif event == "call":
                stack.enter(function)
            else:
                stack.leave()
        elif not with_builtins:
            stack.builtin_events += 1
        elif event == "c_call":
            stack.enter_builtin(argument)
        else:
            stack.leave_builtin()

    with hooked(hook):
        yield


def event_ns(code: AuthorCode) -> float:
    """Return the CPU time that the hook takes for an event of a function of others."""
    unwatched = _calls_ns(_nothing)
    with time_own(code, Stack(Times(()), _NoClock(), str)):
        watched = _calls_ns(_nothing)
    return max(watched - unwatched, 0) / (len(_PYTHON_EVENTS) * _CALLS)


def event_ns_wrapped(boundaries: Boundaries) -> float:
    """Return what begin and end of a wrapped function take, as much of it as one event counts."""
    function = boundaries.wrap(_nothing)
    unwatched = _calls_ns(_nothing)

    def charged_ns() -> int:
        times = Times(())
        with thread_clock.opened() as clock:
            stack = Stack(times, clock, str)
            with boundaries.told(stack.enter, stack.leave):
                clock.restart()
                for _ in range(_CALLS):
                    function()
        return times.working_ns

    watched = min(charged_ns() for _ in range(_TRIALS))
    return max(watched - unwatched, 0) / (len(_PYTHON_EVENTS) * _CALLS * _OF_LAP)


def _calls_ns(function: Callable[[], None]) -> int:
    """Return the CPU time of many calls."""

    def once() -> int:
        start = time.thread_time_ns()
        for _ in range(_CALLS):
            function()
        return time.thread_time_ns() - start

    return min(once() for _ in range(_TRIALS))


def _nothing() -> None:
    """Be called."""


class _NoClock:
    """Measures nothing."""

    def lap(self) -> Lap:
        return Lap(0, 0)

    def restart(self) -> None:
        pass


def timed(
    uses: Iterable[FunctionUse],
    steps: Sequence[Times],
    with_builtins: Sequence[Times],
    *,
    unwatched_s: float | None,
    event_ns: float,
) -> tuple[FunctionUse, ...]:
    """Return the uses with their times: 25 % quantiles over steps.

    `unwatched_s` is the CPU time of a step that nobody watches, if that is known; `event_ns` what
    watching an event takes.
    """
    unwatched_ns = None if unwatched_s is None else unwatched_s * _NS_PER_S
    return tuple(
        _timed(
            use,
            steps,
            with_builtins,
            [step.own(use.function, unwatched_ns, event_ns) for step in steps],
        )
        for use in uses
    )


def _timed(
    use: FunctionUse,
    steps: Sequence[Times],
    with_builtins: Sequence[Times],
    own: Sequence[Lap],
) -> FunctionUse:
    function = use.function
    phases: Counter[str] = Counter()
    for step in steps:
        for phase, spent in step.by_phase[function].items():
            phases[phase] += spent.working + spent.waiting
    return msgspec.structs.replace(
        use,
        phase=max(phases, key=lambda phase: (phases[phase], phase), default=""),
        working_s=quartile([lap.working for lap in own]) / _NS_PER_S,
        waiting_s=quartile([lap.waiting for lap in own]) / _NS_PER_S,
        waits_in=_waits_in(function, with_builtins),
    )


def _waits_in(function: AuthorFunction, steps: Sequence[Times]) -> str:
    """Name the built-in in which most of the waiting passes in every step, if there is one.

    The least of all steps is believed: any built-in may have been disturbed in one of them.
    """
    names = {name for step in steps for name in step.in_builtins[function]}
    least = {name: min(step.in_builtins[function][name] for step in steps) for name in names}
    if not least:
        return ""
    name = max(least, key=lambda each: (least[each], each))
    spent = min((step.own(function) for step in steps), key=lambda lap: lap.waiting)
    enough = max(_MOST_OF_IT * spent.waiting, _LEAST_WAITING * sum(spent))
    return name if least[name] > enough else ""


def _name_of(builtin: object) -> str:
    """Name a built-in as people do: "time.sleep", "lock.acquire"."""
    module = getattr(builtin, "__module__", None)
    name = getattr(builtin, "__qualname__", type(builtin).__name__)
    return shown(name if module in {None, "builtins"} else f"{module}.{name}")

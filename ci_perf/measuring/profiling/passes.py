"""Run further steps of a workload: watched ones that count, then those that are timed."""

import contextlib
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from ci_perf.measuring.device import CpuDevice, Device, Step
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import TimeLeft
from ci_perf.measuring.profiling import functions, library_calls, operators, thread_clock
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.storages import Storages
from ci_perf.measuring.profiling.tables import Counted, Operation, joined
from ci_perf.measuring.profiling.thread_clock import Reservoir
from ci_perf.measuring.profiling.wrappers import Boundaries
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.step_profile import (
    MOST_RANKS,
    FunctionUse,
    RankTimes,
    StepProfile,
)

T = TypeVar("T")

STEPS = 2
# Of each rank by itself, the first of them thrown away.
LOCAL_STEPS = 4
# Of the time that is left to the launch: the rest of a step, and further steps, need some, too.
_SHARE = 0.4
_SHORTEST_S = 1e-9


_Watched = Callable[[functions.Stack], contextlib.AbstractContextManager[None]]


class _Limit(NamedTuple):
    """How many steps a pass takes, and for how long it begins new ones."""

    steps: int
    seconds: float
    share: float  # of the time that is left to the launch


# Quantiles need some ten steps; those of a step that takes a second are few, or none.
_UNWATCHED = _Limit(20, 2.0, 0.1)
_TIMED_CALLS = _Limit(15, 8.0, 0.25)
_TIMED_FUNCTIONS = _Limit(12, 6.0, 0.2)
# Only to find where most of the waiting passes.
_TIMED_BUILTINS = _Limit(3, 2.0, 0.1)
_TIMED_CALLS_OF_LIBRARIES = _Limit(8, 3.0, 0.1)


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of one launch; `step` has been run before, until nothing is allocated any more."""

    step: Callable[[], object]
    code: AuthorCode
    here: Device
    group: Group
    watcher: Watcher
    left: TimeLeft

    def run(self) -> float:
        """Run one step, and return how many seconds it took."""
        start = time.monotonic()
        self.step()
        self.here.synchronize()
        return max(time.monotonic() - start, _SHORTEST_S)

    def count(self, memory: Storages | None) -> StepProfile:
        """Count operators and functions in steps of their own: each would count the other's.

        All of these steps show what they leave behind in memory.
        """
        may_take_s = _SHARE * self.left.seconds
        end = time.monotonic() + may_take_s
        of_operators: list[Counted[Operation]] = []
        of_functions: list[functions.Watched] = []
        with self.watcher.following(self.here):
            if memory is not None:
                memory.begin()
            for _ in range(STEPS):
                of_operators.append(self._count_operators(end))
                # All ranks must do the same steps.
                if self.group.maximum(float(of_operators[-1].is_late)):
                    absent = f"counting the operators of a step took more than {may_take_s:.0f} s"
                    return StepProfile(steps=0, absent=absent)
                if memory is not None:
                    memory.step_ended()
            for _ in range(STEPS):
                of_functions.append(self._count_functions())
                if memory is not None:
                    memory.step_ended()
        profile = joined(
            of_operators,
            [step.functions for step in of_functions],
            [step.library for step in of_functions],
        )
        if memory is None or memory.is_late:
            return profile
        return msgspec.structs.replace(profile, memory=memory.use())

    def unwatched(self) -> tuple[float, float]:
        """Return the median time of steps that nothing watches, and of this thread's CPU time."""

        def once() -> tuple[float, float]:
            start = time.thread_time()
            return self.run(), time.thread_time() - start

        step_s, working_s = zip(*self._repeat(_UNWATCHED, once), strict=True)
        return statistics.median(step_s), statistics.median(working_s)

    def times_of_ranks(self, local_step: Step | None, working_s: float | None) -> RankTimes:
        """Return how long each rank works by itself in a step, the same on all ranks.

        `working_s` is the CPU time of a whole step of this rank: who waits for others on a CPU does
        not work meanwhile.
        """
        own_s = working_s if isinstance(self.here, CpuDevice) else None
        if local_step is not None:
            # The first step that leaves out the communication is a first one in many ways.
            seconds = [self._local_s(local_step) for _ in range(LOCAL_STEPS)]
            own_s = statistics.median(seconds[1:])
        of_all = self.group.gather(math.nan if own_s is None else own_s)
        known = () if any(map(math.isnan, of_all)) else of_all
        return RankTimes(world_size=self.group.world_size, own_s=known[:MOST_RANKS])

    def _local_s(self, local_step: Step) -> float:
        self.here.synchronize()
        self.group.barrier()
        start = time.monotonic()
        local_step()
        self.here.synchronize()
        return time.monotonic() - start

    def time_operators(self, profile: StepProfile) -> StepProfile:
        """Return the profile with times of the calls that it counts."""
        times = {Operation.of(use): Reservoir() for use in profile.operators}
        wait = None if isinstance(self.here, CpuDevice) else self.here.synchronize

        def once() -> None:
            with operators.time_calls(self.code, self._phase, times, wait=wait):
                self.run()

        if times:
            with self.watcher.following(self.here):
                self._repeat(_TIMED_CALLS, once)
        watching_s = operators.watching_s() if times else 0.0
        uses = [
            msgspec.structs.replace(use, call_s=samples.quartile_s(less_s=watching_s))
            for use, samples in zip(profile.operators, times.values(), strict=True)
        ]
        return msgspec.structs.replace(profile, operators=tuple(uses))

    def time_functions(self, profile: StepProfile, unwatched_s: float | None) -> StepProfile:
        """Return the profile with the own times of the functions that it counts.

        `unwatched_s` is the CPU time of a step that nothing watches, if that is known.
        """
        if not profile.functions:
            return profile

        boundaries = Boundaries(self.code)
        event_ns = functions.event_ns_wrapped(boundaries)
        with boundaries.wrapped():
            steps = self._repeat(
                _TIMED_FUNCTIONS, lambda: self._timed(_told(boundaries), profile.functions)
            )
        missed = {use.function for use in profile.functions} - boundaries.entered
        if self.group.maximum(float(len(missed))):  # all ranks must do the same steps
            # The time of what was not wrapped is in that of its callers.
            steps = self._repeat(
                _TIMED_FUNCTIONS, lambda: self._timed(self._hooked, profile.functions)
            )
            event_ns = functions.event_ns(self.code)
        in_builtins = partial(self._hooked, with_builtins=True)
        of_builtins = self._repeat(
            _TIMED_BUILTINS, lambda: self._timed(in_builtins, profile.functions)
        )
        uses = functions.timed(
            profile.functions, steps, of_builtins, unwatched_s=unwatched_s, event_ns=event_ns
        )
        return msgspec.structs.replace(profile, functions=uses)

    def time_library_calls(self, profile: StepProfile) -> StepProfile:
        """Return the profile with the times of the calls of libraries that it counts."""
        if self.group.maximum(float(bool(profile.library_calls))) == 0:
            return profile
        calls = [
            library_calls.Call(use.caller, use.callee, use.line) for use in profile.library_calls
        ]

        def once() -> tuple[library_calls.LibraryTimes, library_calls.Watching]:
            with library_calls.timing(self.code, calls) as times:
                self.run()
            return times, library_calls.watching_of()

        with self.watcher.following(self.here):
            steps = self._repeat(_TIMED_CALLS_OF_LIBRARIES, once)
        uses = library_calls.timed(profile.library_calls, steps)
        return msgspec.structs.replace(profile, library_calls=tuple(uses))

    def _timed(self, watched: _Watched, uses: Iterable[FunctionUse]) -> functions.Times:
        """Run a step, of which `watched` tells a stack where functions begin and end."""
        times = functions.Times(use.function for use in uses)
        with thread_clock.opened() as clock:
            stack = functions.Stack(times, clock, self._phase)
            with self.watcher.following(self.here, stack.turn), watched(stack):
                self.run()
        return times

    def _hooked(
        self, stack: functions.Stack, *, with_builtins: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        return functions.time_own(self.code, stack, with_builtins=with_builtins)

    def _repeat(self, limit: _Limit, once: Callable[[], T]) -> list[T]:
        """Call `once` for a step at least, and while there is time: as often on all ranks."""
        end = time.monotonic() + min(limit.seconds, limit.share * self.left.seconds)
        done = [once()]
        while len(done) < limit.steps and self.group.maximum(time.monotonic() - end) < 0:
            done.append(once())
        return done

    def _phase(self) -> str:
        return self.watcher.current

    def _count_operators(self, end: float) -> Counted[Operation]:
        if "torch" not in sys.modules:
            return Counted()
        with operators.watch(self.code, self._phase, end=end) as counted:
            self.run()
        return counted

    def _count_functions(self) -> functions.Watched:
        with functions.watch(self.code) as counted:
            self.run()
        return counted


def _told(boundaries: Boundaries) -> _Watched:
    return lambda stack: boundaries.told(stack.enter, stack.leave)

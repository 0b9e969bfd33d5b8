"""Run further steps of a workload: watched ones that count, then those that are timed.

All launches of a workload count the same steps, by their number since `build`: the two sides of a
comparison would otherwise count steps that differ by design, such as every tenth one that logs.
Times come from further steps, as many as there is time for: what counts would slow them.
"""

import contextlib
import cProfile
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import msgspec

from ci_perf.features.explain.worker import functions, operators
from ci_perf.features.explain.worker.functions import Graph
from ci_perf.features.explain.worker.operators import Operation
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.measuring.device import CudaDevice, Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.explanation import (
    MOST_FUNCTIONS,
    MOST_OPERATORS,
    MOST_VARYING,
    AuthorFunction,
    Callee,
    FunctionUse,
    OperatorUse,
    StepProfile,
    Varying,
)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

STEPS: Final = 2
# Of the time that is left to the launch: the rest of a step, and further steps, need some, too.
_SHARE: Final = 0.4
_SHORTEST_S: Final = 1e-9


class _Limit(NamedTuple):
    """How many steps a pass takes, and for how long it begins new ones."""

    steps: int
    seconds: float
    share: float  # of the time that is left to the launch


# Quantiles need some ten steps; those of a step that takes a second are few, or none.
_UNWATCHED: Final = _Limit(20, 2.0, 0.1)
_TIMED_OPERATORS: Final = _Limit(15, 8.0, 0.25)
_TIMED_FUNCTIONS: Final = _Limit(12, 6.0, 0.2)


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

    def count(self) -> StepProfile:
        """Count operators and functions in steps of their own: each would count the other's."""
        may_take_s = _SHARE * self.left.seconds
        end = time.monotonic() + may_take_s
        of_operators: list[Counter[Operation]] = []
        for _ in range(STEPS):
            with operators.count_calls(self.code, end=end) as counted:
                self.run()
            of_operators.append(counted)
            # All ranks must do the same steps.
            if self.group.maximum(time.monotonic() - end) > 0:
                absent = f"counting the operators of a step took more than {may_take_s:.0f} s"
                return StepProfile(steps=0, absent=absent)
        of_functions = [functions.profile_step(self.run, self.code).nodes for _ in range(STEPS)]
        return join_counts(of_operators, of_functions)

    def time_unwatched(self) -> float:
        """Return the median time of steps that nothing watches."""
        return statistics.median(self._repeat(_UNWATCHED, self.run))

    def time_operators(self, uses: Sequence[OperatorUse]) -> tuple[OperatorUse, ...]:
        """Return the operators with the times of their calls."""
        times: dict[Operation, list[float]] = {
            Operation(*(getattr(use, name) for name in Operation._fields)): [] for use in uses
        }
        wait = self.here.synchronize if isinstance(self.here, CudaDevice) else None

        def run_timed() -> None:
            with operators.time_calls(self.code, times, wait=wait):
                self.run()

        # Without torch there is none on any rank.
        if "torch" not in sys.modules:
            return tuple(uses)
        self._repeat(_TIMED_OPERATORS, run_timed)
        watching_s = operators.measure_watching_s()
        return tuple(
            msgspec.structs.replace(use, call_s=operators.call_s(times_s, watching_s))
            for use, times_s in zip(uses, times.values(), strict=True)
        )

    def time_functions(self, uses: Sequence[FunctionUse]) -> tuple[FunctionUse, ...]:
        """Return the functions with their own times, and those of what they call in libraries."""
        event_s = functions.measure_event_s()
        steps = self._repeat(
            _TIMED_FUNCTIONS,
            lambda: functions.profile_step(self.run, self.code, event_s=event_s),
        )
        loading = cProfile.Profile()

        @contextlib.contextmanager
        def profile_loading(phase: str) -> Iterator[None]:
            with loading if phase == "data" else contextlib.nullcontext():
                yield

        with self.watcher.marking(self.here, profile_loading):
            self.run()
        data = Graph(loading, self.code, event_s)
        return tuple(functions.time_functions(uses, steps, data))

    def _repeat(self, limit: _Limit, run: Callable[[], T]) -> list[T]:
        """Call `run` for a step at least, and while there is time: as often on all ranks."""
        end = time.monotonic() + min(limit.seconds, limit.share * self.left.seconds)
        done = [run()]
        while len(done) < limit.steps and self.group.maximum(time.monotonic() - end) < 0:
            done.append(run())
        return done


def join_counts(
    of_operators: Sequence[Counter[Operation]],
    of_functions: Sequence[Mapping[functions.Name, functions.Node]],
) -> StepProfile:
    """Return what all steps have in common; the most called are kept where there are too many.

    Where an operator of a function varies in one way, none of its calls there is counted: shapes
    that are drawn by chance agree now and then.
    """
    calls: list[Counter[AuthorFunction]] = []
    called: list[Counter[tuple[AuthorFunction, str]]] = []
    for step in of_functions:
        own = {name: node for name, node in step.items() if isinstance(name, AuthorFunction)}
        calls.append(Counter({name: node.calls for name, node in own.items() if node.calls}))
        called.append(
            Counter(
                {
                    (name, callee): count
                    for name, node in own.items()
                    for callee, count in functions.list_callees(node).items()
                }
            )
        )
    same, various = _find_common(of_operators, of_kind=_kind)
    same_functions, various_functions = _find_common(calls)
    callees, various_callees = _find_common(called)
    varying = {Varying(operator=each.operator, caller=each.caller) for each in various}
    varying |= {Varying(caller=function) for function in various_functions}
    varying |= {Varying(operator=name, caller=function) for function, name in various_callees}
    cut = sum(
        max(len(uses) - most, 0)
        for uses, most in (
            (same, MOST_OPERATORS),
            (same_functions, MOST_FUNCTIONS),
            (varying, MOST_VARYING),
        )
    )
    return StepProfile(
        steps=STEPS,
        operators=tuple(
            OperatorUse(**use._asdict(), calls=float(times)) for use, times in same[:MOST_OPERATORS]
        ),
        functions=tuple(
            FunctionUse(
                function=function,
                calls=float(times),
                callees=tuple(
                    Callee(name=name, calls=float(count))
                    for (caller, name), count in callees
                    if caller == function
                ),
            )
            for function, times in same_functions[:MOST_FUNCTIONS]
        ),
        varies=tuple(sorted(varying, key=repr)[:MOST_VARYING]),
        cut=cut,
    )


def _find_common(
    steps: Sequence[Counter[K]],
    of_kind: Callable[[K], Hashable] = lambda each: each,
) -> tuple[list[tuple[K, int]], set[K]]:
    """Return what is the same in all steps, the most called first, and what is not."""
    first = steps[0]
    seen = {key for step in steps for key in step}
    varying = {key for key in seen if any(step[key] != first[key] for step in steps)}
    kinds = {of_kind(key) for key in varying}
    same = [(key, calls) for key, calls in first.items() if of_kind(key) not in kinds]
    same.sort(key=lambda item: (-item[1], repr(item[0])))
    return same, varying


def _kind(use: Operation) -> Hashable:
    return use.operator, use.caller, use.is_backward

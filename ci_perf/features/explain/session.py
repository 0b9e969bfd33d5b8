"""Profile both sides of workloads in turns, after all judging or for somebody who asks.

What comes of it decides nothing: a launch that fails leaves a sentence, and the run as it was.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ci_perf.features.explain.launches import find_obstacle
from ci_perf.model.base import MAX_ERROR_CHARS, Side
from ci_perf.model.explanation import ProfiledPair, ProfiledPairs, StepProfile
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.task import Task, TaskFailure
from ci_perf.session import Lab

# Counts need one pair. Times are believed where three pairs agree.
_MOST_PAIRS: Final = 3
# What a budget of 0 s means, and what to do.
_LEFT_OUT: Final = "--fail-fast profiles nothing; next: --explain 1m"
# Less would not import torch.
_SHORTEST_LIMIT_S: Final = 10.0
# Ours are a fourth of that; a workload may have written its own.
_MOST_BYTES: Final = 4_000_000


class Explaining:
    """Launches further processes for both sides; ``pairs`` is what they have found so far."""

    def __init__(self, lab: Lab, *, traces: Path | None = None) -> None:
        """Launch in an open session; the folder `traces` gets those of each side's first launch."""
        self.pairs: dict[str, ProfiledPairs] = {}
        self._lab = lab
        self._traces = traces
        self._end = lab.clock()

    def profile_pairs(self, sides: Mapping[str, tuple[Task, Task] | None], budget_s: float) -> None:
        """Profile workloads, worst first, for at most `budget_s`, overrun by one launch at most.

        `sides` has the launches of each, base first; `None` where the base has no such file. Each
        has a first pair before any has a second one. What keeps the sides of one pair from
        being compared does so in all. Raises KeyboardInterrupt.
        """
        self._end = self._lab.clock() + budget_s
        if not budget_s:
            self.pairs = {name: ProfiledPairs(workload=name, trouble=_LEFT_OUT) for name in sides}
            return
        for name in sides:
            trouble = "interrupted before it was profiled"
            self.pairs[name] = ProfiledPairs(workload=name, trouble=trouble)
        going = list(sides)
        for number in range(_MOST_PAIRS):
            for name in list(going):
                outcome = self._profile_pair(name, sides[name], number)
                pairs = self.pairs[name].pairs
                if isinstance(outcome, ProfiledPair):
                    pairs_now = ProfiledPairs(workload=name, pairs=(*pairs, outcome))
                else:
                    trouble = outcome[:MAX_ERROR_CHARS]
                    pairs_now = ProfiledPairs(workload=name, pairs=pairs, trouble=trouble)
                self.pairs[name] = pairs_now
                if isinstance(outcome, str) or find_obstacle(outcome):
                    going.remove(name)

    def profile_alone(self, task: Task, budget_s: float) -> StepProfile | str:
        """Profile one launch, or say why that failed. Raises KeyboardInterrupt."""
        self._end = self._lab.clock() + budget_s
        self._lab.listener.profiling(task.workload.id)
        return self._profile(task, "head")

    def _profile_pair(
        self, workload: str, tasks: tuple[Task, Task] | None, number: int
    ) -> ProfiledPair | str:
        """Launch both sides, or say why that cannot be."""
        if self._end <= self._lab.clock():
            return "the time for profiling was spent before"
        if tasks is None:
            return "the base has no file of this workload"
        self._lab.listener.profiling(workload)
        order: tuple[tuple[Side, Task], ...] = ("base", tasks[0]), ("head", tasks[1])
        profiles: dict[Side, StepProfile] = {}
        for side, task in order[::-1] if number % 2 else order:
            outcome = self._profile(task, side, is_traced=not number)
            if isinstance(outcome, str):
                return f"the launch that profiles the {side} failed: {outcome}"
            profiles[side] = outcome
        return ProfiledPair(base=profiles["base"], head=profiles["head"])

    def _profile(self, task: Task, side: Side, *, is_traced: bool = True) -> StepProfile | str:
        """Return what one side does, or why nobody knows; keep its trace."""
        name = f"{task.workload.id}.{side}.pt.trace.json.gz"
        protocol = task.workload.protocol
        limit_s = min(protocol.timeout_s, max(self._end - self._lab.clock(), _SHORTEST_LIMIT_S))
        protocol_of_it = msgspec.structs.replace(protocol, timeout_s=limit_s)
        outcome = self._lab.profile(
            msgspec.structs.replace(
                task,
                workload=msgspec.structs.replace(task.workload, protocol=protocol_of_it),
                trace_to=str(self._traces / name) if is_traced and self._traces else "",
            )
        )
        if isinstance(outcome, TaskFailure):
            if limit_s < protocol.timeout_s and outcome.reason.startswith(NO_RESULT_IN_TIME):
                return f"it took longer than the {limit_s:.0f} s that were left for profiling"
            return outcome.reason
        if len(msgspec.json.encode(outcome)) > _MOST_BYTES:
            return f"its profile is larger than {_MOST_BYTES} bytes"
        return outcome

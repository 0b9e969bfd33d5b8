"""Count what a step does on both sides of each workload that has moved, after all judging.

What comes of it decides nothing: a launch that fails leaves a sentence, and the run as it was.
"""

from collections.abc import Callable

import msgspec

from ci_perf.model.process import NO_RESULT_IN_TIME, WorkerResult
from ci_perf.model.run import Run
from ci_perf.model.step_counts import CountedSides, StepCounts
from ci_perf.model.task import Task, TaskFailure
from ci_perf.session.interleaving import Against, Interleaving
from ci_perf.session.listener import Listener

# A sentence; the run file would refuse a longer one.
_DETAIL_CHARS = 2000
# Less would not import torch.
_SHORTEST_LIMIT_S = 10.0
# Ours are a fourth of that; a workload may have written its own.
_MOST_BYTES = 4_000_000

Launch = Callable[[Task], WorkerResult | TaskFailure]


class Explaining:
    """Launches one further process for each side, and keeps what it has counted."""

    def __init__(
        self,
        against: Against,
        interleaving: Interleaving,
        listener: Listener,
        launch: Launch,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._against = against
        self._interleaving = interleaving
        self._listener = listener
        self._launch = launch
        self._clock = clock
        self._end = clock()
        self._sides: dict[str, CountedSides] = {}

    def go(self, run: Run) -> None:
        """Count every workload of which pairs have proven something. Raises KeyboardInterrupt."""
        budget_s = self._against.explain_budget_s
        if budget_s is None or run.validity.against("") is not None:
            return
        paired = {paired.workload for paired in run.paired if paired.pairs}
        moved = [name for name in self._against.judge.moved(run) if name in paired]
        self._sides = {name: _missing(name, "interrupted before it was counted") for name in moved}
        self._end = self._clock() + budget_s
        for name in moved:
            self._sides[name] = self._counted(name)

    def counted(self) -> tuple[CountedSides, ...]:
        """Return both sides of each workload, worst first, as far as it has come."""
        return tuple(self._sides.values())

    def _counted(self, workload: str) -> CountedSides:
        if self._left_s() <= 0:
            return _missing(workload, "the time of --explain-budget was spent before")
        tasks = self._interleaving.tasks_of_own_files(workload)
        if tasks is None:
            return _missing(workload, "the base has no file of this workload")
        self._listener.counting(workload)
        counts: list[StepCounts] = []
        for side, task in zip(("base", "head"), tasks, strict=True):
            outcome = self._counts_of(task)
            if not isinstance(outcome, StepCounts):
                why = f"the launch that counts the {side} failed: {outcome}"
                return _missing(workload, why, *counts)
            counts.append(outcome)
        return CountedSides(workload=workload, base=counts[0], head=counts[1])

    def _counts_of(self, task: Task) -> StepCounts | str:
        """Return what one side does, or why nobody knows."""
        protocol = task.workload.protocol
        limit_s = min(protocol.timeout_s, max(self._left_s(), _SHORTEST_LIMIT_S))
        limited = msgspec.structs.replace(
            task.workload, protocol=msgspec.structs.replace(protocol, timeout_s=limit_s)
        )
        outcome = self._launch(msgspec.structs.replace(task, workload=limited, count=True))
        if isinstance(outcome, TaskFailure):
            if limit_s < protocol.timeout_s and outcome.reason.startswith(NO_RESULT_IN_TIME):
                return f"it took longer than the {limit_s:.0f} s that were left of --explain-budget"
            return outcome.reason
        if outcome.counts is None:
            return "it left no counts"
        if len(msgspec.json.encode(outcome.counts)) > _MOST_BYTES:
            return f"its counts are larger than {_MOST_BYTES} bytes"
        return outcome.counts

    def _left_s(self) -> float:
        return self._end - self._clock()


def _missing(workload: str, why: str, base: StepCounts | None = None) -> CountedSides:
    return CountedSides(workload=workload, base=base, trouble=why[:_DETAIL_CHARS])

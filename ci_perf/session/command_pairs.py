"""Whether two copies of a command take turns at the steps that they print, and how long these are.

Elsewhere each launch of the command runs to its end before the next one begins (decision 009).
"""

import math
from collections.abc import Sequence

from ci_perf.launch import Outcome
from ci_perf.model.process import WorkerResult
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import CommandTurn, TaskFailure

# Fewer say too little, in one pair, of what the copies differ by.
FEWEST_BLOCKS = 12
# Turns of less are short against what a switch costs: pairs of the same code differed by 4.5 %
# where a turn was one step of 40 to 70 ms (9 pairs), by 1.1 % where it was three (8 pairs).
LEAST_STEPS, LEAST_TURN_S = 3, 0.05
# How many times as long as in the first launches of the head no step may end, and seconds more.
_TIMES, _MORE_S = 5, 10.0


def find_turn(workload: PlannedWorkload, results: Sequence[WorkerResult]) -> CommandTurn | None:
    """Return how long a turn is; `None` for what is no command that prints enough step times."""
    first = results[0]
    steps = max(LEAST_STEPS, math.ceil(LEAST_TURN_S / first.process.timed.steps.p50))
    lines = int(first.process.printed_times or 0)
    first_turn = max(1, int(workload.parameters.get("skip", 0)))
    if (lines - first_turn) // (steps + 1) < FEWEST_BLOCKS:
        return None
    longest_s = max(each.printing.longest_s for each in results if each.printing)
    return CommandTurn(steps=steps, timeout_s=_TIMES * longest_s + _MORE_S)


def find_against(results: Sequence[WorkerResult]) -> str:
    """Say why copies of the command cannot take turns, by its launches so far."""
    for result in results:
        if result.printing and result.printing.against:
            return result.printing.against
        if result.process.printed_times != results[0].process.printed_times:
            return "launches print another number of times than the first one"
        if own := [name for name in result.process.metrics if _is_time(name)]:
            return f"its own metric {own[0]} would count the seconds in which it waits"
    return ""


def refuse(outcomes: Sequence[Outcome], first: WorkerResult) -> str:
    """Say why a pair in turns does not count; `first` is the first launch of the head."""
    for outcome in outcomes:
        if isinstance(outcome, TaskFailure):
            return f"one of two copies that took turns has failed: {outcome.reason}"
    return find_against([first, *(each for each in outcomes if isinstance(each, WorkerResult))])


def _is_time(name: str) -> bool:
    return name.partition(".")[0] in {"time", "tail", "rate"}

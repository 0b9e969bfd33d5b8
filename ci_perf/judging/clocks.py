"""Two clocks of one step on a CPU: the time by the wall is the promise, CPU time speaks beside it.

CPU time is quiet where others use the machine. It does not see waiting, and it grows where work
moves to other processes, which is no loss of time.
"""

# On a crowded CPU, CPU time has an answer for 95.5 % of unchanged resident pairs, and the wall for
# 10 %; of losses by 5 % it finds 55.5 %, and the wall 7.5 % (docs/decisions/022).

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from ci_perf.judging.candidates import Judgement
from ci_perf.model import metrics
from ci_perf.model.comparison import Code, Verdict


def reconcile(judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """Yield the judgements, those of the two clocks of a workload in the light of each other."""
    asked = list(judgements)
    by_clock = {(each.candidate.workload, each.candidate.metric.name): each for each in asked}
    for each in asked:
        clocks = (metrics.STEP_TIME, metrics.STEP_CPU)
        wall, cpu = (by_clock.get((each.candidate.workload, clock.name)) for clock in clocks)
        if wall and cpu and wall.candidate.limit.gate and cpu.candidate.limit.gate:
            yield {id(wall): _clear_wall(wall, cpu), id(cpu): _fail_cpu(cpu, wall)}.get(
                id(each), each
            )
        else:
            yield each


def _clear_wall(wall: Judgement, cpu: Judgement) -> Judgement:
    """Let CPU time clear a step whose wall is too noisy for an answer."""
    if wall.change is None or cpu.change is None or wall.candidate.limit.require:
        return wall
    is_calm = cpu.change.verdict is Verdict.UNCHANGED
    # Other packages may wait longer, which no pair shows; of a likely gain nothing is to be said.
    is_noisy = wall.change.code not in {Code.OTHER_PACKAGES, Code.HISTORY_ALONE}
    if not (is_calm and is_noisy and wall.change.verdict is Verdict.INCONCLUSIVE):
        return wall
    change = msgspec.structs.replace(wall.change, gate=False, code=Code.CPU_TIME)
    remedy = wall.change.remedy
    is_too_noisy = remedy is not None and remedy.pairs is None
    return replace(wall, change=change, is_open=wall.is_open and not is_too_noisy)


def _fail_cpu(cpu: Judgement, wall: Judgement) -> Judgement:
    """Let CPU time fail a step only where the wall does not contradict it.

    More of it is no loss where more processes and threads share the work.
    """
    if cpu.change is None or wall.change is None:
        return cpu
    is_decided = wall.change.verdict in {Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.REGRESSED}
    interval = wall.change.interval
    excludes_loss = interval is not None and interval.high - 1 < wall.change.limit
    is_silent = is_decided or excludes_loss or cpu.candidate.has_other_tasks
    if not is_silent or cpu.change.verdict is Verdict.UNCHANGED:
        return cpu
    is_loss = (
        cpu.change.verdict is Verdict.REGRESSED and wall.change.verdict is not Verdict.REGRESSED
    )
    code = Code.CPU_TIME if is_loss else cpu.change.code
    change = msgspec.structs.replace(cpu.change, gate=False, code=code)
    return replace(cpu, change=change, is_open=cpu.is_open and not is_decided)

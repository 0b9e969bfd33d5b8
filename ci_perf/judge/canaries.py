"""Whether the machine has moved: fixed programs took another time than they did for the base.

A gate, never a correction: dividing by a canary would only add its noise to the workload's.
"""

import statistics
from collections.abc import Iterable, Sequence

from ci_perf.judge import stages
from ci_perf.model.metrics import CANARY, Kind
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.summary import Numbers, Sitting, Subject
from ci_perf.model.validity import Canary, Reason, Status

CODE = stages.CANARY_MOVED
# It moved, and as the suite has it, that silences nothing.
CODE_WITHOUT_GATE = f"{CODE}_no_gate"
_DATE = len("2026-11-21")
# What a slower or faster machine shows in. What is counted, and memory, it does not touch.
MOVED_BY_THE_MACHINE = frozenset(
    {Kind.TIME, Kind.TAIL, Kind.ONE_OFF, Kind.COMPILE, Kind.SHARE, Kind.ENERGY}
)


def readings(canaries: Iterable[Canary]) -> Numbers:
    """Return the seconds of each canary of a run by "NAME POSITION", the median of each."""
    return _medians((f"{one.name} {one.position}", one.median_s) for one in canaries)


def medians(canaries: Iterable[Canary]) -> Numbers:
    """Return the median over its positions for each canary, by name: what a baseline keeps."""
    return _by_name(readings(canaries))


def judge(pairs: Sequence[tuple[Subject, Subject]], limits: Limits) -> tuple[Reason, ...]:
    """Say for which workloads the machine has moved between base and head, or under the head.

    One reason without a workload where all have met the same.
    """
    told: dict[tuple[str, str], list[str]] = {}
    for base, head in pairs:
        limit = limits.of(head.workload).get(CANARY)
        detail = _moves(base.sessions[-1], head.sessions[-1], limit) if limit else ""
        if limit and detail:
            code = CODE if limit.gate else CODE_WITHOUT_GATE
            told.setdefault((code, detail), []).append(head.workload)
    reasons: list[Reason] = []
    for (code, detail), workloads in told.items():
        met = [""] if len(workloads) == len(pairs) else workloads
        reasons += [_reason(code, detail, workload) for workload in met]
    return tuple(reasons)


def silenced(reasons: Iterable[Reason], workload: str, limit: Limit | None) -> frozenset[Kind]:
    """Return the kinds of numbers that cannot be told from a change of the machine."""
    if limit is None or not limit.gate:
        return frozenset()
    moved = any(one.code == CODE and one.workload in {"", workload} for one in reasons)
    return MOVED_BY_THE_MACHINE if moved else frozenset()


def _reason(code: str, detail: str, workload: str) -> Reason:
    return Reason(code=code, status=Status.DEGRADED, detail=detail, workload=workload)


def _moves(base: Sitting, head: Sitting, limit: Limit) -> str:
    """Spell what moved by more than the limit; empty when nothing did, or nobody looked."""
    before, after = _by_name(base.canaries), _by_name(head.canaries)
    first, last = (_at(head.canaries, position) for position in ("before", "after"))
    parts = (
        (_spell(before, after, limit), f"than in the session of {base.recorded_at[:_DATE]}"),
        (_spell(first, last, limit), "at the end of this run than at its beginning"),
    )
    return "; ".join(f"{moved} {when}" for moved, when in parts if moved)


def _spell(before: Numbers, after: Numbers, limit: Limit) -> str:
    ratios = {name: after[name] / before[name] for name in sorted(before.keys() & after.keys())}
    return ", ".join(
        f"{name} took {100 * abs(r - 1):.1f} % {'more' if r > 1 else 'less'} time"
        for name, r in ratios.items()
        if max(r, 1 / r) - 1 > limit.relative
    )


def _by_name(canaries: Numbers) -> Numbers:
    """Reduce readings to one per canary: its name holds no space, a position stands after one."""
    return _medians((key.partition(" ")[0], seconds) for key, seconds in canaries.items())


def _at(canaries: Numbers, position: str) -> Numbers:
    found = ((key.partition(" "), seconds) for key, seconds in canaries.items())
    return {name: seconds for (name, _, where), seconds in found if where == position}


def _medians(readings: Iterable[tuple[str, float]]) -> Numbers:
    found: dict[str, list[float]] = {}
    for key, seconds in readings:
        found.setdefault(key, []).append(seconds)
    return {key: statistics.median(all_) for key, all_ in found.items()}

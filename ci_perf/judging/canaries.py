"""Whether the machine has changed speed: canaries, fixed programs, take another time than before.

Canaries gate and never correct: to divide by one would add its noise to the workload's.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.judging import distributions, nodes, variability
from ci_perf.judging.variability import UNKNOWN, Variance
from ci_perf.model.metrics import CANARY, Kind
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.summary import Numbers, SessionNumbers, Subject
from ci_perf.model.validity import Canary, Doubt, Reason

_DATE = len("2026-11-21")
# The chance that a machine which is as it always was counts as moved: over all canaries of a run,
# each compared with its history and at the end with the beginning. Then the screen is off for
# nothing, which costs pairs and makes no wrong verdict.
ALPHA = 0.05
# For how many observations the limit of the suite counts beside those of the history, as in the
# screen.
_ASSUMED_DF = 4.0


def readings(canaries: Iterable[Canary]) -> Numbers:
    """Return the seconds of each canary of a run by "NAME POSITION", the median of each."""
    return _medians((f"{canary.name} {canary.position}", canary.median_s) for canary in canaries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """How far a canary lies from where it was, and how far it may: natural logarithms."""

    name: str
    size: float
    most: float

    @property
    def is_beyond(self) -> bool:
        """Whether that is more than the history, and the limit, allow."""
        return abs(self.size) > self.most


def judge(pairs: Sequence[tuple[Subject, Subject]], limits: Limits) -> tuple[Reason, ...]:
    """Say for which workloads the machine has moved between base and head, or under the head.

    One reason without a workload where all have met the same.
    """
    told: dict[tuple[Doubt, str], list[str]] = {}
    for base, head in pairs:
        limit = limits.of(head.workload).get(CANARY)
        detail = _describe_moved(base.sessions, head.sessions[-1], limit) if limit else ""
        if limit and detail:
            doubt = Doubt.MACHINE_MOVED if limit.gate else Doubt.MACHINE_MOVED_NO_GATE
            told.setdefault((doubt, detail), []).append(head.workload)
    reasons: list[Reason] = []
    for (doubt, detail), workloads in told.items():
        met = [""] if len(workloads) == len(pairs) else workloads
        reasons += [doubt.reason(detail, workload) for workload in met]
    return tuple(reasons)


def find_silenced_kinds(
    reasons: Iterable[Reason], workload: str, limit: Limit | None
) -> frozenset[Kind]:
    """Return the kinds of numbers that cannot be told from a change of the machine."""
    if limit is None or not limit.gate:
        return frozenset()
    moved = any(each.doubt is Doubt.MACHINE_MOVED and each.concerns(workload) for each in reasons)
    return nodes.BY_MACHINE if moved else frozenset()


def from_history(history: Sequence[Numbers], head: Numbers, limit: Limit) -> list[Move]:
    """Compare the head's canaries with the mean of those of the history; by name.

    Each side holds seconds by "NAME", or by "NAME POSITION". A difference may be as large as that
    of one more session of this history, and always as large as `limit`.
    """
    after = _logs(_by_name(head))
    sessions = [_logs(_by_name(session)) for session in history]
    moves = []
    for name in sorted(after.keys() & set().union(*sessions)):
        known = [session[name] for session in sessions if name in session]
        moves.append(
            Move(
                name=name,
                size=after[name] - statistics.fmean(known),
                most=_most(limit, _estimate_difference_variance(known), len(after)),
            )
        )
    return moves


def within(history: Sequence[Numbers], head: Numbers, limit: Limit) -> list[Move]:
    """Compare the head's canaries at its end with those at its beginning; by name.

    They may move as far as they did within the sessions of the history, and always as far as
    `limit`.
    """
    climbs = _climb(head)
    known = [_climb(session) for session in history]
    moves = []
    for name in sorted(climbs):
        squares = [session[name] ** 2 for session in known if name in session]
        variance = Variance(statistics.fmean(squares), len(squares)) if squares else UNKNOWN
        moves.append(Move(name=name, size=climbs[name], most=_most(limit, variance, len(climbs))))
    return moves


def _estimate_difference_variance(known: Sequence[float]) -> Variance:
    """Return the variance of one more session's difference from the mean of the known ones."""
    df = len(known) - 1
    if df == 0:
        return UNKNOWN
    return Variance(distributions.sum_of_squares(known) / df * (1 + 1 / len(known)), df)


def _most(limit: Limit, known: Variance, names: int) -> float:
    """Return how far one of so many canaries may move: as its history says, at least `limit`.

    Where there is no history, `limit` is a quantile of the spread that it assumes.
    """
    tail = ALPHA / 2 / 2 / names  # a move has two directions, and there are two comparisons
    fixed = math.log1p(limit.relative)
    assumed = Variance(
        (fixed / distributions.student_quantile(tail, _ASSUMED_DF)) ** 2, _ASSUMED_DF
    )
    spread = variability.moderate(known, assumed)
    return max(fixed, distributions.student_quantile(tail, spread.df) * math.sqrt(spread.value))


def _describe_moved(base: Sequence[SessionNumbers], head: SessionNumbers, limit: Limit) -> str:
    """Describe the canaries that moved by more than they may; empty where there is none.

    Nodes differ without any of them having moved: where other nodes clear nothing, nothing is said.
    """
    chosen = nodes.sessions_for(base, head.node)
    before = () if chosen.obstacle else chosen.sessions
    history = [session.canaries for session in before]
    parts = (
        (f"against {_sessions(before)}", from_history(history, head.canaries, limit)),
        ("from the beginning of this run to its end", within(history, head.canaries, limit)),
    )
    told = ((when, _spell(moves)) for when, moves in parts)
    return "; ".join(f"{when}: {moved}" for when, moved in told if moved)


def _sessions(base: Sequence[SessionNumbers]) -> str:
    with_canaries = [session for session in base if session.canaries]
    since = with_canaries[0].recorded_at[:_DATE] if with_canaries else ""
    if len(with_canaries) == 1:
        return f"the session of {since}"
    return f"the {len(with_canaries)} sessions since {since}"


def _spell(moves: Iterable[Move]) -> str:
    return ", ".join(
        f"{move.name} {_percent(move.size)} (limit {_percent(math.copysign(move.most, move.size))})"
        for move in moves
        if move.is_beyond
    )


def _percent(size: float) -> str:
    """Format a logarithm as the share of time that a program took more, or less."""
    return f"{100 * math.expm1(size):+.1f} %"


def _logs(seconds: Mapping[str, float]) -> Numbers:
    return {name: math.log(value) for name, value in seconds.items()}


def _climb(canaries: Numbers) -> Numbers:
    """Return how far each canary rose from the beginning of a run to its end, as a logarithm."""
    first, last = (_logs(_at(canaries, position)) for position in ("before", "after"))
    return {name: last[name] - first[name] for name in first.keys() & last.keys()}


def _by_name(canaries: Numbers) -> Numbers:
    """Reduce readings to one per canary: its name holds no space, a position stands after one."""
    return _medians((key.partition(" ")[0], seconds) for key, seconds in canaries.items())


def _at(canaries: Numbers, position: str) -> Numbers:
    keys = ((key.partition(" "), seconds) for key, seconds in canaries.items())
    return {name: seconds for (name, _, where), seconds in keys if where == position}


def _medians(readings: Iterable[tuple[str, float]]) -> Numbers:
    by_key: dict[str, list[float]] = {}
    for key, seconds in readings:
        by_key.setdefault(key, []).append(seconds)
    return {key: statistics.median(all_) for key, all_ in by_key.items()}

"""Candidates in, changes out: noisy metrics by screen and pairs, all others by ranges."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.judge import decide, verdicts
from ci_perf.judge.candidates import Candidate
from ci_perf.judge.confirm import Needs
from ci_perf.judge.decide import Decision
from ci_perf.judge.policy import PAIRS_FOR_RANGES, PREDICTING_SESSIONS, Policy
from ci_perf.model.comparison import Change, Interval, Remedy, Stale, Verdict
from ci_perf.model.metrics import Kind
from ci_perf.model.summary import Subject

BASE_FAILED, ACCEPTED = "base_failed", "accepted"
# Compared by ranges for want of an interval, and noisy all the same: no proof without pairs.
_NOISY_RANGES = frozenset({Kind.COMPILE, Kind.SHARE})
_LARGEST = 700.0  # exp(709) is the largest float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of a question; no change while there is nothing to compare with.

    A suspect is what its history does not clear. ``is_open``: one more pair may still decide.
    """

    question: Candidate
    change: Change | None
    is_suspect: bool
    is_open: bool


def judge(questions: Sequence[Candidate], *, suspects: int = 0) -> list[Judgement]:
    """Answer everything that is asked of a run, noisy metrics together; any order.

    ``suspects`` is how many noisy ones shared alpha when pairs began to be launched.
    """
    noisy = [question for question in questions if question.is_noisy]
    decisions = decide.decide([question.candidate() for question in noisy], suspects=suspects)
    exact = [question for question in questions if not question.is_noisy]
    return [
        *(_of_noisy(*found) for found in zip(noisy, decisions, strict=True)),
        *map(_of_ranges, exact),
    ]


def count_suspects(questions: Sequence[Candidate]) -> int:
    """Count what will share alpha: noisy metrics that gate and that no history clears."""
    asked = (one for one in questions if one.is_noisy and not one.is_accepted)
    return decide.count_suspects([one.candidate() for one in asked])


# --- noisy metrics


def _of_noisy(question: Candidate, decision: Decision) -> Judgement:
    return Judgement(
        question=question,
        change=_of_question(question, decision) if decision.base else None,
        is_suspect=decision.is_suspect,
        is_open=decision.is_open and question.limit.gate and not question.is_absent_from_pairs,
    )


def _of_question(question: Candidate, decision: Decision) -> Change:
    subject = question.subject
    change = change_of_noisy(
        decision,
        question.candidate().policy,
        workload=subject.workload,
        metric=question.metric.name,
        shown=question.shown,
        items_per_step=subject.items_per_step,
        item_unit=subject.item_unit,
        gate=question.limit.gate,
    )
    return _as_accepted(question, _with_note(change, subject, is_suspect=decision.is_suspect))


def _as_accepted(question: Candidate, change: Change) -> Change:
    """Leave in peace what this change has accepted: its new epoch is too young to clear anybody."""
    if not question.is_accepted or change.verdict is not Verdict.INCONCLUSIVE:
        return change
    return msgspec.structs.replace(change, verdict=Verdict.UNCHANGED, code=ACCEPTED)


def change_of_noisy(
    decision: Decision,
    policy: Policy,
    *,
    workload: str,
    metric: str,
    shown: Callable[[float], float],
    items_per_step: float = 1.0,
    item_unit: str = "step",
    gate: bool = True,
) -> Change:
    """Turn a decision, in logarithms, into the row of a comparison.

    `shown` turns the logarithm of a cost into a value of the metric.
    """
    by_pairs = decision.pairs > 0
    return Change(
        workload=workload,
        metric=metric,
        base=shown(decision.level),
        head=shown(decision.level + decision.estimate),
        base_processes=sum(map(len, decision.base)),
        head_processes=len(decision.head),
        base_sessions=0 if by_pairs else len(decision.base),
        items_per_step=items_per_step,
        item_unit=item_unit,
        ratio=_exp(decision.estimate),
        interval=_interval(decision),
        limit=math.expm1(policy.floor),
        margin=math.expm1(policy.margin),
        smallest_detectable=_size(decision.smallest_detectable),
        gate=gate,
        verdict=decision.verdict,
        code=decision.code,
        pairs=decision.pairs,
        drift=None if decision.drift is None else _exp(decision.drift),
        tick=float(f"{math.expm1(decision.tick):.6g}") or None,
        remedy=_remedy(decision.needs) if decision.needs else None,
    )


def _interval(decision: Decision) -> Interval | None:
    if decision.interval is None:
        return None
    low, high = decision.interval
    return Interval(low=_exp(low), high=_exp(high))


def _remedy(needs: Needs) -> Remedy:
    return Remedy(
        pairs=needs.pairs,
        spread=math.expm1(min(needs.spread, _LARGEST)),
        quiet_spread=math.expm1(min(needs.quiet_spread, _LARGEST)),
        margin=math.expm1(min(needs.margin, _LARGEST)),
    )


def _size(logarithm: float | None) -> float | None:
    return None if logarithm is None else _exp(logarithm) - 1


def _exp(logarithm: float) -> float:
    """Stay finite: of launches that differ a billionfold nothing more has to be said."""
    return math.exp(min(logarithm, _LARGEST))


# --- metrics that are judged by ranges


def _of_ranges(question: Candidate) -> Judgement:
    history = question.history.current if question.history else None
    by_history = _ruled(question, history, question.head) if history else None
    is_cleared = (
        by_history is not None and by_history.verdict is Verdict.UNCHANGED and question.clears
    )
    pairs = question.pairs
    if pairs and not is_cleared:
        change: Change | None = _by_pairs(question, by_history)
    elif by_history is not None:
        change = _by_history(question, by_history)
    else:
        change = None
    is_open = not is_cleared and len(pairs) < PAIRS_FOR_RANGES and question.limit.gate
    is_open = is_open and not question.is_absent_from_pairs
    return Judgement(question=question, change=change, is_suspect=not is_cleared, is_open=is_open)


def _by_pairs(question: Candidate, by_history: Change | None) -> Change:
    """Let the pairs decide: both sides met the same machine and the same software."""
    pairs = question.pairs
    found = _ruled(question, [[base for base, _ in pairs]], [head for _, head in pairs])
    if question.metric.kind in _NOISY_RANGES and len(pairs) < PAIRS_FOR_RANGES:
        found = msgspec.structs.replace(
            found, verdict=Verdict.INCONCLUSIVE, code=decide.TOO_FEW_PAIRS
        )
    was_cleared = found.verdict is Verdict.UNCHANGED and by_history is not None
    code = decide.NOT_CONFIRMED if was_cleared else found.code
    drift = by_history.ratio if by_history else None
    change = msgspec.structs.replace(
        found, code=code, drift=drift, pairs=len(pairs), base_sessions=0
    )
    return _with_note(change, question.subject, is_suspect=True)


def _by_history(question: Candidate, found: Change) -> Change:
    """Say no more of what is noisy than its history allows."""
    if not question.clears:
        found = msgspec.structs.replace(
            found, verdict=Verdict.INCONCLUSIVE, code=decide.CANARY_MOVED
        )
    elif question.metric.kind in _NOISY_RANGES and found.code == verdicts.BEYOND:
        is_short = found.base_sessions < PREDICTING_SESSIONS
        code = decide.ASSUMED if is_short else decide.PREDICTED
        found = msgspec.structs.replace(found, verdict=Verdict.UNCONFIRMED, code=code)
    is_suspect = found.verdict is not Verdict.UNCHANGED
    return _with_note(found, question.subject, is_suspect=is_suspect)


def _ruled(question: Candidate, base: Sequence[Sequence[float]], head: Sequence[float]) -> Change:
    ruling = verdicts.rule(question.metric, question.limit, base, head)
    return Change(
        workload=question.subject.workload,
        metric=question.metric.name,
        base=ruling.base,
        head=ruling.head,
        base_processes=sum(map(len, base)),
        head_processes=len(head),
        base_sessions=len(base),
        items_per_step=question.subject.items_per_step,
        item_unit=question.subject.item_unit,
        ratio=ruling.ratio,
        interval=None,
        limit=ruling.limit,
        margin=ruling.limit,
        smallest_detectable=ruling.limit,
        gate=question.limit.gate,
        verdict=ruling.verdict,
        code=ruling.code,
    )


# --- what the turns of base and head have to tell


def _with_note(change: Change, subject: Subject, *, is_suspect: bool) -> Change:
    """Say what was special about launching the base, where that mattered."""
    turns = subject.turns
    if turns is None or not is_suspect:
        return change
    if turns.trouble and change.verdict in {Verdict.INCONCLUSIVE, Verdict.UNCONFIRMED}:
        code = BASE_FAILED if change.verdict is Verdict.INCONCLUSIVE else change.code
        return msgspec.structs.replace(change, code=code, note=turns.trouble)
    return msgspec.structs.replace(change, own_file=turns.own_file and change.pairs > 0)


# --- what the judgements say together


def open_workloads(answers: Sequence[Judgement]) -> tuple[str, ...]:
    """Name the workloads of which another pair may decide something, each once, worst first.

    The worst one lies furthest beyond its margin, in multiples of it.
    """
    sizes: dict[str, float] = {}
    for judgement in answers:
        if judgement.is_open:
            name = judgement.question.subject.workload
            sizes[name] = max(_size_in_margins(judgement), sizes.get(name, -math.inf))
    return tuple(sorted(sizes, key=lambda name: sizes[name], reverse=True))


def _size_in_margins(judgement: Judgement) -> float:
    """Return how much worse it is: 0 where nothing is known, or where ranges have answered."""
    change = judgement.change
    if change is None or change.ratio is None or not judgement.question.is_noisy:
        return 0.0
    return (change.ratio - 1) / change.margin


# One cleared suspect of several is a coincidence; more than a third of them, all moved in one
# direction, is a baseline that no longer describes this machine.
_FEWEST_CLEARED = 2
_SHARE_OF_SUSPECTS = 1 / 3


def find_stale(answers: Sequence[Judgement]) -> Stale | None:
    """Say when so many suspects were cleared that the baseline should be refreshed."""
    suspects = [one.change for one in answers if one.is_suspect and one.change and one.change.gate]
    drifts = [
        math.log(change.drift)
        for change in suspects
        if change.code == decide.NOT_CONFIRMED and change.drift
    ]
    worse = [drift for drift in drifts if drift > 0]
    better = [drift for drift in drifts if drift < 0]
    moved = max(worse, better, key=len)
    is_coincidence = len(moved) < min(_FEWEST_CLEARED, len(suspects))
    if not moved or is_coincidence or len(moved) <= _SHARE_OF_SUSPECTS * len(suspects):
        return None
    return Stale(
        suspects=len(suspects), cleared=len(moved), ratio=math.exp(statistics.median(moved))
    )

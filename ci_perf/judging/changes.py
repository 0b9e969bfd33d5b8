"""Candidates in, changes out: noisy metrics by screen and pairs, all others by ranges."""

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec

from ci_perf.judging import decide, metric_values, rules, signs
from ci_perf.judging.candidates import Candidate, Fact, Judgement, choose
from ci_perf.judging.metric_values import Sessions
from ci_perf.judging.policy import EARLY_PAIRS, PAIRS_FOR_RANGES
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Verdict
from ci_perf.model.metrics import Better, Kind


def note_more_work(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Mark the step times of each workload of which a count has grown: it does more work."""
    asked = list(candidates)
    counts = [each for each in asked if each.metric.kind is Kind.COUNT]
    by_history = {
        each.workload
        for each in counts
        if each.history and each.head and _has_grown(each, each.history.current, each.head)
    }
    by_pairs = {
        each.workload
        for each in counts
        if len(each.pairs) >= EARLY_PAIRS
        and _has_grown(
            each,
            [[base for base, _ in each.pairs[:EARLY_PAIRS]]],
            [head for _, head in each.pairs[:EARLY_PAIRS]],
        )
    }
    return [
        msgspec.structs.replace(
            each,
            facts=each.facts
            | choose(
                {
                    Fact.DOES_MORE: each.workload in by_history and Fact.ACCEPTED not in each.facts,
                    Fact.COUNTS_MORE: each.workload in by_pairs,
                }
            ),
        )
        if each.metric.name in signs.SLOWED
        else each
        for each in asked
    ]


def _has_grown(count: Candidate, base: Sessions, head: Sequence[float]) -> bool:
    return _compare_sides(count, base, head)[0] is Verdict.REGRESSED


def judge(
    candidates: Sequence[Candidate],
    *,
    suspects: int = 0,
    check: int | None = None,
    sharing: int = 0,
) -> list[Judgement]:
    """Judge all candidates of a run, noisy metrics together; in any order.

    ``suspects`` is how many noisy ones shared alpha when pairs began to be launched, ``check`` the
    number of this check among those of its pull request, ``sharing`` as `decide` has it.
    """
    noisy = [candidate for candidate in candidates if candidate.is_noisy]
    timed = [candidate.as_costs() for candidate in noisy]
    judged = decide.decide(timed, suspects=suspects, check=check, sharing=sharing)
    if any(map(rules.find_unfitness, noisy)):
        by_history = decide.decide([msgspec.structs.replace(each, pairs=()) for each in timed])
        judged = [
            msgspec.structs.replace(each, past=past.change)
            for each, past in zip(judged, by_history, strict=True)
        ]
    by_ranges = [_judge_ranges(candidate) for candidate in candidates if not candidate.is_noisy]
    return rules.judge([*judged, *by_ranges])


def count_suspects(candidates: Sequence[Candidate]) -> int:
    """Count what will share alpha: noisy metrics that gate and that no history clears."""
    return decide.count_suspects(
        [
            candidate.as_costs()
            for candidate in candidates
            if candidate.is_noisy and Fact.ACCEPTED not in candidate.facts
        ]
    )


# --- metrics that are judged by ranges


def _judge_ranges(candidate: Candidate) -> Judgement:
    history = candidate.history.current if candidate.history and candidate.head else None
    by_history = compare_ranges(candidate, history, candidate.head) if history else None
    is_cleared = (
        by_history is not None
        and by_history.verdict is Verdict.UNCHANGED
        and not candidate.obstacle
    )
    is_by_pairs = bool(candidate.pairs) and not is_cleared
    change = _compare_pairs(candidate, by_history) if is_by_pairs else by_history
    is_profiled = candidate.metric in metrics.OF_PROFILE
    enough = metrics.PROFILED_LAUNCHES if is_profiled else PAIRS_FOR_RANGES
    needs_pairs = not is_cleared and len(candidate.pairs) < enough
    return Judgement(
        candidate=candidate,
        change=change,
        is_open=needs_pairs and candidate.may_get_pairs,
        expected_pairs=float(enough - len(candidate.pairs)),
        past=by_history if is_by_pairs else None,
    )


def _compare_pairs(candidate: Candidate, by_history: Change | None) -> Change:
    """Compare the ranges of the pairs: both sides met the same machine and the same software."""
    pairs = candidate.pairs
    change = compare_ranges(candidate, [[base for base, _ in pairs]], [head for _, head in pairs])
    return msgspec.structs.replace(
        change,
        drift=by_history.ratio if by_history else None,
        pairs=len(pairs),
        earlier_pairs=sum(candidate.earlier),
        base_sessions=0,
    )


def compare_ranges(candidate: Candidate, base: Sessions, head: Sequence[float]) -> Change:
    """Compare ranges with a tolerance; every side has at least one value."""
    limit, kind = candidate.limit, candidate.metric.kind
    verdict, code, tolerance = _compare_sides(candidate, base, head)
    before = list(itertools.chain(*base))
    low, high = metric_values.centre(kind, [before]), metric_values.centre(kind, [head])
    size = tolerance / low if low else 0.0
    over, under = (low, high) if candidate.metric.better is Better.HIGHER else (high, low)
    return Change(
        workload=candidate.workload,
        metric=candidate.metric.name,
        base=low,
        head=high,
        base_processes=len(before),
        head_processes=len(head),
        base_sessions=len(base),
        items_per_step=candidate.items_per_step,
        item_unit=candidate.item_unit,
        ratio=over / under if under else None,
        interval=None,
        limit=size,
        smallest_detectable=size,
        gate=limit.gate,
        require=limit.require,
        verdict=verdict,
        code=code,
    )


def _compare_sides(
    candidate: Candidate, base: Sessions, head: Sequence[float]
) -> tuple[Verdict, Code, float]:
    """Return what the ranges say, and by how much they may differ."""
    before = list(itertools.chain(*base))
    tolerance = max(candidate.limit.relative * max(before), candidate.limit.absolute)
    worse, better = Verdict.REGRESSED, Verdict.IMPROVED
    if candidate.metric.better is Better.HIGHER:
        worse, better = better, worse
    if min(head) > max(before) + tolerance:
        return worse, Code.BEYOND_LIMIT, tolerance
    if max(head) < min(before) - tolerance:
        return better, Code.BEYOND_LIMIT, tolerance
    if max(head) <= max(before) + tolerance and min(head) >= min(before) - tolerance:
        return Verdict.UNCHANGED, Code.WITHIN_LIMIT, tolerance
    return Verdict.INCONCLUSIVE, Code.RANGES_OVERLAP, tolerance


# --- what the judgements say together


def open_workloads(judgements: Sequence[Judgement]) -> dict[str, float]:
    """Return the workloads of which another pair may decide something, worst first.

    The worst one lies furthest beyond its limit, in multiples of it. With each stands how many
    pairs more are expected to decide all of its metrics.
    """
    sizes: dict[str, float] = {}
    pairs: dict[str, float] = {}
    for judgement in judgements:
        if judgement.is_open:
            name, change = judgement.candidate.workload, judgement.change
            size = 0.0  # where nothing is known, or ranges have answered
            if change and change.ratio is not None and judgement.candidate.is_noisy:
                size = (change.ratio - 1) / change.limit
            sizes[name] = max(size, sizes.get(name, -math.inf))
            pairs[name] = max(judgement.expected_pairs, pairs.get(name, 0.0))
    return {name: pairs[name] for name in sorted(sizes, key=lambda n: sizes[n], reverse=True)}

"""Candidates in, changes out: noisy metrics by screen and pairs, all others by ranges."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from ci_perf.judging import clocks, decide, metric_values, signs
from ci_perf.judging.candidates import Candidate, Judgement
from ci_perf.judging.metric_values import Sessions
from ci_perf.judging.policy import EARLY_PAIRS, PAIRS_FOR_RANGES
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Verdict
from ci_perf.model.metrics import Better, Kind, Metric

# Compared by ranges for want of an interval, and noisy all the same: no proof without pairs.
_NOISY_RANGES = frozenset({Kind.COMPILE, Kind.SHARE})
# A single launch of the head may have the rare mode by chance.
_FEWEST_ALONE = 2
# Codes of what pairs show, and not the history.
_BY_PAIRS = frozenset({Code.BEYOND_LIMIT, Code.TOO_FEW_PAIRS, Code.SPREAD, Code.TWO_MODES})
_UNPROVEN = frozenset({Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER})


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
        replace(
            each,
            does_more=each.workload in by_history and not each.is_accepted,
            has_more_counts=each.workload in by_pairs,
        )
        if each.metric.name in signs.SLOWED
        else each
        for each in asked
    ]


def _has_grown(count: Candidate, base: Sessions, head: Sequence[float]) -> bool:
    return compare_ranges(count, base, head).verdict is Verdict.REGRESSED


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
    judged = by_history = decide.decide(timed, suspects=suspects, check=check, sharing=sharing)
    if any(map(_find_unfitness, noisy)):
        without_pairs = [replace(each, pairs=(), earlier=(), said=None) for each in timed]
        by_history = decide.decide(without_pairs)
    judgements = [
        *map(_judge_noisy, noisy, judged, by_history),
        *(_judge_ranges(candidate) for candidate in candidates if not candidate.is_noisy),
    ]
    proven = (_excuse_new_processes(_as_proven(judgement)) for judgement in judgements)
    return list(clocks.reconcile(proven))


def _excuse_new_processes(judgement: Judgement) -> Judgement:
    """Let memory only warn where new processes explain all of its growth: they share the work."""
    candidate, change = judgement.candidate, judgement.change
    is_of_tree = candidate.metric == metrics.HOST_RSS_PEAK and candidate.fits_new_processes
    if change is None or not is_of_tree or change.code not in _BY_PAIRS:
        return judgement
    is_loss = change.verdict in {Verdict.REGRESSED, Verdict.LIKELY_SLOWER}
    if not is_loss and change.verdict is not Verdict.INCONCLUSIVE:
        return judgement
    code = Code.NEW_PROCESSES if is_loss else change.code
    excused = msgspec.structs.replace(change, gate=False, code=code)
    return replace(judgement, change=excused, is_open=False)


def _as_proven(judgement: Judgement) -> Judgement:
    """Let what an earlier run of the same commits has proven stand, until all pairs clear it."""
    candidate, change = judgement.candidate, judgement.change
    if change is None or candidate.said not in {Verdict.REGRESSED, Verdict.IMPROVED}:
        return judgement
    is_cleared = change.verdict is Verdict.UNCHANGED and change.pairs > sum(candidate.earlier)
    if is_cleared or change.verdict in {Verdict.REGRESSED, Verdict.IMPROVED}:
        return judgement
    proven = msgspec.structs.replace(change, verdict=candidate.said, code=Code.BEYOND_LIMIT)
    return replace(judgement, change=msgspec.structs.replace(proven, remedy=None))


def count_suspects(candidates: Sequence[Candidate]) -> int:
    """Count what will share alpha: noisy metrics that gate and that no history clears."""
    return decide.count_suspects(
        [
            candidate.as_costs()
            for candidate in candidates
            if candidate.is_noisy and not candidate.is_accepted
        ]
    )


# --- noisy metrics


def _judge_noisy(candidate: Candidate, judged: Judgement, by_history: Judgement) -> Judgement:
    """Return the judgement of costs as one of values, noted, accepted, and as pairs are fit."""
    change, past = _as_accepted(candidate, judged), _as_accepted(candidate, by_history)
    if change:
        change = _judge_unfit_pairs(change, past, _find_unfitness(candidate))
    return replace(judged, candidate=candidate, change=change)


def _as_accepted(candidate: Candidate, judged: Judgement) -> Change | None:
    """Let an accepted change pass: its new epoch is too young to clear anything.

    Not a head far from it that nobody has compared, because the machine has moved, for example.
    """
    if judged.change is None:
        return None
    change = _with_note(candidate, judged.change, is_suspect=judged.is_suspect)
    is_open = change.verdict is Verdict.INCONCLUSIVE and change.code is not Code.HISTORY_ALONE
    if not (candidate.is_accepted and is_open):
        return change
    low, high = (change.interval.low, change.interval.high) if change.interval else (1.0, 1.0)
    is_moved = max(low, 1 / high) - 1 > change.limit / 2
    if is_moved or (candidate.obstacle and signs.is_far(change)):
        return change
    return msgspec.structs.replace(change, verdict=Verdict.UNCHANGED, code=Code.ACCEPTED)


# --- metrics that are judged by ranges


def _judge_ranges(candidate: Candidate) -> Judgement:
    history = candidate.history.current if candidate.history and candidate.head else None
    by_history = compare_ranges(candidate, history, candidate.head) if history else None
    is_cleared = (
        by_history is not None
        and by_history.verdict is Verdict.UNCHANGED
        and not candidate.obstacle
    )
    if candidate.pairs and not is_cleared:
        change: Change | None = _by_pairs(candidate, by_history)
    elif by_history is not None:
        change = _by_history(candidate, by_history)
    else:
        change = None
    is_profiled = candidate.metric in metrics.OF_PROFILE
    enough = metrics.PROFILED_LAUNCHES if is_profiled else PAIRS_FOR_RANGES
    needs_pairs = not is_cleared and len(candidate.pairs) < enough
    return Judgement(
        candidate=candidate,
        change=change,
        is_open=needs_pairs and candidate.may_get_pairs,
        expected_pairs=float(enough - len(candidate.pairs)),
    )


def _by_pairs(candidate: Candidate, by_history: Change | None) -> Change:
    """Let the pairs decide: both sides met the same machine and the same software."""
    pairs = candidate.pairs
    change = compare_ranges(candidate, [[base for base, _ in pairs]], [head for _, head in pairs])
    verdict, code = change.verdict, change.code
    if candidate.metric.kind in _NOISY_RANGES and len(pairs) < PAIRS_FOR_RANGES:
        verdict, code = Verdict.INCONCLUSIVE, Code.TOO_FEW_PAIRS
    elif verdict is Verdict.UNCHANGED and by_history is not None:
        code = Code.BASELINE_MOVED
    change = msgspec.structs.replace(
        change,
        verdict=verdict,
        code=code,
        drift=by_history.ratio if by_history else None,
        pairs=len(pairs),
        earlier_pairs=sum(candidate.earlier),
        base_sessions=0,
    )
    change = _with_note(candidate, change, is_suspect=True)
    return _judge_unfit_pairs(change, by_history, _find_unfitness(candidate))


def _by_history(candidate: Candidate, change: Change) -> Change:
    """Take back what the history cannot prove: of a noisy metric, or on a machine that moved."""
    verdict, code = change.verdict, change.code
    if candidate.obstacle:
        verdict, code = Verdict.INCONCLUSIVE, candidate.obstacle
    elif candidate.metric.kind in _NOISY_RANGES and code is Code.BEYOND_LIMIT:
        is_loss = verdict is Verdict.REGRESSED
        verdict = Verdict.LIKELY_SLOWER if is_loss else Verdict.INCONCLUSIVE
        code = Code.HISTORY_ALONE
    change = msgspec.structs.replace(change, verdict=verdict, code=code)
    return _with_note(candidate, change, is_suspect=verdict is not Verdict.UNCHANGED)


def compare_ranges(candidate: Candidate, base: Sessions, head: Sequence[float]) -> Change:
    """Compare ranges with a tolerance; every side has at least one value."""
    limit, kind = candidate.limit, candidate.metric.kind
    before = [value for session in base for value in session]
    tolerance = max(limit.relative * max(before), limit.absolute)
    is_more_better = candidate.metric.better is Better.HIGHER
    sign = -1 if is_more_better else 1
    verdict, code = _compare_two_ranges(
        [sign * value for value in before], [sign * value for value in head], tolerance
    )
    low, high = metric_values.centre(kind, [before]), metric_values.centre(kind, [head])
    size = tolerance / low if low else 0.0
    over, under = (low, high) if is_more_better else (high, low)
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


def _compare_two_ranges(
    base: Sequence[float], head: Sequence[float], tolerance: float
) -> tuple[Verdict, Code]:
    if min(head) > max(base) + tolerance:
        return Verdict.REGRESSED, Code.BEYOND_LIMIT
    if max(head) < min(base) - tolerance:
        return Verdict.IMPROVED, Code.BEYOND_LIMIT
    if max(head) <= max(base) + tolerance and min(head) >= min(base) - tolerance:
        return Verdict.UNCHANGED, Code.WITHIN_LIMIT
    return Verdict.INCONCLUSIVE, Code.RANGES_OVERLAP


# --- what is known of launching the base


def _with_note(candidate: Candidate, change: Change, *, is_suspect: bool) -> Change:
    """Note on the change that the base could not be launched, or ran a file of its own."""
    paired = candidate.paired
    if paired is None or not is_suspect:
        return change
    if paired.failure and change.verdict in _UNPROVEN:
        is_by_history = change.code is Code.HISTORY_ALONE
        code = change.code if is_by_history else Code.BASE_FAILED
        return msgspec.structs.replace(change, code=code, note=paired.failure)
    return msgspec.structs.replace(change, own_file=paired.own_file and change.pairs > 0)


# --- pairs that may clear nothing which the history shows


def _find_unfitness(candidate: Candidate) -> Code | None:
    """Return the reason code why pairs may clear nothing that is worse than its history.

    Both sides were given the packages that this change has brought, or every launch of the head by
    itself took more memory than any in the pairs: it has two modes, and they show the other one.
    """
    if not candidate.pairs:
        return None
    if candidate.has_other_packages:
        return Code.OTHER_PACKAGES
    if candidate.metric.kind is not Kind.HOST_MEMORY or len(candidate.head) < _FEWEST_ALONE:
        return None
    is_unlike = min(candidate.head) > max(map(max, candidate.pairs))
    return Code.WORSE_BY_HISTORY if is_unlike else None


def _judge_unfit_pairs(by_pairs: Change, by_history: Change | None, code: Code | None) -> Change:
    """Let the history speak where pairs are unfit to clear what it shows."""
    is_proven = by_pairs.verdict is Verdict.REGRESSED or not by_pairs.pairs
    if is_proven or by_history is None or code is None:
        return by_pairs
    if signs.is_far(by_history):
        verdict = Verdict.INCONCLUSIVE
        return msgspec.structs.replace(by_history, verdict=verdict, code=code, remedy=None)
    is_moved = by_pairs.verdict is Verdict.UNCHANGED and signs.has_drifted(by_pairs)
    if (is_moved or by_pairs.code is Code.BASELINE_MOVED) and code is Code.OTHER_PACKAGES:
        return msgspec.structs.replace(by_pairs, code=code)
    return by_pairs


# --- what the judgements say together


def open_metrics(judgements: Iterable[Judgement], workload: str) -> Iterator[Metric]:
    """Yield the metrics of a workload of which another pair may decide something."""
    for judgement in judgements:
        if judgement.is_open and judgement.candidate.workload == workload:
            yield judgement.candidate.metric


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

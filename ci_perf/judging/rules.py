"""Rules in order: the only place that changes a verdict, a gate or an exit code.

`decide` and `compare_ranges` say what the numbers of one metric show. Each rule of the lists below
then says something else where its condition holds; it reads what the rules before it have said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.judging.candidates import Candidate, Fact, Judgement
from ci_perf.judging.policy import KIND_OF, LOOKS, PAIRS_FOR_RANGES, PREDICTING_SESSIONS
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Numerics,
    Row,
    Signs,
    Uncompared,
    Verdict,
    worst,
)
from ci_perf.model.metrics import Kind
from ci_perf.model.process import has_filled_gpu
from ci_perf.model.suite import FailOn
from ci_perf.model.validity import Doubt, Validity, find_fatal

F = TypeVar("F")
R = TypeVar("R", Change, Numerics, Uncompared, Row)


def _never(_facts: object, _row: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Rule(Generic[F, R]):
    """What the fields of a row become where `when` holds, of facts and of the row so far.

    ``closes`` says when no pair more can decide such a row.
    """

    when: Callable[[F, R], bool]
    says: Mapping[str, object] | Callable[[F, R], Mapping[str, object]]
    closes: Callable[[F, R], bool] = _never


def _apply(rules: Iterable[Rule[F, R]], facts: F, row: R) -> tuple[R, bool]:
    """Return the row as the rules have it, and whether one of them has closed it."""
    is_closed = False
    for rule in rules:
        if rule.when(facts, row):
            is_closed = is_closed or rule.closes(facts, row)
            says = rule.says(facts, row) if callable(rule.says) else rule.says
            row = msgspec.structs.replace(row, **says)
    return row, is_closed


# --- a row by itself

# Compared by ranges for want of an interval, and noisy all the same: no proof without pairs.
_NOISY_RANGES = frozenset({Kind.COMPILE, Kind.SHARE})
# A single launch of the head may have the rare mode by chance.
_FEWEST_ALONE = 2
# Codes of what pairs show, and not the history.
_BY_PAIRS = frozenset({Code.BEYOND_LIMIT, Code.TOO_FEW_PAIRS, Code.SPREAD, Code.TWO_MODES})
_LOSSES = frozenset({Verdict.REGRESSED, Verdict.LIKELY_SLOWER})
_PROVEN = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})


def _is_by_ranges(of: Judgement, row: Change) -> bool:
    """Whether ranges without pairs have decided."""
    return not (of.candidate.is_noisy or row.pairs)


def _needs_more_pairs(of: Judgement, row: Change) -> bool:
    return of.candidate.metric.kind in _NOISY_RANGES and 0 < row.pairs < PAIRS_FOR_RANGES


def _is_like_its_base(of: Judgement, row: Change) -> bool:
    is_unlike_history = not of.candidate.is_noisy and of.past is not None
    return is_unlike_history and row.verdict is Verdict.UNCHANGED


def _is_obstructed(of: Judgement, row: Change) -> bool:
    return _is_by_ranges(of, row) and of.candidate.obstacle is not None


def _is_only_by_history(of: Judgement, row: Change) -> bool:
    is_noisy = of.candidate.metric.kind in _NOISY_RANGES
    return is_noisy and _is_by_ranges(of, row) and row.code is Code.BEYOND_LIMIT


def _has_failing_base(of: Judgement, row: Change) -> bool:
    paired = of.candidate.paired
    return paired is not None and bool(paired.failure) and row.verdict in signs.UNPROVEN


def _has_own_file(of: Judgement, row: Change) -> bool:
    paired = of.candidate.paired
    has_file = paired is not None and paired.own_file
    return has_file and row.pairs > 0 and not _has_failing_base(of, row)


def _is_accepted(of: Judgement, row: Change) -> bool:
    """Whether an accepted change passes: its new epoch is too young to clear anything.

    Not a head far from it that nobody has compared, because the machine has moved, for example.
    """
    candidate = of.candidate
    is_open = row.verdict is Verdict.INCONCLUSIVE and row.code is not Code.HISTORY_ALONE
    if not (Fact.ACCEPTED in candidate.facts and candidate.is_noisy and is_open):
        return False
    low, high = (row.interval.low, row.interval.high) if row.interval else (1.0, 1.0)
    is_moved = max(low, 1 / high) - 1 > row.limit / 2
    return not (is_moved or (candidate.obstacle and signs.is_far(row)))


def find_unfitness(candidate: Candidate) -> Code | None:
    """Return the reason code why pairs may clear nothing that is worse than its history.

    Both sides were given the packages that this change has brought, or every launch of the head by
    itself took more memory than any in the pairs: it has two modes, and they show the other one.
    """
    if not candidate.pairs:
        return None
    if Fact.OTHER_PACKAGES in candidate.facts:
        return Code.OTHER_PACKAGES
    if candidate.metric.kind is not Kind.HOST_MEMORY or len(candidate.head) < _FEWEST_ALONE:
        return None
    is_unlike = min(candidate.head) > max(map(max, candidate.pairs))
    return Code.WORSE_BY_HISTORY if is_unlike else None


def _has_unfit_pairs(of: Judgement, row: Change) -> bool:
    """Whether the history speaks, because the pairs are unfit to clear what it shows."""
    is_open = row.pairs > 0 and row.verdict is not Verdict.REGRESSED
    return is_open and of.past is not None and find_unfitness(of.candidate) is not None


def _is_far_in_history(of: Judgement, row: Change) -> bool:
    return _has_unfit_pairs(of, row) and of.past is not None and signs.is_far(of.past)


def _show_history(of: Judgement, _row: Change) -> Mapping[str, object]:
    """Return the row of the history, as one without an answer."""
    assert of.past is not None
    failure = of.candidate.paired.failure if of.candidate.paired else ""
    return msgspec.structs.asdict(of.past) | {
        "verdict": Verdict.INCONCLUSIVE,
        "code": find_unfitness(of.candidate),
        "remedy": None,
        "note": failure if of.candidate.is_noisy else "",
    }


def _has_moved_with_packages(of: Judgement, row: Change) -> bool:
    is_moved = row.verdict is Verdict.UNCHANGED and signs.has_drifted(row)
    is_calm = is_moved or row.code is Code.BASELINE_MOVED
    is_explained = Fact.OTHER_PACKAGES in of.candidate.facts
    return is_calm and is_explained and _has_unfit_pairs(of, row)


def _is_proven_before(of: Judgement, row: Change) -> bool:
    """Whether an earlier run of these commits has proven a change that all pairs do not clear."""
    candidate = of.candidate
    is_cleared = row.verdict is Verdict.UNCHANGED and row.pairs > sum(candidate.earlier)
    return candidate.said in _PROVEN and not is_cleared and row.verdict not in _PROVEN


def _has_new_processes(of: Judgement, row: Change) -> bool:
    """Whether new processes explain all of the growth of memory: they share the work."""
    is_memory = of.candidate.metric == metrics.HOST_RSS_PEAK
    is_of_tree = is_memory and Fact.NEW_PROCESSES in of.candidate.facts
    return is_of_tree and row.code in _BY_PAIRS and row.verdict in _LOSSES | signs.UNPROVEN


ROW: tuple[Rule[Judgement, Change], ...] = (
    # What ranges may say of a noisy metric, and where a history stands beside them.
    Rule(_needs_more_pairs, {"verdict": Verdict.INCONCLUSIVE, "code": Code.TOO_FEW_PAIRS}),
    Rule(_is_like_its_base, {"code": Code.BASELINE_MOVED}),
    Rule(
        _is_only_by_history,
        lambda _of, row: {
            "verdict": Verdict.LIKELY_SLOWER
            if row.verdict is Verdict.REGRESSED
            else Verdict.INCONCLUSIVE,
            "code": Code.HISTORY_ALONE,
        },
    ),
    Rule(
        _is_obstructed,
        lambda of, _row: {"verdict": Verdict.INCONCLUSIVE, "code": of.candidate.obstacle},
    ),
    # How launching the base went.
    Rule(_has_own_file, {"own_file": True}),
    Rule(
        _has_failing_base,
        lambda of, row: {
            "code": row.code if row.code is Code.HISTORY_ALONE else Code.BASE_FAILED,
            "note": of.candidate.paired.failure if of.candidate.paired else "",
        },
    ),
    Rule(_is_accepted, {"verdict": Verdict.UNCHANGED, "code": Code.ACCEPTED}),
    # What pairs cannot clear.
    Rule(_is_far_in_history, _show_history),
    Rule(_has_moved_with_packages, {"code": Code.OTHER_PACKAGES}),
    Rule(
        _is_proven_before,
        lambda of, _row: {
            "verdict": of.candidate.said,
            "code": Code.BEYOND_LIMIT,
            "remedy": None,
        },
    ),
    Rule(
        _has_new_processes,
        lambda _of, row: {
            "gate": False,
            "code": Code.NEW_PROCESSES if row.verdict in _LOSSES else row.code,
        },
        closes=lambda _of, _row: True,
    ),
)

# --- the two clocks of one step on a CPU

# The time by the wall is the promise, CPU time speaks beside it. It is quiet where others use the
# machine, does not see waiting, and grows where work moves to other processes, which is no loss of
# time. On a crowded CPU, it has an answer for 95.5 % of unchanged resident pairs, and the wall for
# 10 %; of losses by 5 % it finds 55.5 %, and the wall 7.5 % (docs/decisions/022).


class Clocks(NamedTuple):
    """Wall time and CPU time of one workload, both of which gate, before either is changed."""

    wall: Judgement
    cpu: Judgement


def _clears_wall(clocks: Clocks, row: Change) -> bool:
    """Whether CPU time clears a step whose wall is too noisy for an answer.

    Other packages may wait longer, which no pair shows; of a likely gain nothing is to be said.
    """
    is_noisy = row.code not in {Code.OTHER_PACKAGES, Code.HISTORY_ALONE}
    is_open = row.verdict is Verdict.INCONCLUSIVE and is_noisy
    is_calm = clocks.cpu.row.verdict is Verdict.UNCHANGED
    return is_open and is_calm and not clocks.wall.candidate.limit.require


def _is_decided(clocks: Clocks, _row: Change) -> bool:
    return clocks.wall.row.verdict in {Verdict.UNCHANGED, *_PROVEN}


def _is_silenced(clocks: Clocks, row: Change) -> bool:
    """Whether CPU time fails no step: the wall contradicts it, or more processes share the work."""
    interval = clocks.wall.row.interval
    excludes_loss = interval is not None and interval.high - 1 < clocks.wall.row.limit
    has_other_tasks = Fact.OTHER_TASKS in clocks.cpu.candidate.facts
    is_silent = excludes_loss or has_other_tasks or _is_decided(clocks, row)
    return is_silent and row.verdict is not Verdict.UNCHANGED


def _is_lost_by_cpu_alone(clocks: Clocks, row: Change) -> bool:
    is_alone = clocks.wall.row.verdict is not Verdict.REGRESSED
    return is_alone and row.verdict is Verdict.REGRESSED and _is_silenced(clocks, row)


WALL: tuple[Rule[Clocks, Change], ...] = (
    Rule(
        _clears_wall,
        {"gate": False, "code": Code.CPU_TIME},
        # More pairs would not decide it.
        closes=lambda _clocks, row: row.remedy is not None and row.remedy.pairs is None,
    ),
)
CPU: tuple[Rule[Clocks, Change], ...] = (
    Rule(_is_lost_by_cpu_alone, {"code": Code.CPU_TIME}),
    Rule(_is_silenced, {"gate": False}, closes=_is_decided),
)


_CLOCKS = (metrics.STEP_TIME.name, metrics.STEP_CPU.name)


def judge(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Return what the rules make of the judgements of a run: each by itself, then the clocks."""
    judged = [_hold(ROW, each, each) if each.change else each for each in judgements]
    gating = {
        (each.candidate.workload, each.candidate.metric.name): each
        for each in judged
        if each.change and each.candidate.limit.gate
    }
    changed: dict[int, Judgement] = {}
    for workload in {name for name, _ in gating}:
        wall, cpu = (gating.get((workload, name)) for name in _CLOCKS)
        if wall and cpu:
            clocks = Clocks(wall, cpu)
            changed |= {id(wall): _hold(WALL, clocks, wall), id(cpu): _hold(CPU, clocks, cpu)}
    return [changed.get(id(each), each) for each in judged]


def _hold(rules: Iterable[Rule[F, Change]], facts: F, judged: Judgement) -> Judgement:
    row, is_closed = _apply(rules, facts, judged.row)
    if row is judged.change and not is_closed:
        return judged
    return msgspec.structs.replace(judged, change=row, is_open=judged.is_open and not is_closed)


# --- rows of a workload whose machine is doubted


def _is_of_other_disk(validity: Validity, row: Row) -> bool:
    """Whether a noisy alarm proves nothing, because base and head lie on two file systems."""
    if row.verdict is not Verdict.REGRESSED or not isinstance(row, Change):
        return False
    metric = metrics.find_metric(row.metric)
    return (
        metric is not None
        and metric.kind in KIND_OF
        and any(
            each.doubt is Doubt.OTHER_FILE_SYSTEM and each.workload == row.workload
            for each in validity.reasons
        )
    )


def _is_distrusted(validity: Validity, row: Row) -> bool:
    return not isinstance(row, Uncompared) and validity.against(row.workload) is not None


def _has_failed_by_machine(validity: Validity, row: Row) -> bool:
    """Whether the machine has made a workload fail: that says nothing of the code."""
    if row.code is not Code.FAILED or not isinstance(row, Uncompared):
        return False
    is_full = has_filled_gpu(row.exhausted)
    return bool(find_fatal(validity.reasons, row.workload, has_filled_gpu=is_full))


_UNTRUSTED = {"verdict": Verdict.INCONCLUSIVE, "code": Code.UNTRUSTED}
MACHINE: tuple[Rule[Validity, Row], ...] = (
    Rule(_is_of_other_disk, {"verdict": Verdict.LIKELY_SLOWER}),
    Rule(_is_distrusted, _UNTRUSTED),
    Rule(_has_failed_by_machine, _UNTRUSTED),
)

# --- noisy rows of a workload whose exact rows say something


class WorkloadRows(NamedTuple):
    """The rows of a workload, and what the exact ones say."""

    rows: Sequence[Row]
    exact: Signs | None


def _does_more(workload: WorkloadRows, row: Change) -> bool:
    """Whether exact rows say that a time which is worse, and not proven, is a loss.

    Other packages explain a loss as well as more work would.
    """
    exact, is_time = workload.exact, row.metric in signs.SLOWED
    does_more = is_time and exact is not None and exact.direction == "worse"
    is_slower = signs.is_far(row) or row.code is Code.WORSE_BY_HISTORY
    is_explained = row.code is Code.OTHER_PACKAGES
    return does_more and is_slower and signs.is_open(row) and not is_explained


def _is_cut_short(_workload: WorkloadRows, row: Change) -> bool:
    is_open = row.verdict is Verdict.LIKELY_SLOWER or signs.is_open(row)
    is_short = 0 < row.pairs < LOOKS[0] and row.code in signs.TOO_FEW_PAIRS
    return is_short and is_open and signs.is_far(row)


WORKLOAD: tuple[Rule[WorkloadRows, Change], ...] = (
    Rule(_does_more, {"verdict": Verdict.LIKELY_SLOWER}),
    Rule(_is_cut_short, {"code": Code.TOO_FEW_PAIRS}),
    Rule(
        lambda workload, _row: workload.exact is not None,
        lambda workload, _row: {"signs": workload.exact},
    ),
)


def judge_workloads(rows: Iterable[Row], validity: Validity) -> Iterator[Row]:
    """Yield the rows by workload, as the machine and the exact rows of each let them stand."""
    by_workload: dict[str, list[Row]] = {}
    for row in rows:
        trusted = _apply(MACHINE, validity, row)[0] if validity.reasons else row
        by_workload.setdefault(row.workload, []).append(trusted)
    for name in sorted(by_workload):
        workload = WorkloadRows(by_workload[name], signs.find_signs(by_workload[name]))
        for row in workload.rows:
            if isinstance(row, Change) and metrics.metric_of(row.metric).kind in KIND_OF:
                yield _apply(WORKLOAD, workload, row)[0]
            else:
                yield row


# --- rows of what nothing compares


def leave_unpaired(row: Uncompared, failure: str) -> Uncompared:
    """Return the row of what the base has, too, and no pair has compared; `failure` says why."""
    code = Code.BASE_FAILED if failure else Code.TOO_FEW_PAIRS
    return msgspec.structs.replace(row, verdict=Verdict.INCONCLUSIVE, code=code)


def accept_new(rows: Iterable[Row], accepted: Callable[[str], bool]) -> tuple[Row, ...]:
    """Return the rows; a new workload whose first baseline the head adds is `accepted`."""
    return tuple(
        msgspec.structs.replace(row, code=Code.ACCEPTED)
        if row.code is Code.NEW and accepted(row.workload)
        else row
        for row in rows
    )


# --- the whole report

# Verdicts that blame the change.
_BLAMES = frozenset({Verdict.REGRESSED, Verdict.NUMERICS_CHANGED})
# Those that do not count as inconclusive for `fail_on`; with the last one, a gain is likely.
_NOT_INCONCLUSIVE = frozenset({Code.UNTRUSTED, Code.NOT_COMPARABLE, Code.HISTORY_ALONE})


def overall(rows: Sequence[Row], validity: Validity) -> Verdict:
    """Return the worst verdict of the rows that count; a run that is invalid has no answer."""
    if validity.is_run_invalid:
        return Verdict.INCONCLUSIVE
    nothing = Verdict.UNCHANGED if rows else Verdict.INCONCLUSIVE
    return worst((row.verdict for row in rows if row.gate), default=nothing)


def exit_code(rows: Sequence[Row], validity: Validity, fail_on: FailOn = "proven") -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green; nor is what looks like a loss and is not proven.
    `fail_on` is the mildest loss that ends with 1. With "never" a loss ends with 0, proven or
    not, and what has no numbers stays 3.
    """
    gating = [row for row in rows if row.gate]
    if fail_on != "never" and any(_fails(row, fail_on) for row in gating):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) or row.code is Code.SAME_PROGRAM for row in rows)
    unanswered = any(
        row.verdict is Verdict.FAILED
        or row.code is Code.UNTRUSTED
        or (isinstance(row, Uncompared) and row.verdict is Verdict.INCONCLUSIVE)
        or (fail_on != "never" and signs.is_open_loss(row))
        for row in gating
    )
    if validity.is_run_invalid or unanswered or not compared:
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def deny_success(comparison: Comparison) -> Comparison:
    """Return the same comparison, with an exit code that is no success."""
    is_success = comparison.exit_code == ExitCode.OK
    return end_with(comparison, ExitCode.NO_ANSWER) if is_success else comparison


def end_with(comparison: Comparison, code: ExitCode) -> Comparison:
    """Return a comparison of a run that is not trusted, with the exit code that this leaves."""
    return msgspec.structs.replace(comparison, exit_code=int(code))


def proves_loss(comparison: Comparison) -> bool:
    """Whether a row that gates blames the change."""
    return any(row.gate and row.verdict in _BLAMES for row in comparison.rows)


def _fails(row: Row, fail_on: FailOn) -> bool:
    if row.verdict in _BLAMES:
        return True
    if fail_on == "unanswered" and row.verdict is Verdict.INCONCLUSIVE:
        return row.code not in _NOT_INCONCLUSIVE
    if row.verdict is not Verdict.LIKELY_SLOWER or fail_on not in {"likely", "unanswered"}:
        return False
    if not isinstance(row, Change) or not signs.is_by_history_alone(row):
        return True
    # With fewer sessions, how much they differ is assumed.
    is_trusted = row.base_sessions >= PREDICTING_SESSIONS or fail_on == "unanswered"
    return row.ratio is not None and is_trusted

"""What has to hold beside the interval of a claim, each by facts that were measured already."""

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from ci_perf.features.proof.claims import Answer, Claim
from ci_perf.features.proof.receipt import (
    MOST_CHARS,
    MOST_CHARS_THAT_HOLD,
    Check,
    CheckName,
)
from ci_perf.judging import comparability
from ci_perf.model.comparison import (
    Comparison,
    Numerics,
    Severity,
    Verdict,
    is_of_workload,
    severity_of,
)
from ci_perf.model.gate_change import GateKind
from ci_perf.model.process import Process
from ci_perf.model.run import Pair, Run
from ci_perf.report import phrases, units

# What only code and documents are made of. Whatever else is changed may be an input of a step.
_NO_INPUT = frozenset(
    {".py", ".pyi", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".md", ".rst"}
)
# Rows that keep a claim from being proven, where they gate.
_WORSE_OR_OPEN = frozenset(
    {
        Severity.FAILED,
        Severity.NUMERICS_CHANGED,
        Severity.REGRESSED,
        Severity.LIKELY_SLOWER,
        Severity.INCONCLUSIVE,
    }
)
# Fewer FLOPs than this share of the base's are less work; so are fewer than half its operators.
_SAME_FLOPS, _HALF = 0.99, 0.5
# The part of a claim by which the clock outside may disagree, and that waiting may explain.
_OF_CLAIM, _WAITED = 0.2, 0.5

NO_RESULT = "no loss and no output; next: give its Workload output= on the base first, then rebase"

Found = Iterable[Check]


def check(name: CheckName, detail: str, *, holds: bool) -> Check:
    """Return a check, with what was found cut to the length that a receipt has for it."""
    most = MOST_CHARS_THAT_HOLD if holds else MOST_CHARS
    text = detail if len(detail) <= most else f"{detail[: most - 1]}…"
    return Check(name=name, holds=holds, detail=text)


def check_gate(comparison: Comparison) -> Check:
    """Ask whether suite, limits and baselines are as they were."""
    # Less work has a check of its own, which a reason may answer.
    changes = [
        f"{each.kind.value}: {each.workload or each.name}"
        for each in comparison.gate_changes
        if each.kind is not GateKind.LESS_WORK
    ]
    return check("gate", "; ".join(changes) or "no change", holds=not changes)


def check_workloads(run: Run, claims: Sequence[Claim], files: Sequence[str]) -> Check:
    """Ask whether both sides run, by the same workload files, equal steps of two programs."""
    named = {claim.workload for claim in claims}
    own = [each.workload for each in run.paired if each.file == "base" and each.workload in named]
    other = run.interleaved.incomparable if run.interleaved else {}
    of_base = {each.workload: each.trouble for each in run.paired if each.trouble}
    known = {each.workload for each in run.paired} | {each.workload for each in run.failed}
    left = sorted(named - known - _list_same(run) - other.keys())
    faults = [
        *(f"{each.workload} fails: {each.reason}" for each in run.failed if each.workload in named),
        *(f"{name} fails on the base: {of_base[name]}" for name in of_base if name in named),
        *(f"{name}: no pair of launches; next: --budget" for name in left),
        *(f"{name}: both sides run the same program" for name in named & _list_same(run)),
        *(f"{name}: {why}" for name, why in other.items() if name in named),
        *(f"{name}: another workload file" for name in own),
        *(f"{name} is changed; next: commit it to the base first" for name in files),
    ]
    return check("workload", "; ".join(faults) or "the same files on both sides", holds=not faults)


def check_inputs(changed: Iterable[str]) -> Check:
    """Ask whether an input is changed: a file that is neither code nor a document may be one."""
    faults = [name for name in changed if PurePosixPath(name).suffix.lower() not in _NO_INPUT]
    said = (
        f"changed: {', '.join(faults)}; next: commit it to the base first"
        if faults
        else "only code and documents are changed"
    )
    return check("inputs", said, holds=not faults)


def check_results(comparison: Comparison, claims: Sequence[Claim]) -> Check:
    """Ask whether every claimed workload computes numbers, and the same ones."""
    numerics = {each.workload: each for each in comparison.rows if isinstance(each, Numerics)}
    most = 0.0
    for name in dict.fromkeys(claim.workload for claim in claims):
        row = numerics.get(name)
        if row is None:
            return check("result", f"{name}: {NO_RESULT}", holds=False)
        if row.verdict is not Verdict.UNCHANGED or row.note:
            return check("result", f"{name}: {row.note or row.code.value}", holds=False)
        most = max(most, row.tolerance)
    return check("result", f"equal (tolerance: {units.limit(most)})", holds=True)


def check_work(pairs: Sequence[Pair], because: str) -> Check:
    """Ask whether a step still does the work: its FLOPs, and at least half of its operators."""
    base, head = (_find_work(each) for each in (_sides(pairs, "base"), _sides(pairs, "head")))
    if base is None or head is None or not (base[1] or head[1]):
        said = "not counted: no operators of torch; next: --because REASON"
        return check("work", said, holds=bool(because))
    said = f"{base[0]:,} → {head[0]:,} FLOPs, {base[1]:,} → {head[1]:,} operators"
    is_less = head[0] < _SAME_FLOPS * base[0] or head[1] < _HALF * base[1]
    hint = "; next: --because REASON" if is_less and not because else ""
    return check("work", said + hint, holds=not is_less or bool(because))


def check_claim(claim: Claim, answer: Answer) -> Check:
    """Ask whether the whole interval lies beyond the claim."""
    if not answer.pairs:
        return check("claim", f"{claim.text}: too few pairs", holds=False)
    shown = [_show_gain(claim, each) for each in (answer.gain, answer.low, answer.high)]
    # Numbers first: what is cut is the claim, which the receipt has by itself.
    said = f"{shown[0]} [{shown[1]}, {shown[2]}], {answer.pairs} pairs: {claim.text}"
    return check("claim", said, holds=answer.holds is True)


def check_waiting(pairs: Sequence[Pair], claim: Claim, because: str) -> Check:
    """Ask whether the time that is gone was work of the CPU: a sleep in the base is none.

    On a GPU nobody knows the CPU time of a step, so nothing is asked there.
    """
    steps = [_find_waiting(_sides(pairs, side)) for side in ("base", "head")]
    if not claim.is_time or any(each is None for each in steps):
        return check("waiting", "not asked: the CPU time of a step is not known", holds=True)
    (base_s, base_waited_s), (head_s, head_waited_s) = filter(None, steps)
    # A busy machine lets both sides wait alike.
    more_s = base_waited_s - head_waited_s * max(base_s / head_s, 1.0)
    is_waiting = more_s > _WAITED * max(base_s - head_s, 0.0)
    said = f"a step waits {units.seconds(base_waited_s)} → {units.seconds(head_waited_s)}"
    hint = "; next: --because REASON" if is_waiting and not because else ""
    return check("waiting", said + hint, holds=not is_waiting or bool(because))


def check_others(comparison: Comparison, claims: Sequence[Claim]) -> Check:
    """Ask whether any row that gates is worse or open; pairs answer for those of the claims."""
    claimed = {(claim.workload, metric.name) for claim in claims for metric in claim.metrics}
    faults = [
        phrases.plain(phrases.title_row(row)) + f": {severity_of(row).value}"
        for row in comparison.rows
        if severity_of(row) in _WORSE_OR_OPEN
        and (is_of_workload(row) or row.gate)
        and (row.workload, getattr(row, "metric", "")) not in claimed
    ]
    return check(
        "others", "; ".join(faults) or "no row that gates is worse or open", holds=not faults
    )


def check_seed(pairs: Sequence[Pair], workload: str, tolerance: float) -> Check:
    """Ask whether both sides compute the same with another seed."""
    for pair in pairs:
        moved = comparability.numeric_difference(pair.base.fingerprint, pair.head.fingerprint)
        if moved is None or moved > tolerance:
            size = "another number of them" if moved is None else f"{units.about(moved)} apart"
            return check("seed", f"{workload}: {size}", holds=False)
    return check(
        "seed", "the same" if pairs else f"{workload}: no pair was launched", holds=bool(pairs)
    )


def check_clock(pairs: Sequence[Pair], claim: Claim, gain: float) -> Check:
    """Ask whether blocks fill what the monitor has timed as well as those of the base do.

    `gain` is what the claim allows as a share of the base.
    """
    replaced = sorted({name for pair in pairs for name in pair.head.replaced})
    if replaced:
        return check("clock", f"{claim.workload} replaces {', '.join(replaced)}", holds=False)
    sides = [[_find_missing(each) for each in _sides(pairs, side)] for side in ("base", "head")]
    if not all(sides) or any(each is None for side in sides for each in side):
        return check("clock", "the monitor saw no timed region", holds=False)
    base, head = (statistics.median(each or 0.0 for each in side) for side in sides)
    said = f"not in timed blocks: {units.share(base)} → {units.share(head)} of the time"
    return check("clock", said, holds=abs(head - base) <= _OF_CLAIM * gain)


def digest(runs: Iterable[Run], workloads: Iterable[str]) -> str:
    """Return a digest of what the head computes in all runs, in their order; "" of nothing."""
    named = set(workloads)
    numbers = [
        f"{paired.workload}:{number:.6g}"
        for run in runs
        for paired in run.paired
        if paired.workload in named
        for pair in paired.pairs[:1]
        for number in comparability.numeric_values(pair.head.fingerprint)
    ]
    return hashlib.sha256("\n".join(numbers).encode()).hexdigest()[:16] if numbers else ""


def first_failure(checks: Iterable[Callable[[], Found]]) -> Iterator[Check]:
    """Make checks in their order, and end with the first that does not hold."""
    for make in checks:
        for each in make():
            yield each
            if not each.holds:
                return


def _list_same(run: Run) -> set[str]:
    return {each.workload for each in run.same}


def _sides(pairs: Iterable[Pair], side: str) -> list[Process]:
    return [getattr(pair, side) for pair in pairs]


def _find_work(launches: Iterable[Process]) -> tuple[int, int] | None:
    """Return the fewest FLOPs and operators of a step; `None` where these were not counted."""
    known = [
        (each.work.flops or 0, each.work.operators)
        for each in launches
        if each.work.operators is not None
    ]
    return min(known, default=None)


def _find_waiting(launches: Sequence[Process]) -> tuple[float, float] | None:
    """Return how long a step takes, and for how long of it no CPU works for it."""
    if not launches or any(each.timed.cpu_s is None for each in launches):
        return None
    step_s = [statistics.fmean(each.timed.block_s) for each in launches]
    cpu_s = [statistics.fmean(each.timed.cpu_s or ()) for each in launches]
    waited_s = [max(0.0, step - cpu) for step, cpu in zip(step_s, cpu_s, strict=True)]
    return statistics.median(step_s), statistics.median(waited_s)


def _find_missing(launch: Process) -> float | None:
    """Return the share of the timed region that no block fills, by a clock outside."""
    evidence, timed = launch.evidence, launch.timed
    if evidence is None or evidence.trouble or not evidence.host.wall_s:
        return None
    return 1 - math.fsum(timed.block_s) * timed.steps_per_block / evidence.host.wall_s


def _show_gain(claim: Claim, gain: float) -> str:
    if claim.size.relative:
        return f"{100 * gain:.1f} %".replace("-", units.MINUS)
    return str(units.value(gain, claim.metrics[0].unit))

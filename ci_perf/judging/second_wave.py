"""Two waves on several nodes: all workloads are screened, then the suspects of all get pairs.

A node that counts its own suspects alone would let each claim a larger share of the chance of a
false alarm than is left over all nodes, and stop too early. So no pair is launched before the
suspects of all nodes are counted.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.judging.merging import DETAIL_CHARS, P, ShardRun, reasons_of, spelled, total_s
from ci_perf.model.environment import is_same
from ci_perf.model.run import Interleaved, NodeSession, Partner, Run
from ci_perf.model.shards import WorkUnit
from ci_perf.model.validity import Reason, validity_of


def completed(first: ShardRun, second: Run, units: Sequence[WorkUnit] = ()) -> Run:
    """Return the run of a first wave, completed by the merged pairs of a second one.

    A workload of the second wave is that of the node which has launched its pairs, with its head,
    canaries and validity. What its unit names without a suspicion was launched for comparisons
    within the session alone, and keeps its numbers. Raises InvalidFileError: both are not of the
    same code, base or machine.
    """
    partners = _cleared(units)
    run, launched = first.run, second
    second = _without_cleared(second, partners)
    screened, paired = run.interleaved, second.interleaved
    repeated = set(second.workloads())
    _check_same(first, second)
    kept = [_without(session, repeated) for session in run.sessions]
    both = (run, second)
    return msgspec.structs.replace(
        run,
        id=hashlib.sha256(f"{run.id}\n{second.id}".encode(errors="replace")).hexdigest()[:12],
        duration_s=total_s((run.duration_s, second.duration_s)),
        validity=validity_of(
            (
                *(r for r in _reasons_of_first(run) if r.workload not in repeated),
                *second.validity.reasons,
            )
        ),
        canaries=(),
        measured=_later(run.measured, second.measured, repeated),
        failed=_later(run.failed, second.failed, repeated),
        interleaved=_with_budget_of(screened, paired),
        paired=second.paired,
        same=_later(run.same, second.same, repeated),
        profiled=second.profiled,
        touched=_later(run.touched, second.touched, {each.workload for each in second.touched}),
        programs=tuple({each.workload: each for r in both for each in r.programs}.values()),
        merged_from=tuple(each for each in (*kept, *second.sessions) if each.workloads),
        unit="",
        partners=tuple(_partners(run, launched, units)),
    )


def _check_same(first: ShardRun, second: Run) -> None:
    """Refuse two waves of other code, base or machines. Raises InvalidFileError."""
    run, screened, paired = first.run, first.run.interleaved, second.interleaved
    facts = {
        "commit": (second.source.commit, run.source.commit),
        "suite": (second.suite, run.suite),
        "version of ci-perf": (second.tool.version, run.tool.version),
        "base": (
            paired.source.commit if paired else "",
            screened.source.commit if screened and paired else "",
        ),
    }
    for what, (expected, actual) in facts.items():
        if expected != actual:
            raise InvalidFileError(
                f"{first.label}: expected {what} {expected[:DETAIL_CHARS]!r}, as in the second "
                f"wave, found {actual[:DETAIL_CHARS]!r}"
            )
    if second.measured and not is_same(run.environment.hard, second.environment.hard):
        raise InvalidFileError(
            f"{first.label}: expected a machine as that of the second wave ({spelled(second)}), "
            f"found {spelled(run)}"
        )
    if missing := set(second.workloads()) - set(run.workloads()):
        raise InvalidFileError(
            f"{first.label}: expected workload {min(missing)!r}, which the second wave has measured"
        )


def _cleared(units: Iterable[WorkUnit]) -> set[str]:
    """Name the workloads of a second wave that no node has found suspicious."""
    return {name for unit in units for name, metrics in unit.suspected.items() if not metrics}


def _without_cleared(second: Run, names: Collection[str]) -> Run:
    """Return the second wave as if it had launched suspects alone."""
    if not names:
        return second
    parts = {
        part: tuple(each for each in getattr(second, part) if each.workload not in names)
        for part in ("measured", "failed", "paired", "same", "touched", "profiled")
    }
    reasons = tuple(r for r in second.validity.reasons if r.workload not in names)
    sessions = tuple(_without(session, names) for session in second.merged_from)
    return msgspec.structs.replace(
        second, **parts, validity=validity_of(reasons), merged_from=sessions
    )


def _partners(first: Run, second: Run, units: Iterable[WorkUnit]) -> Iterator[Partner]:
    """Yield what each wave has measured and the run has by the other: what others compare with."""
    cleared = _cleared(units)
    suspects = {n for unit in units if cleared & set(unit.workloads) for n in unit.workloads}
    for wave, names in ((first, suspects - cleared), (second, cleared)):
        whose = {name: each.run for each in wave.sessions for name in each.workloads}
        for measured in sorted(wave.measured, key=lambda each: each.workload):
            if measured.workload in names and measured.workload in whose:
                yield Partner(session=whose[measured.workload], measured=measured)


def _reasons_of_first(run: Run) -> Iterable[Reason]:
    """Yield the reasons of a first wave by workload, so that none speaks against the second."""
    return run.validity.reasons if run.merged_from else reasons_of([run])


def _without(session: NodeSession, names: Collection[str]) -> NodeSession:
    left = tuple(name for name in session.workloads if name not in names)
    return msgspec.structs.replace(session, workloads=left)


def _later(first: Sequence[P], second: Sequence[P], repeated: Collection[str]) -> tuple[P, ...]:
    """Return the parts of two waves, sorted by workload, the second one's where it has any."""
    parts = [*(each for each in first if each.workload not in repeated), *second]
    return tuple(sorted(parts, key=lambda part: part.workload))


def _with_budget_of(first: Interleaved | None, second: Interleaved | None) -> Interleaved | None:
    if first is None or second is None:
        return second or first
    return msgspec.structs.replace(
        second,
        budget_s=total_s((first.budget_s, second.budget_s)),
        spent_s=total_s((first.spent_s, second.spent_s)),
        suspects=max(first.suspects, second.suspects),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        accepted={**first.accepted, **second.accepted},
        incomparable={**first.incomparable, **second.incomparable},
    )

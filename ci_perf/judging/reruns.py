"""Earlier runs of the same commits, whose pairs count beside those of a new run.

Pairs are differences within one session, so pairs of two sessions may be judged together where
both sides ran the same code, on the same class of machine, with the same software.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.environment import is_same
from ci_perf.model.run import (
    Checks,
    Earlier,
    Measured,
    Paired,
    PairVerdict,
    Run,
    Source,
    is_same_code,
)

_SAID: dict[Verdict, PairVerdict] = {
    Verdict.REGRESSED: "regressed",
    Verdict.IMPROVED: "improved",
    Verdict.UNCHANGED: "unchanged",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.LIKELY_SLOWER: "inconclusive",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A run that may be of the same commits as a new one, and what it found; ``label`` names it."""

    run: Run
    comparison: Comparison
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What is known when a run begins: how many checks came before, and runs that are offered."""

    checks: Checks | None = None
    offered: Sequence[Offered] = ()

    def joined(self, run: Run) -> Run:
        """Return the run with what came before; notes say which runs are left alone, and why."""
        how = run.interleaved
        if how is None:
            return run
        earlier: dict[str, Earlier] = {}
        notes = []
        for offered in self.offered:
            if reason := obstacle(run, offered.run):
                notes.append(f"{offered.label}: its pairs are left alone: {reason}")
                continue
            for known in (*offered.run.earlier, earlier_of(offered)):
                if known.paired:
                    earlier.setdefault(known.run, _comparable(known, offered.run, run))
        # Whatever shared alpha then shares it now: a number that depended on what pairs have shown
        # would be no fair share.
        suspects = max(how.suspects, *(known.suspects for known in earlier.values()), 0)
        how = msgspec.structs.replace(how, suspects=suspects, notes=(*how.notes, *notes))
        in_order = sorted(earlier.values(), key=lambda known: known.started_at)
        return msgspec.structs.replace(
            run, checks=self.checks, earlier=tuple(in_order), interleaved=how
        )


def obstacle(run: Run, earlier: Run) -> str:
    """Say why the pairs of `earlier` do not count beside those of `run`; empty where they do."""
    if run.interleaved is None or earlier.interleaved is None:
        return "no base was launched"
    if earlier.id == run.id:
        return "it is the same run"
    if earlier.validity.is_run_invalid:
        return "that run is invalid"
    sides = {
        "head": (run.source, earlier.source),
        "base": (run.interleaved.source, earlier.interleaved.source),
    }
    for side, (source, before) in sides.items():
        if not is_same_code(source, before):
            return f"expected the {side} {_spelled(source)}, found {_spelled(before)}"
    now, then = run.environment, earlier.environment
    if run.suite != earlier.suite:
        return f"expected suite {run.suite!r}, found {earlier.suite!r}"
    if not is_same(now.hard, then.hard):
        return "it is of another machine"
    if (now.soft, now.image, run.tool) != (then.soft, then.image, earlier.tool):
        return "it is of other software"
    return ""


def earlier_of(offered: Offered) -> Earlier:
    """Return what a later run of the same commits keeps of a run."""
    run = offered.run
    assert run.interleaved is not None
    return Earlier(
        run=run.id,
        started_at=run.started_at,
        check=run.check or 1,
        suspects=run.interleaved.suspects,
        said=said_by_pairs(offered.comparison),
        paired=run.paired,
    )


def said_by_pairs(comparison: Comparison) -> dict[str, dict[str, PairVerdict]]:
    """Return the verdicts that rest on pairs, by workload and metric."""
    said: dict[str, dict[str, PairVerdict]] = {}
    for row in comparison.rows:
        if isinstance(row, Change) and row.pairs and row.verdict in _SAID:
            said.setdefault(row.workload, {})[row.metric] = _SAID[row.verdict]
    return said


def _comparable(known: Earlier, then: Run, now: Run) -> Earlier:
    """Leave out workloads that measure something else by now."""
    same = {
        workload.workload
        for workload in then.measured
        if _facts(workload) in map(_facts, now.measured)
    }
    kept: tuple[Paired, ...] = tuple(each for each in known.paired if each.workload in same)
    return msgspec.structs.replace(known, paired=kept)


def _facts(workload: Measured) -> tuple[object, ...]:
    return (
        workload.workload,
        workload.parameters,
        workload.protocol.statistic,
        workload.items_per_step,
        workload.item_unit,
        workload.precision,
        workload.knobs,
    )


def _spelled(source: Source) -> str:
    return source.commit[:12] + (" with changed files" if source.dirty else "")

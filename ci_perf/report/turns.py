"""How base and head were launched in turns, in words."""

from ci_perf.model.comparison import Change, Comparison
from ci_perf.report import remarks, units, words
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.words import Phrase

_MAX_NOTES = 20
_STOPPED = {
    "decided": "stopped when no more pairs could decide anything",
    "budget": "stopped when the budget was spent",
    "interrupted": "interrupted",
}


def summary(comparison: Comparison) -> Phrase:
    """Say what was launched in turns, and how long; empty when nothing was."""
    found = comparison.interleaved
    if found is None:
        return ()
    time = f"{units.duration(found.spent_s)} of {units.duration(found.budget_s)}"
    suspects = f"{found.suspects:,} suspect{'s' * (found.suspects != 1)}"
    return (
        Words("Base "),
        *words.commit(found.source),
        Words(" (merge base of "),
        found.ref,
        Words(f") and head launched in turns: {remarks.pairs(pairs(comparison))} in {time}, "),
        Words(f"{suspects}; {_STOPPED[found.stopped]}."),
    )


def notes(comparison: Comparison) -> list[Phrase]:
    """List what was noted meanwhile."""
    found = comparison.interleaved
    return [(Sentence(note),) for note in found.notes[:_MAX_NOTES]] if found else []


def pairs(comparison: Comparison) -> int:
    """Count the pairs of all workloads; those of a workload serve all of its metrics."""
    most: dict[str, int] = {}
    for row in comparison.rows:
        if isinstance(row, Change):
            most[row.workload] = max(row.pairs, most.get(row.workload, 0))
    return sum(most.values())

"""How base and head were launched in turns, in words."""

from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Interleaved
from ci_perf.report import remarks, units, words
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.words import Phrase

_MAX_NOTES = 20
_STOPPED = {
    "decided": "stopped when no more pairs could decide anything",
    "budget": "stopped when the budget was spent",
    "interrupted": "interrupted",
}
# Not "cleared": what is exact may have regressed, and needs no pairs for that.
_UNNEEDED = "the history left no suspect, so the base was not launched"


def summary(comparison: Comparison) -> Phrase:
    """Say what was launched in turns, and how long; empty when nothing was."""
    found = comparison.interleaved
    if found is None:
        return ()
    said = f": {_UNNEEDED}" if _is_unneeded(found) else f" and head {_launched(found)}"
    return (
        Words("Base "),
        *words.commit(found.source),
        Words(" (merge base of "),
        found.ref,
        Words(f"){said}."),
    )


def _is_unneeded(found: Interleaved) -> bool:
    return found.stopped == "decided" and not found.suspects and not found.pairs


def _launched(found: Interleaved) -> str:
    time = f"{units.duration(found.spent_s)} of {units.duration(found.budget_s)}"
    suspects = f", {units.numbered(found.suspects, 'suspect')}" if found.suspects else ""
    pairs = f"{remarks.pairs(found.pairs)} in {time}{suspects}"
    return f"launched in turns: {pairs}; {_STOPPED[found.stopped]}"


def notes(comparison: Comparison) -> list[Phrase]:
    """List what was noted meanwhile."""
    found = comparison.interleaved
    return [(Sentence(note),) for note in found.notes[:_MAX_NOTES]] if found else []

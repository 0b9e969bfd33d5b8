"""Pairs that may clear nothing which the history shows: what both sides share, or do not show."""

import msgspec

from ci_perf.judging import decide, signs
from ci_perf.judging.candidates import Candidate
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.metrics import Kind

# A single launch of the head may have the rare mode by chance.
_FEWEST_ALONE = 2


def why(candidate: Candidate) -> str:
    """Return the reason code why pairs may clear nothing that is worse than its history, or "".

    Both sides were given the packages that this change has brought, or every launch of the head by
    itself took more memory than any in the pairs: it has two modes, and they show the other one.
    """
    if not candidate.pairs:
        return ""
    if candidate.has_other_packages:
        return decide.OTHER_PACKAGES
    if candidate.metric.kind is not Kind.HOST_MEMORY or len(candidate.head) < _FEWEST_ALONE:
        return ""
    return decide.UNLIKE_PAIRS if min(candidate.head) > max(map(max, candidate.pairs)) else ""


def judged(by_pairs: Change, by_history: Change | None, code: str) -> Change:
    """Let the history speak where pairs are unfit to clear what it shows."""
    is_proven = by_pairs.verdict is Verdict.REGRESSED or not by_pairs.pairs
    if is_proven or by_history is None or not code:
        return by_pairs
    if signs.is_far(by_history):
        verdict = Verdict.INCONCLUSIVE
        return msgspec.structs.replace(by_history, verdict=verdict, code=code, remedy=None)
    is_moved = by_pairs.code in {decide.NOT_CONFIRMED, decide.MOVER_UNKNOWN}
    if is_moved and code == decide.OTHER_PACKAGES:
        return msgspec.structs.replace(by_pairs, code=code)
    return by_pairs

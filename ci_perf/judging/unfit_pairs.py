"""Pairs that may clear nothing which the history shows: what both sides share, or do not show."""

import msgspec

from ci_perf.judging import signs
from ci_perf.judging.candidates import Candidate
from ci_perf.model.comparison import Change, Code, Verdict
from ci_perf.model.metrics import Kind

# A single launch of the head may have the rare mode by chance.
_FEWEST_ALONE = 2


def why(candidate: Candidate) -> Code | None:
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


def judged(by_pairs: Change, by_history: Change | None, code: Code | None) -> Change:
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

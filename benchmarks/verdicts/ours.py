"""Our own rule: the screen against the baseline's sessions, then pairs for its suspects."""

import numpy as np

from benchmarks.verdicts.observed import (
    FASTER,
    INCONCLUSIVE,
    SILENT,
    SLOWER,
    Array,
    Judged,
    Observed,
    Rows,
)
from ci_perf.judging import confirm, screen, variability
from ci_perf.judging.policy import Policy

# Launches of the head that the screen looks at.
HEAD_LAUNCHES = 3
CODES = {
    "regressed": SLOWER,
    "improved": FASTER,
    "unchanged": SILENT,
    "inconclusive": INCONCLUSIVE,
}


def judge(observed: Observed, rows: Rows, policy: Policy, *, check: int | None = None) -> Judged:
    """Screen each pull request as a whole; confirm those of its suspects that are asked for.

    `check` is the number of this check among those of its pull request, if that is known.
    """
    sessions = np.median(observed.sessions, axis=-1).tolist()
    head = np.median(observed.head[:, :HEAD_LAUNCHES], axis=-1).tolist()
    pairs = np.stack(
        [np.median(side, axis=-1) for side in (observed.paired_base, observed.paired_head)], axis=-1
    )
    asked = np.asarray(rows)
    calls = np.full(len(asked), SILENT, dtype=np.int8)
    launches = np.full(len(asked), float(HEAD_LAUNCHES))
    for first in np.unique(asked // observed.suite) * observed.suite:
        suite = range(first, first + observed.suite)
        screened = screen.screen([(sessions[i], head[i]) for i in suite], policy)
        suspects = sum(result.is_suspect for result in screened)
        alpha = confirm.share_alpha(max(1, suspects), check=check)
        for place in np.flatnonzero(asked // observed.suite == first // observed.suite):
            result = screened[asked[place] - first]
            if result.is_suspect:
                usually = variability.usual_variance([*sessions[asked[place]], head[asked[place]]])
                outcome = _confirmed(result, usually, pairs[asked[place]], policy, alpha)
                calls[place] = CODES[outcome.call]
                launches[place] += 2 * outcome.pairs
    return Judged(calls, launches)


def _confirmed(
    screened: screen.Screened, usual_variance: float, pairs: Array, policy: Policy, alpha: float
) -> confirm.Outcome:
    """Confirm one suspect; `pairs` is [pairs, 2], base and head."""
    confirmation = confirm.Confirmation(
        policy,
        alpha,
        screened.prior_variance,
        screened.prior_df,
        suspected=confirm.sign(screened.difference),
        usual_variance=usual_variance,
    )
    for base, head in pairs.tolist():
        outcome = confirmation.add(head - base, base=base)
        if outcome is not None:
            return outcome
    return confirmation.finish()

"""The whole suite in one number: the mean over its workloads of what their pairs show."""

import math
import statistics
from collections.abc import Iterable, Sequence

from ci_perf.judging import distributions, variability
from ci_perf.judging.candidates import Candidate
from ci_perf.judging.policy import TRIMMED
from ci_perf.judging.variability import Centre
from ci_perf.model import metrics
from ci_perf.model.comparison import Interval, WholeSuite

# Of each side; the interval is shown and decides nothing.
_TAIL = 0.025
# Of one workload, the row itself says it all.
_FEWEST_WORKLOADS = 2


def of(candidates: Iterable[Candidate]) -> WholeSuite | None:
    """Return the mean change of the workloads with pairs; `None` where fewer than two have some.

    Each workload counts once, however many pairs it has. Workloads
    are launched one after the other, so their errors are independent and their squares add up; the
    degrees of freedom are those of Satterthwaite (Biometrics Bulletin 1946). A suspect's pairs end
    where they decide it, which this interval does not allow for; it is of the workloads that were
    suspects, and says nothing of the others.
    """
    asked = [c for c in candidates if _speaks(c) and len(c.pairs) > 1]
    if len(asked) < _FEWEST_WORKLOADS:
        return None
    centres = [_centre(candidate) for candidate in asked]
    mean = statistics.fmean(centre.mean for centre in centres)
    reach = _reach(centres, [len(candidate.pairs) for candidate in asked])
    return WholeSuite(
        workloads=len(asked),
        pairs=sum(len(candidate.pairs) for candidate in asked),
        ratio=distributions.exponential(mean),
        interval=Interval(
            low=distributions.exponential(mean - reach),
            high=distributions.exponential(mean + reach),
        ),
    )


def _speaks(candidate: Candidate) -> bool:
    """Whether this is the time that is promised, and gates."""
    return candidate.metric is metrics.STEP_TIME and candidate.limit.gate


def _centre(candidate: Candidate) -> Centre:
    differences = [head - base for base, head in candidate.noisy().pairs]
    return variability.trimmed_mean(differences, TRIMMED if candidate.trimmed else 0.0)


def _reach(centres: Sequence[Centre], pairs: Sequence[int]) -> float:
    """Return how far the interval of the mean reaches to each side."""
    squares = [centre.variance / count for centre, count in zip(centres, pairs, strict=True)]
    total = math.fsum(squares)
    if total == 0:
        return 0.0
    of_each = (
        square**2 / centre.df for square, centre in zip(squares, centres, strict=True) if square
    )
    df = total**2 / math.fsum(of_each)
    return distributions.student_quantile(_TAIL, df) * math.sqrt(total) / len(centres)

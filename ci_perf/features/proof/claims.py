"""A claim that the head needs less of something, and what pairs of launches say of it.

Pure functions: simulations judge thousands of claims by them.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.errors import UsageError
from ci_perf.judging.confirm import alarm_reach
from ci_perf.judging.policy import ALPHA, LOOKS, WEIGHTS
from ci_perf.model import metrics
from ci_perf.model.metrics import Metric
from ci_perf.model.suite import Limit, LimitChange
from ci_perf.model.summary import Numbers

Pairs = Sequence[tuple[float, float]]
"""Values of base and head that were launched in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One metric of a workload is smaller by at least ``size``: a share, or a size in its unit."""

    workload: str
    metrics: tuple[Metric, ...]
    size: Limit
    text: str

    def gain(self, base: float, head: float) -> float:
        """Return how far the head lies below the base: a logarithm of a share, else a size."""
        return math.log(base / head) if self.size.relative else base - head

    @property
    def is_time(self) -> bool:
        """Whether it is a claim of the step time."""
        return self.metrics == (metrics.STEP_TIME,)

    @property
    def least(self) -> float:
        """Return the smallest gain that the claim allows."""
        return -math.log1p(-self.size.relative) if self.size.relative else self.size.absolute

    def find_pairs(self, numbers: Sequence[tuple[Numbers, Numbers]]) -> tuple[Metric, Pairs]:
        """Return the first metric that both sides of a pair have, and its pairs."""
        for metric in self.metrics:
            name = metric.name
            known = [(b[name], h[name]) for b, h in numbers if name in b and name in h]
            if known:
                return metric, known
        return self.metrics[0], ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What pairs say of a claim. ``holds`` is `None` where more of them may tell.

    ``low`` and ``high`` bound the gain: shares of the base of a share, else sizes. ``certainty`` is
    that of this interval.
    """

    holds: bool | None
    gain: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    pairs: int = 0
    certainty: float = 0.0


def read_claims(faster: Iterable[str], less_memory: Iterable[str]) -> tuple[Claim, ...]:
    """Read "NAME=5%" and "NAME=64MiB". Raises UsageError."""
    memory = (metrics.PEAK_ALLOCATED, metrics.HOST_RSS_PEAK)
    claims = [
        *(_read("--faster", text, (metrics.STEP_TIME,), "train_step=5%") for text in faster),
        *(_read("--less-memory", text, memory, "train_step=64MiB") for text in less_memory),
    ]
    if not claims:
        raise UsageError("prove: expected a claim, found none; next: --faster NAME=5%")
    for claim in claims:
        if (
            sum((each.workload, each.metrics) == (claim.workload, claim.metrics) for each in claims)
            > 1
        ):
            raise UsageError(f"{claim.text}: expected one claim of {claim.workload}, found several")
    return tuple(claims)


def decide(claim: Claim, pairs: Pairs, *, claims: int = 1) -> Answer:
    """Test a claim at the looks of a confirmation; `claims` share the chance of a false proof.

    The interval is Student's of the mean gain, at each look's share of alpha (Bonferroni), as an
    alarm's is. A claim that a look shows to be too large needs no more pairs.
    """
    answer = Answer(holds=None)
    gains = [claim.gain(base, head) for base, head in pairs]
    for look, weight in zip(LOOKS, WEIGHTS, strict=True):
        if look > len(gains):
            break
        seen = gains[:look]
        mean, spread = statistics.fmean(seen), statistics.stdev(seen)
        tail = ALPHA * weight / claims
        reach = alarm_reach(tail, look) * spread
        low, high = mean - reach, mean + reach
        is_last = look == LOOKS[-1]
        holds = True if low >= claim.least else False if high < claim.least or is_last else None
        answer = Answer(
            holds=holds, gain=mean, low=low, high=high, pairs=look, certainty=1 - 2 * tail
        )
        answer = _show(claim, answer)
        if holds is not None:
            break
    return answer


def _show(claim: Claim, answer: Answer) -> Answer:
    """Return the answer with shares of the base in the place of logarithms."""
    if not claim.size.relative:
        return answer
    gain, low, high = (-math.expm1(-each) for each in (answer.gain, answer.low, answer.high))
    return dataclasses.replace(answer, gain=gain, low=low, high=high)


def _read(option: str, text: str, of: tuple[Metric, ...], example: str) -> Claim:
    workload, _, said = text.rpartition("=")
    try:
        size = LimitChange(limit=said).of(Limit(), of[0])
    except ValueError as error:
        raise UsageError(f"{option}: {text!r}: {error}; for example {example}") from None
    if not workload or size.relative >= 1:
        raise UsageError(f"{option}: expected {example}, found {text!r}")
    return Claim(workload=workload, metrics=of, size=size, text=f"{option} {text}")

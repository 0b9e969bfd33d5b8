"""Whether a workload still computes the same numbers, which comes before how fast it does."""

import itertools
import math
from collections.abc import Iterator, Sequence

from ci_perf.model.comparison import NUMERICS_VARY, Numerics, Verdict
from ci_perf.model.process import Fingerprint
from ci_perf.model.suite import Limit
from ci_perf.model.summary import Subject

# A smaller number counts as one of this size. Computed in fp32 from numbers around one it carries
# a rounding error of about 1e-7 to 1e-6, which may be a large share of it and says nothing: at the
# default tolerance, differences below 1e-6 never count.
FLOOR = 1e-3

CHANGED, VARY, SAME = "numerics_changed", NUMERICS_VARY, "same_numerics"


def judge(base: Subject | None, head: Subject, limit: Limit) -> Numerics | None:
    """Compare the head with the latest session of the base, then its processes with each other.

    `None` when there is nothing to say: no fingerprint to compare with, and processes that agree
    or have a reason not to.
    """
    before = _noted(base)[:1] if base else []
    after = _noted(head)
    same = None
    if before and (after or not _is_absent(head)):
        old, new = _furthest(itertools.product(before, after or [Fingerprint()]))
        moved = difference(old, new)
        if moved is None or moved > limit.relative:
            return _row(head, limit, old, new, Verdict.NUMERICS_CHANGED, CHANGED)
        same = _row(head, limit, old, new, Verdict.UNCHANGED, SAME)
    if len(after) > 1 and not _excuse(after):
        first, second = _furthest(itertools.combinations(after, 2))
        return _row(head, limit, first, second, Verdict.NUMERICS_CHANGED, VARY)
    return same


def difference(base: Fingerprint, head: Fingerprint) -> float | None:
    """Return the largest relative difference of two numbers in the same place.

    `None` when there are not as many of them. Checksums come in pairs, a size and a weighted mean
    of the same tensor: a mean may cancel to almost nothing, so it is seen against the size.
    """
    losses = (base.losses, head.losses)
    sums = (base.checksums, head.checksums)
    if any(len(before) != len(after) for before, after in (losses, sums)):
        return None
    return max(_differences(base, head), default=0.0)


def relative(a: float, b: float, *, scale: float = 0.0) -> float:
    """Return how far two numbers are apart, as a share of the larger one, `scale` or the floor."""
    return abs(a / 2 - b / 2) / max(abs(a), abs(b), scale, FLOOR) * 2


def _differences(base: Fingerprint, head: Fingerprint) -> list[float]:
    """Return the relative difference at each place that both have."""
    differences = [relative(a, b) for a, b in zip(base.losses, head.losses, strict=False)]
    for place, (a, b) in enumerate(zip(base.checksums, head.checksums, strict=False)):
        size = place - place % 2
        scale = max(abs(base.checksums[size]), abs(head.checksums[size]))
        differences.append(relative(a, b, scale=scale))
    return differences


def _place(differences: list[float], tolerance: float) -> int:
    """Return the place of the first difference beyond the tolerance, else of the largest."""
    beyond = (place for place, size in enumerate(differences) if size > tolerance)
    largest = max(range(len(differences)), key=differences.__getitem__, default=0)
    return next(beyond, largest)


def values(fingerprint: Fingerprint) -> tuple[float, ...]:
    """Return the losses, then the checksums."""
    return (*fingerprint.losses, *fingerprint.checksums)


def _noted(subject: Subject) -> list[Fingerprint]:
    """Return the fingerprints of the latest session that hold any number."""
    return list(filter(values, subject.sessions[-1].fingerprints))


def _is_absent(subject: Subject) -> bool:
    """Whether there are no numbers because there was no time for them."""
    return any(fingerprint.absent for fingerprint in subject.sessions[-1].fingerprints)


def _furthest(pairs: Iterator[tuple[Fingerprint, Fingerprint]]) -> tuple[Fingerprint, Fingerprint]:
    """Return the pair that differs most; one with another number of values is further than any."""
    return max(pairs, key=_distance)


def _distance(pair: tuple[Fingerprint, Fingerprint]) -> float:
    distance = difference(*pair)
    return math.inf if distance is None else distance


def _excuse(fingerprints: Sequence[Fingerprint]) -> str:
    """Return the author's reason why the numbers vary; empty when there is none."""
    return next((each.varies for each in fingerprints if each.varies), "")


def _row(
    head: Subject,
    limit: Limit,
    first: Fingerprint,
    second: Fingerprint,
    verdict: Verdict,
    code: str,
) -> Numerics:
    return Numerics(
        workload=head.workload,
        base=values(first),
        head=values(second),
        losses=len(first.losses),
        place=_place(_differences(first, second), limit.relative),
        difference=difference(first, second),
        tolerance=limit.relative,
        gate=limit.gate,
        verdict=verdict,
        code=code,
        note=second.varies,
    )

"""Whether two sides may be compared, and compute the same numbers: both come before speed."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ci_perf.model import metrics
from ci_perf.model.comparison import Code, Difference, Numerics, Verdict
from ci_perf.model.environment import Software, with_memory_of
from ci_perf.model.process import Fingerprint
from ci_perf.model.suite import OWN, Limit, Tiers
from ci_perf.model.summary import Numbers, Subject

NONE = "none"
# A smaller number counts as one of this size. Computed in fp32 from numbers around one it carries
# a rounding error of about 1e-7 to 1e-6, which may be a large share of it and says nothing: at the
# default tolerance, differences below 1e-6 never count.
NUMERIC_FLOOR = 1e-3
# Two pairs may decide. The number of a loop that the clock ends is hardly the same in two launches,
# and without a tenth of its times a median can hide no loss.
_AGREEING = 2
_OTHER_TIMES = 0.1
# What one step time stands for.
_STEP = ("items_per_step", "item_unit", "statistic")


def obstacles(base: Subject, head: Subject, tiers: Tiers) -> str:
    """Say which facts of two sides differ that must not; empty when nothing is in the way."""
    if hard := _different_facts(base.machine, with_memory_of(base.machine, head.machine)):
        return f"another machine: {_spell(hard)}"
    soft = _different_software(base, head)
    if promoted := [difference for difference in soft if difference.field in tiers.hard]:
        return f"other software (a hard fact in suite.toml): {_spell(promoted)}"
    if parameters := _different(base.parameters, head.parameters):
        return f"other parameters: {_spell(parameters)}"
    # Older baselines do not say it; those of a command were made with one thread.
    if (base.threads or head.threads.startswith(OWN)) and base.threads != head.threads:
        return f"other threads: {base.threads or 'not recorded'} → {head.threads}"
    # Of twice the work a step may well take twice as long.
    steps = [{name: getattr(side, name) for name in _STEP} for side in (base, head)]
    if step := _different(*steps):
        return f"a step is not the same on both sides: {_spell(step)}"
    launches = [[each for s in side.sessions for each in s.processes] for side in (base, head)]
    return describe_other_times(*launches)


def describe_other_times(base: Iterable[Numbers], head: Iterable[Numbers]) -> str:
    """Say that a command prints another number of times in the head; each side has its launches.

    It does if the launches of the base agree on one number, and none of the head is near it. Where
    they differ among themselves, as of a loop that the clock ends, the number says nothing.
    """
    name = metrics.PRINTED_TIMES.name
    before, after = ([each[name] for each in side if name in each] for side in (base, head))
    if len(before) < _AGREEING or len(set(before)) > 1 or not after:
        return ""
    number, least, most = before[0], min(after), max(after)
    if least - _OTHER_TIMES * number <= number <= most + _OTHER_TIMES * number:
        return ""
    of_head = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return (
        f"times that --metric finds in a run: {number:g} → {of_head}; let both sides do as many "
        "steps, and print each in the same way"
    )


def soft_differences(pairs: Iterable[tuple[Subject, Subject]]) -> tuple[Difference, ...]:
    """Collect what is not the same in the software of the two sides, each difference once."""
    differences = {
        difference for base, head in pairs for difference in _different_software(base, head)
    }
    return tuple(sorted(differences, key=lambda d: (d.field, d.base, d.head)))


def _different_software(base: Subject, head: Subject) -> list[Difference]:
    """Compare the software of two sides; older records do not know the packages."""
    before, after = base.sessions[-1].soft, head.sessions[-1].soft
    is_known = bool(before.packages and after.packages)
    return [d for d in _different_facts(before, after) if is_known or d.field != "packages"]


# What a tool that installs packages can change, or another image brings.
INSTALLED = frozenset({"cuda", "cudnn", "image", "packages", "python", "torch", "transformers"})


def have_other_packages(base: Software, head: Software) -> bool:
    """Whether the packages of two sessions are not, or not surely, the same."""
    return not base.packages or any(
        difference.field in INSTALLED for difference in _different_facts(base, head)
    )


def _different_facts(base: msgspec.Struct, head: msgspec.Struct) -> list[Difference]:
    """Compare two structs by their fields, the kind of machine (its tag) among them."""
    is_same = base == head  # and mostly is, so that nothing has to be taken apart
    return [] if is_same else _different(msgspec.to_builtins(base), msgspec.to_builtins(head))


def _different(base: Mapping[str, object], head: Mapping[str, object]) -> list[Difference]:
    differences = []
    for key in sorted(base.keys() | head.keys()):
        sides = (base.get(key), head.get(key))
        if sides[0] != sides[1]:
            old, new = (NONE if value is None else str(value) for value in sides)
            if old == new:  # as 1 and "1"
                old, new = map(repr, sides)
            differences.append(Difference(field=key, base=old, head=new))
    return differences


def _spell(differences: list[Difference]) -> str:
    return ", ".join(f"{d.field}: {d.base} → {d.head}" for d in differences)


def judge_numerics(base: Subject | None, head: Subject, limit: Limit) -> Numerics | None:
    """Compare the head with the latest session of the base, then its processes with each other.

    `None` when there is nothing to say: no fingerprint to compare with, and processes that agree
    or have a reason not to.
    """
    before = _find_latest_fingerprints(base)[:1] if base else []
    after = _find_latest_fingerprints(head)
    same = None
    is_absent = any(each.absent for each in head.sessions[-1].fingerprints)  # for want of time
    if before and (after or not is_absent):
        old, new = _furthest(itertools.product(before, after or [Fingerprint()]))
        moved = numeric_difference(old, new)
        if moved is None or moved > limit.relative:
            return _row(head, limit, old, new, Verdict.NUMERICS_CHANGED, Code.BEYOND_LIMIT)
        same = _row(head, limit, old, new, Verdict.UNCHANGED, Code.WITHIN_LIMIT)
    if len(after) > 1 and not any(each.varies for each in after):
        first, second = _furthest(itertools.combinations(after, 2))
        return _row(head, limit, first, second, Verdict.NUMERICS_CHANGED, Code.NUMERICS_VARY)
    return same


def numeric_difference(base: Fingerprint, head: Fingerprint) -> float | None:
    """Return the largest relative difference of two numbers in the same place.

    `None` when there are not as many of them. Checksums come in pairs, a size and a weighted mean
    of the same tensor: a mean may cancel to almost nothing, so it is seen against the size.
    """
    losses = (base.losses, head.losses)
    sums = (base.checksums, head.checksums)
    if any(len(before) != len(after) for before, after in (losses, sums)):
        return None
    return max(_numeric_differences(base, head), default=0.0)


def relative_difference(a: float, b: float, *, scale: float = 0.0) -> float:
    """Return how far two numbers are apart, as a share of the larger one, `scale` or the floor."""
    return abs(a / 2 - b / 2) / max(abs(a), abs(b), scale, NUMERIC_FLOOR) * 2


def _numeric_differences(base: Fingerprint, head: Fingerprint) -> list[float]:
    """Return the relative difference at each place that both have."""
    differences = [
        relative_difference(a, b) for a, b in zip(base.losses, head.losses, strict=False)
    ]
    for place, (a, b) in enumerate(zip(base.checksums, head.checksums, strict=False)):
        size = place - place % 2
        scale = max(abs(base.checksums[size]), abs(head.checksums[size]))
        differences.append(relative_difference(a, b, scale=scale))
    return differences


def numeric_values(fingerprint: Fingerprint) -> tuple[float, ...]:
    """Return the losses, then the checksums."""
    return (*fingerprint.losses, *fingerprint.checksums)


def _find_latest_fingerprints(subject: Subject) -> list[Fingerprint]:
    """Return the fingerprints of the latest session that hold any number."""
    return list(filter(numeric_values, subject.sessions[-1].fingerprints))


def _furthest(pairs: Iterator[tuple[Fingerprint, Fingerprint]]) -> tuple[Fingerprint, Fingerprint]:
    """Return the pair that differs most; one with another number of values is further than any."""

    def distance(pair: tuple[Fingerprint, Fingerprint]) -> float:
        difference = numeric_difference(*pair)
        return math.inf if difference is None else difference

    return max(pairs, key=distance)


def _row(
    head: Subject,
    limit: Limit,
    first: Fingerprint,
    second: Fingerprint,
    verdict: Verdict,
    code: Code,
) -> Numerics:
    differences = _numeric_differences(first, second)
    beyond = (place for place, size in enumerate(differences) if size > limit.relative)
    largest = max(range(len(differences)), key=differences.__getitem__, default=0)
    return Numerics(
        workload=head.workload,
        base=numeric_values(first),
        head=numeric_values(second),
        losses=len(first.losses),
        place=next(beyond, largest),
        difference=numeric_difference(first, second),
        tolerance=limit.relative,
        gate=limit.gate,
        verdict=verdict,
        code=code,
        note=second.varies,
    )

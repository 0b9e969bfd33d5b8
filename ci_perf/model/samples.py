"""Samples that any harness has recorded: what `ci-perf judge` reads."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from ci_perf.model import metrics
from ci_perf.model.base import SCHEMA_VERSION, Amount, Name, Struct
from ci_perf.model.metrics import Kind, Metric, Unit

# Below this no clock and no counter tells two numbers apart, and an inverse would be endless.
SMALLEST_NOISY = 1e-12

SampleUnit = Literal["s", "1/s", "byte", "count", "J", "FLOP", "FLOP/s"]
SampleDirection = Literal["lower", "higher"]
SampleKind = Literal["time", "tail", "one_off", "host_memory", "exact"]

# How often a step was timed in one launch, launches in a session, sessions of a machine: generous,
# so that only a damaged file has more.
Steps = Annotated[tuple[Amount, ...], msgspec.Meta(min_length=1, max_length=100_000)]
Launch = Amount | Steps
Launches = Annotated[tuple[Launch, ...], msgspec.Meta(max_length=1_000)]
Session = Annotated[tuple[Launch, ...], msgspec.Meta(min_length=1, max_length=1_000)]
History = Annotated[tuple[Session, ...], msgspec.Meta(max_length=1_000)]
Pairs = Annotated[tuple[tuple[Launch, Launch], ...], msgspec.Meta(max_length=1_000)]

# Workloads and metrics that are judged together: each takes its share of memory and time.
MAX_WORKLOADS = 10_000

COUNT = Metric(name="count", title="count", unit=Unit.COUNT, kind=Kind.COUNT)
# What each is called in a report. A rate is judged, and shown, as the time that one of them takes.
KNOWN: dict[tuple[SampleKind, SampleUnit, SampleDirection], Metric] = {
    ("time", "s", "lower"): metrics.STEP_TIME,
    ("time", "1/s", "higher"): metrics.STEP_TIME,
    ("time", "FLOP/s", "higher"): metrics.FLOP_PER_S,
    ("time", "J", "lower"): metrics.ENERGY,
    ("tail", "s", "lower"): metrics.STEP_P95,
    ("one_off", "s", "lower"): metrics.FIRST_STEP,
    ("host_memory", "byte", "lower"): metrics.HOST_RSS_PEAK,
    ("exact", "byte", "lower"): metrics.PEAK_ALLOCATED,
    ("exact", "count", "lower"): COUNT,
    ("exact", "FLOP", "lower"): metrics.FLOPS,
}


class SampledMetric(Struct, frozen=True, kw_only=True):
    """What was sampled.

    ``kind`` decides how it is judged: noisy between launches (time, tail, one_off, host_memory) or
    exact.
    """

    unit: SampleUnit
    direction: SampleDirection = "lower"
    kind: SampleKind

    def __post_init__(self) -> None:
        """Refuse what nobody could judge: a count that is noisy, a memory that should grow."""
        if (self.kind, self.unit, self.direction) not in KNOWN:
            known = "; ".join(
                f"{kind} in {unit}, {direction} is better" for kind, unit, direction in KNOWN
            )
            raise ValueError(
                f"expected one of: {known}; "
                f"found {self.kind} in {self.unit}, {self.direction} is better"
            )

    def known(self) -> Metric:
        """Return the metric of ours that this is."""
        return KNOWN[self.kind, self.unit, self.direction]


class Sampled(Struct, frozen=True, kw_only=True):
    """One metric of one workload, as it was sampled.

    A launch is a fresh process: the values of its steps in the metric's unit, or one number for all
    of them. ``history`` holds sessions, oldest first. ``pairs`` are launches of base and head that
    took turns in the same job; ``head`` are launches of the head alone.
    """

    workload: Name
    metric: SampledMetric
    history: History = ()
    head: Launches = ()
    pairs: Pairs = ()

    def __post_init__(self) -> None:
        """Refuse what has no logarithm, and a workload without a single launch."""
        if not (self.history or self.head or self.pairs):
            raise ValueError(f"expected launches of {self.workload!r}, found none")
        if self.metric.kind == "exact":
            return
        for place, value in self._values():
            if value < SMALLEST_NOISY:
                raise ValueError(
                    f"{place}: expected a number >= {SMALLEST_NOISY} for kind "
                    f"{self.metric.kind!r}, found {value}"
                )

    def _values(self) -> Iterator[tuple[str, float]]:
        for i, session in enumerate(self.history):
            yield from _place_values(f"history[{i}]", session)
        yield from _place_values("head", self.head)
        for i, pair in enumerate(self.pairs):
            yield from _place_values(f"pairs[{i}]", pair)


class Samples(Struct, frozen=True, kw_only=True):
    """A file of samples: every metric of every workload once."""

    schema_version: int = SCHEMA_VERSION
    workloads: Annotated[tuple[Sampled, ...], msgspec.Meta(max_length=MAX_WORKLOADS)]

    def __post_init__(self) -> None:
        """Refuse what appears twice: nobody could say which of them is judged."""
        seen: set[tuple[str, str]] = set()
        for sampled in self.workloads:
            key = sampled.workload, sampled.metric.known().name
            if key in seen:
                raise ValueError(
                    f"workload {sampled.workload!r} appears twice with metric {key[1]!r}"
                )
            seen.add(key)


def _place_values(place: str, launches: Sequence[Launch]) -> Iterator[tuple[str, float]]:
    """Yield every value with its place in the workload."""
    for i, launch in enumerate(launches):
        if isinstance(launch, tuple):
            for j, value in enumerate(launch):
                yield f"{place}[{i}][{j}]", value
        else:
            yield f"{place}[{i}]", launch

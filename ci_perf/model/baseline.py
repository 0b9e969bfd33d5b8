"""What is committed of a machine: baselines of workloads, and its calibration."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Count,
    DateOrEmpty,
    Items,
    Name,
    NameOrEmpty,
    PositiveSeconds,
    Scalar,
    Seconds,
    Statistic,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.environment import Machine, Software
from ci_perf.model.process import Fingerprint
from ci_perf.model.run import Source
from ci_perf.model.summary import Numbers

# Older sessions say little about today's machine, and the files are read by people.
MAX_SESSIONS = 20
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
# A standard deviation of natural logarithms: 0.01 is about 1 %.
Spread = Annotated[float, msgspec.Meta(ge=0, le=100)]
DegreesOfFreedom = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class RecordedSession(Struct, frozen=True, kw_only=True):
    """One session whose numbers were accepted, and why.

    ``epochs`` counts, per metric, the changes that were accepted up to this session; absent is 0.
    Sessions of one epoch describe the same speed. The numerics have an epoch, too, under the name
    of their limit. ``canaries`` are seconds by "NAME POSITION"; older sessions hold one median for
    all positions by name. ``fingerprint`` is that of the first process with
    numbers. ``node`` is a hash of the host's name, ``launch_s`` how long a launch took, start to
    end, by the median; older sessions hold neither. ``until`` is, per metric, the last day of a
    loss that is accepted for a time; each session hands it on.
    """

    recorded_at: Text
    source: Source
    run: Name
    node: NameOrEmpty = ""
    launch_s: Seconds | None = None
    reason: Text
    epochs: dict[Name, Count] = {}
    until: dict[Name, DateOrEmpty] = {}
    tool_version: Text
    soft: Software
    canaries: Numbers = {}
    fingerprint: Fingerprint | None = None
    processes: Annotated[tuple[Numbers, ...], msgspec.Meta(min_length=1)]


class Baseline(Struct, tag_field="type", tag="baseline", frozen=True, kw_only=True):
    """One file under baselines/MACHINE/SUITE/.

    ``headline`` repeats the centre of each judged metric in its current epoch, for the reviewer of
    a diff; it must agree with the sessions, oldest first, from which it follows. ``threads`` are
    those of `Measured`, empty in older files.
    """

    headline: Numbers
    schema_version: int = SCHEMA_VERSION
    workload: Name
    suite: SuiteName
    parameters: dict[str, Scalar]
    items_per_step: Items
    item_unit: Name
    statistic: Statistic
    threads: Text = ""
    machine: Machine
    sessions: Annotated[
        tuple[RecordedSession, ...], msgspec.Meta(min_length=1, max_length=MAX_SESSIONS)
    ]


class Provenance(Struct, frozen=True, kw_only=True):
    """What was measured when. ``distrust`` are the codes of what spoke against the machine."""

    recorded_at: Text
    source: Source
    run: Name
    tool_version: Text
    suite: SuiteName
    selection: tuple[str, ...]
    soft: Software
    distrust: tuple[Name, ...] = ()


class CalibratedWorkload(Struct, frozen=True, kw_only=True):
    """How much launches of the same code differ.

    ``statistic`` is the workload's own where suite.toml sets it, else the machine's. ``launches``
    is the spread of the launches by each statistic; ``pairs`` that of the differences of launches
    next to each other, by ``statistic``, drawn towards what the suite has in common, and worth
    ``pairs_df`` observations. ``smallest_detectable`` is relative, after the most pairs that are
    launched. ``expected_pairs`` and ``inconclusive`` (a share) are of simulated confirmations in
    which nothing had changed.
    """

    processes: AtLeastOne
    statistic: Statistic
    step_time_s: PositiveSeconds
    launches: dict[Statistic, Spread]
    pairs: Spread
    pairs_df: DegreesOfFreedom
    smallest_detectable: Spread
    expected_pairs: Annotated[float, msgspec.Meta(ge=0, le=1000)]
    inconclusive: Share
    two_modes: bool


# What disturbs launches: nothing that matters; neighbours that take the CPU, whose CPU time tells
# more than the wall's; or what CPU time shows as well (a shared host, caches, clocks).
Noise = Literal["quiet", "crowded", "shared_host"]


class Calibration(Struct, tag_field="type", tag="calibration", frozen=True, kw_only=True):
    """The whole of baselines/MACHINE/calibration.json.

    ``launches`` is the typical spread of launches by each statistic: what ``statistic`` was chosen
    by. ``limit`` is the smallest limit of a step time that this machine can hold, and
    ``inconclusive`` the share of unchanged workloads that it is expected to leave undecided; no
    verdict depends on them. ``launches_cpu`` is the spread of CPU time, where it is known. On a
    crowded machine ``limit``, ``inconclusive`` and the workloads are by CPU time. ``trimmed``: a
    mean of pairs leaves out the outermost ones.
    """

    schema_version: int = SCHEMA_VERSION
    machine: Machine
    statistic: Statistic
    limit: Spread
    provenance: Provenance
    launches: dict[Statistic, Spread]
    inconclusive: Share
    noise: Noise = "quiet"
    trimmed: bool = False
    launches_cpu: Spread | None = None
    workloads: Annotated[dict[Name, CalibratedWorkload], msgspec.Meta(min_length=1)]

"""The committed baseline of one workload on one class of machine."""

from typing import Annotated

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Count,
    Items,
    Name,
    Scalar,
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


class RecordedSession(Struct, frozen=True, kw_only=True):
    """One session whose numbers were accepted, and why.

    ``epochs`` counts, per metric, the changes that were accepted up to this session; absent is 0.
    Sessions of one epoch describe the same speed. The numerics have an epoch, too, under the name
    of their limit. ``canaries`` are seconds by "NAME POSITION"; older sessions hold one median for
    all positions by name. ``fingerprint`` is that of the first process with
    numbers.
    """

    recorded_at: Text
    source: Source
    run: Name
    reason: Text
    epochs: dict[Name, Count] = {}
    tool_version: Text
    soft: Software
    canaries: Numbers = {}
    fingerprint: Fingerprint | None = None
    processes: Annotated[tuple[Numbers, ...], msgspec.Meta(min_length=1)]


class Baseline(Struct, tag_field="type", tag="baseline", frozen=True, kw_only=True):
    """One file under baselines/MACHINE/SUITE/.

    ``headline`` repeats the centre of each judged metric in its current epoch, for the reviewer of
    a diff; it must agree with the sessions, oldest first, from which it follows.
    """

    headline: Numbers
    schema_version: int = SCHEMA_VERSION
    workload: Name
    suite: SuiteName
    parameters: dict[str, Scalar]
    items_per_step: Items
    item_unit: Name
    statistic: Statistic
    machine: Machine
    sessions: Annotated[
        tuple[RecordedSession, ...], msgspec.Meta(min_length=1, max_length=MAX_SESSIONS)
    ]

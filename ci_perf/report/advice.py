"""What to do next: the topic of each row, and what its sentence in sentences.jinja names."""

import functools
from collections.abc import Iterable, Iterator
from enum import Enum

from ci_perf.model.base import OUTSIDE_SUITES, SAMPLES_SUITE
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Row,
    Severity,
    Uncompared,
    is_of_workload,
    severity_of,
)
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.run import SETUP_OF_BASE
from ci_perf.report import cells, commands, phrases, sentences, table_rows, units
from ci_perf.report.escape import Command, Phrase, Sentence, clean

# What a sentence of advice is about, in the order of sentences; its block has this name.
Topic = Enum(
    "Topic",
    "FAILED MISSING METRIC_MISSING NUMERICS_CHANGED NUMERICS_VARY REGRESSED BASE_FAILED UNTRUSTED "
    "OTHER_FILE_SYSTEM BUSY_MACHINE PAIRS NOISE ROUNDED RANGES_OVERLAP OTHER_PACKAGES "
    "UNPROVEN_PROGRAM STALE NEW FIRST_BASELINES SETUP_FAILED NOT_COMPARABLE IMPROVED NO_WORKLOAD",
)
# Of what has no numbers: nobody has to look for its sentence.
URGENT = frozenset({Topic.FAILED, Topic.MISSING, Topic.METRIC_MISSING})
_ACCEPTING = frozenset({Topic.NEW, Topic.NOT_COMPARABLE, Topic.IMPROVED})
# Their topics have the same names. A code says more than whatever else is known of a row.
_OF_SEVERITY = frozenset({Severity.REGRESSED, Severity.NEW, Severity.IMPROVED})
_OF_CODE = frozenset(
    {
        Code.UNTRUSTED,
        Code.NOT_COMPARABLE,
        Code.BASE_FAILED,
        Code.ROUNDED,
        Code.RANGES_OVERLAP,
        Code.OTHER_PACKAGES,
        Code.UNPROVEN_PROGRAM,
    }
)
# A workload with such a row is accepted with a reason, or not at all.
_BLAMES = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_ACCEPTED = _BLAMES | {Severity.IMPROVED}
# A larger limit promises little: a loss of up to as much may rightly be called unchanged.
_LARGEST_LIMIT = 0.2


def list_steps(comparison: Comparison) -> dict[Topic, Phrase]:
    """Say what to do, worst first; empty where there is nothing to do."""
    groups: dict[Topic, list[Row]] = {} if comparison.rows else {Topic.NO_WORKLOAD: []}
    if comparison.validity.is_run_invalid:
        groups[Topic.UNTRUSTED] = []
    # A gain, or a first baseline, of a workload that is blamed is accepted with the loss.
    blamed = {
        row.workload
        for row in comparison.rows
        if severity_of(row) in _BLAMES and row.code is not Code.NUMERICS_VARY
    }
    interleaved = comparison.interleaved
    is_upgrade = interleaved is not None and interleaved.environment is not None
    is_outside = comparison.suite in OUTSIDE_SUITES or _is_of_samples(comparison) or is_upgrade
    slower = [(row.drift or 1.0) > 1 for row in list_cleared(comparison)]
    if not is_outside and max(slower.count(True), slower.count(False)) > 1:  # one may be chance
        groups[Topic.STALE] = []
    for row in comparison.rows:
        topic = find_topic(row, comparison)
        is_moot = row.workload in blamed or (is_outside and topic is Topic.IMPROVED)
        if topic is not None and not (topic in _ACCEPTING and is_moot):
            groups.setdefault(topic, []).append(row)
    return {
        topic: sentences.say(
            topic.name.lower(),
            is_outside=is_outside,
            **_gather_values(table_rows.worst_first(groups[topic]), comparison),
        )
        for topic in Topic
        if topic in groups
    }


def list_cleared(comparison: Comparison) -> list[Change]:
    """Return the suspects that pairs cleared: the machine or the baseline has moved, not they."""
    return [
        row
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.code is Code.BASELINE_MOVED
    ]


def _is_of_samples(comparison: Comparison) -> bool:
    """Whether another tool launched: no command of ours measures these numbers again."""
    return comparison.suite == SAMPLES_SUITE and not comparison.head.run


# --- which topic


def is_busy(row: Row, comparison: Comparison) -> bool:
    """Whether the machine was busy while the workload of `row` ran."""
    return any(
        reason.doubt and reason.doubt.is_busy and reason.concerns(row.workload)
        for reason in comparison.validity.reasons
    )


def is_late(row: Row, comparison: Comparison) -> bool:
    """Whether a workload failed only because it ran out of time on a busy machine."""
    is_out_of_time = row.code is Code.FAILED and NO_RESULT_IN_TIME in row.note
    return is_out_of_time and is_busy(row, comparison)


def find_topic(row: Row, comparison: Comparison) -> Topic | None:
    """Return what the advice on a row is about; `None` where nothing is to be done.

    While the machine is busy, nothing else is worth trying.
    """
    severity = severity_of(row)
    if severity is Severity.NEW and row.code is Code.ACCEPTED:
        return Topic.FIRST_BASELINES
    if is_late(row, comparison):
        return Topic.BUSY_MACHINE
    if severity is Severity.FAILED:
        if row.code is Code.FAILED:
            return Topic.FAILED
        return Topic.MISSING if is_of_workload(row) else Topic.METRIC_MISSING
    if severity is Severity.NUMERICS_CHANGED:
        varies = row.code is Code.NUMERICS_VARY
        return Topic.NUMERICS_VARY if varies else Topic.NUMERICS_CHANGED
    if severity is Severity.NEW and isinstance(row, Uncompared) and row.note:
        return Topic.BASE_FAILED
    if severity not in {Severity.LIKELY_SLOWER, Severity.INCONCLUSIVE}:
        return Topic[severity.name] if severity in _OF_SEVERITY else None
    return _find_cure(row, comparison)


def _find_cure(row: Row, comparison: Comparison) -> Topic:
    """Return what would decide a row; the surest and cheapest first."""
    if isinstance(row, Change) and row.note and row.code is not Code.UNTRUSTED:
        return Topic.BASE_FAILED
    if isinstance(row, Uncompared) and row.note.startswith(SETUP_OF_BASE):
        return Topic.SETUP_FAILED
    if row.code in _OF_CODE:
        return Topic[row.code.name]
    if row.code is Code.BEYOND_LIMIT:  # and not proven
        return Topic.OTHER_FILE_SYSTEM
    pairs = row.pairs if isinstance(row, Change) else 0
    is_launched = isinstance(row, Change)  # else the budget ended before
    if is_launched and is_busy(row, comparison):
        return Topic.BUSY_MACHINE
    remedy = row.remedy if isinstance(row, Change) and pairs else None
    is_hopeless = remedy is not None and remedy.pairs is None and row.code is not Code.TWO_MODES
    return Topic.NOISE if is_hopeless else Topic.PAIRS


# --- what the sentences name


def _gather_values(rows: list[Row], comparison: Comparison) -> dict[str, object]:
    """Return what the blocks of advice may name."""
    return {
        "rows": rows,
        "comparison": comparison,
        "cells": cells,
        "commands": commands,
        "sentence": Sentence,
        "accept": functools.partial(commands.accept, rows, comparison),
        "is_of_samples": _is_of_samples(comparison),
        "in_turns": functools.partial(commands.check_by_pairs, rows, comparison),
        "is_kept": _is_kept(rows, comparison),
        "is_unpaired": not all(isinstance(row, Change) and row.pairs for row in rows),
        "limits": [(limit,) for limit in _list_limits(rows)],
    }


def _is_kept(rows: Iterable[Row], comparison: Comparison) -> bool:
    """Whether `accept` alone would keep the baseline of one of these workloads as it is."""
    changed = (
        row
        for row in comparison.rows
        if row.gate and severity_of(row) in _ACCEPTED and row.code is not Code.NUMERICS_VARY
    )
    return not set(phrases.names(changed)).issuperset(phrases.names(rows))


def _list_limits(rows: Iterable[Row]) -> Iterator[Command]:
    """Yield for each metric the limit that would decide, unless it is too large to be useful."""
    limits: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Change) and row.remedy is not None:
            limits[row.metric] = max(row.remedy.limit, limits.get(row.metric, 0.0))
    for metric, size in limits.items():
        if 0 < size <= _LARGEST_LIMIT:
            # The digits that people read, rounded up.
            limit = float(units.round_up(size).removesuffix(" %")) / 100
            yield Command(f"{clean(metric)} = {{ limit = {limit:.6g} }}")

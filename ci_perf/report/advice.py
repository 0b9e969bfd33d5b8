"""What to do next: the topic of each row, and what its sentence in sentences.jinja names."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from ci_perf.judging import signs
from ci_perf.judging.policy import LOOKS
from ci_perf.model import samples
from ci_perf.model.base import OUTSIDE_SUITES
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Row,
    Severity,
    Verdict,
    is_of_workload,
    severity_of,
)
from ci_perf.model.environment import is_same
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.report import cells, commands, phrases, provenance, sentences, table_rows, units
from ci_perf.report.escape import Command, Sentence, clean
from ci_perf.report.phrases import Phrase

# What a sentence of advice is about, in the order of sentences; its block has this name.
Topic = Enum(
    "Topic",
    "FAILED NUMERICS_CHANGED NUMERICS_VARY REGRESSED HISTORY_ALONE BASE_FAILED MISSING "
    "METRIC_MISSING UNTRUSTED BUSY_MACHINE MORE_WORK NO_PAIRS FEW_PAIRS TWO_MODES NOISE "
    "SHORT_HISTORY MACHINE_MOVED ROUNDED RANGES_OVERLAP OTHER_PACKAGES STALE NEW "
    "FIRST_BASELINES NOT_COMPARABLE IMPROVED",
)
# A workload gets only the first of these pieces of advice: the others would contradict it.
_EXCLUSIVE = (
    Topic.BUSY_MACHINE,
    Topic.MORE_WORK,
    Topic.NO_PAIRS,
    Topic.FEW_PAIRS,
    Topic.TWO_MODES,
    Topic.NOISE,
    Topic.SHORT_HISTORY,
    Topic.MACHINE_MOVED,
)
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
    }
)
# Where the launches are another tool's, its topics have words of their own.
_OF_SAMPLES = {
    Topic.REGRESSED: "samples_regressed",
    Topic.METRIC_MISSING: "samples_metric_missing",
    Topic.ROUNDED: "rounded",
    Topic.RANGES_OVERLAP: "ranges_overlap",
    Topic.NEW: "samples_new",
}
# A workload with such a row is accepted with a reason, or not at all.
_BLAMES = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_ACCEPTED = _BLAMES | {Severity.IMPROVED}
# Reason codes of validity: something else used the CPUs or the memory meanwhile.
BUSY_CODES = frozenset({"host_pressure", "memory_pressure", "cgroup_throttled"})
# A larger limit promises little: a loss of up to as much may rightly be called unchanged.
_LARGEST_LIMIT = 0.2


def list_steps(comparison: Comparison) -> list[Phrase]:
    """Say what to do, worst first; empty where there is nothing to do."""
    is_of_samples = comparison.suite == samples.SUITE and not comparison.head.run
    if not comparison.rows:
        block = "samples_nothing" if is_of_samples else "no_workload"
        return [sentences.say(block, comparison=comparison, commands=commands)]
    groups: dict[Topic, list[Row]] = {}
    if comparison.validity.is_run_invalid:
        groups[Topic.UNTRUSTED] = []
    if len(list_cleared(comparison)) > 1:  # a single one may be a coincidence
        groups[Topic.STALE] = []
    for row, topic in _find_topics(comparison):
        groups.setdefault(topic, []).append(row)
    if is_of_samples:
        return list(_advise_samples(groups))
    return [
        sentences.say(topic.name.lower(), **_gather_values(groups[topic], comparison))
        for topic in Topic
        if topic in groups
    ]


def list_cleared(comparison: Comparison) -> list[Change]:
    """Return the suspects that pairs cleared: the machine or the baseline has moved, not they."""
    return [
        row
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.code is Code.BASELINE_MOVED
    ]


def _find_topics(comparison: Comparison) -> Iterator[tuple[Row, Topic]]:
    """Yield the rows that need advice, worst first, with the topic of it.

    To accept gains, or a first baseline, of a workload that is blamed is no advice before somebody
    has looked, and its own advice accepts them too.
    """
    blamed = {
        row.workload
        for row in comparison.rows
        if severity_of(row) in _BLAMES and row.code is not Code.NUMERICS_VARY
    }
    is_outside = comparison.suite in OUTSIDE_SUITES
    topics = [
        (row, topic)
        for row in table_rows.worst_first(comparison.rows)
        if (topic := find_topic(row, comparison)) is not None
        and not (topic in _ACCEPTING and (is_outside or row.workload in blamed))
    ]
    first: dict[str, Topic] = {}
    for topic in _EXCLUSIVE:
        for row in (row for row, other in topics if other is topic):
            first.setdefault(row.workload, topic)
    for row, topic in topics:
        if topic not in _EXCLUSIVE or topic is first[row.workload]:
            yield row, topic


# --- which topic


def is_busy(row: Row, comparison: Comparison) -> bool:
    """Whether the machine was busy while the workload of `row` ran."""
    return any(
        reason.code in BUSY_CODES and reason.workload in {"", row.workload}
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
    if severity not in {Severity.LIKELY_SLOWER, Severity.INCONCLUSIVE}:
        return Topic[severity.name] if severity in _OF_SEVERITY else None
    if isinstance(row, Change) and row.code is not Code.UNTRUSTED:
        if row.note:
            return Topic.BASE_FAILED
        if row.code is Code.HISTORY_ALONE and not signs.shows_more_work(row):
            return Topic.HISTORY_ALONE
    is_likely = row.verdict is Verdict.LIKELY_SLOWER and row.code is not Code.UNTRUSTED
    quiet = Topic.MORE_WORK if is_likely else _find_cure(row, comparison)
    return Topic.BUSY_MACHINE if quiet in _EXCLUSIVE and is_busy(row, comparison) else quiet


def _find_cure(row: Row, comparison: Comparison) -> Topic:
    """Return what would decide a row; the surest and cheapest first."""
    if row.code in _OF_CODE:
        return Topic[row.code.name]
    interleaved = comparison.interleaved
    pairs = row.pairs if isinstance(row, Change) else 0
    # Pairs do without a history; where the budget was spent before any, more of it gives some.
    if not (interleaved is not None and interleaved.stopped == "budget" and not pairs):
        if row.code is Code.MACHINE_MOVED:
            return Topic.MACHINE_MOVED
        if row.code is Code.TOO_FEW_SESSIONS:
            return Topic.SHORT_HISTORY
    remedy = row.remedy if isinstance(row, Change) and pairs else None
    if remedy is not None and remedy.pairs is not None:
        return Topic.FEW_PAIRS
    if row.code is Code.TWO_MODES:
        return Topic.TWO_MODES
    if remedy is not None:
        return Topic.NOISE
    return Topic.FEW_PAIRS if interleaved else Topic.NO_PAIRS


# --- what the sentences name


def _gather_values(rows: list[Row], comparison: Comparison) -> dict[str, object]:
    """Return what the blocks of advice may name."""
    changes = [row for row in rows if isinstance(row, Change)]
    base, head = comparison.base.machine, comparison.head.machine
    is_elsewhere = base is not None and head is not None and not is_same(base, head)
    counted = (name for row in changes if row.signs for name in row.signs.moved)

    def accept(*, reason: bool = False, append: bool = False) -> Phrase:
        return sentences.say(
            "accepting",
            command=commands.accept(rows, comparison, reason=reason, append=append),
            is_busy=any(is_busy(row, comparison) for row in rows),
        )

    return {
        "rows": rows,
        "comparison": comparison,
        "cells": cells,
        "commands": commands,
        "sentence": Sentence,
        "accept": accept,
        "is_outside": comparison.suite in OUTSIDE_SUITES,
        "in_turns": functools.partial(commands.check_by_pairs, rows, comparison),
        "is_kept": _is_kept(rows, comparison),
        "counts": phrases.joined((phrases.metric_title(name),) for name in dict.fromkeys(counted)),
        "limits": [(limit,) for limit in _list_limits(changes)],
        "machines": provenance.machines(base, head) if is_elsewhere else (),
    }


def _is_kept(rows: Iterable[Row], comparison: Comparison) -> bool:
    """Whether `accept` alone would keep the baseline of one of these workloads as it is."""
    changed = (
        row
        for row in comparison.rows
        if row.gate and severity_of(row) in _ACCEPTED and row.code is not Code.NUMERICS_VARY
    )
    return not set(phrases.names(changed)).issuperset(phrases.names(rows))


def _list_limits(rows: Iterable[Change]) -> Iterator[Command]:
    """Yield for each metric the limit that would decide, unless it is too large to be useful."""
    limits: dict[str, float] = {}
    for row in rows:
        if row.remedy is not None:
            limits[row.metric] = max(row.remedy.limit, limits.get(row.metric, 0.0))
    for metric, size in limits.items():
        if size <= _LARGEST_LIMIT:
            yield Command(f"{clean(metric)} = {{ limit = {_round_up(size):.6g} }}")


def _round_up(size: float) -> float:
    """Round a share up to the digits that people read."""
    return float(units.rounded_up(size).removesuffix(" %").replace(",", "")) / 100


def _advise_samples(groups: Mapping[Topic, list[Row]]) -> Iterator[Phrase]:
    """Say what to do where ci-perf launched nothing: none of its commands measures again."""
    for topic, block in _OF_SAMPLES.items():
        if topic in groups:
            yield sentences.say(block, rows=groups[topic])
    rows = [
        row
        for topic, rows in groups.items()
        for row in rows
        if topic not in _OF_SAMPLES
        and isinstance(row, Change)
        and row.verdict in {Verdict.LIKELY_SLOWER, Verdict.INCONCLUSIVE}
    ]
    without = [row for row in rows if not row.pairs]
    noisy = [row for row in rows if row.remedy is not None and row.remedy.pairs is None]
    short = [row for row in rows if row.pairs and row not in noisy]
    if without:
        yield sentences.say("samples_without_pairs", rows=without, looks=LOOKS)
    if short:
        yield sentences.say("samples_few_pairs", rows=short, more_pairs=_count_more_pairs)
    if noisy:
        smallest = max(row.remedy.limit for row in noisy if row.remedy)
        limit = Command(f"--limit {_round_up(smallest):.6g}") if smallest <= 1 else None
        yield sentences.say("samples_noise", rows=noisy, limit=limit)


def _count_more_pairs(row: Change) -> int:
    """Return how many pairs would decide beside those that were given."""
    wanted = row.remedy.pairs if row.remedy is not None else None
    return (wanted or next((look for look in LOOKS if look > row.pairs), row.pairs + 1)) - row.pairs

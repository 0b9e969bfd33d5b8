"""What to do next, and what its sentences in sentences.jinja name."""

import functools
from collections.abc import Iterable, Iterator

from ci_perf.model.base import OUTSIDE_SUITES, SAMPLES_SUITE
from ci_perf.model.comparison import Change, Code, Comparison, Row, Severity
from ci_perf.model.validity import Doubt
from ci_perf.report import cells, commands, phrases, sentences, units
from ci_perf.report.escape import Command, Phrase, Sentence, clean
from ci_perf.report.sheet import Sheet, Topic

# Of what has no numbers: nobody has to look for its sentence.
URGENT = frozenset({Topic.FAILED, Topic.MISSING, Topic.METRIC_MISSING})
_ACCEPTING = frozenset({Topic.NEW, Topic.NOT_COMPARABLE, Topic.IMPROVED})
# A workload with such a row is accepted with a reason, or not at all.
_BLAMES = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_ACCEPTED = _BLAMES | {Severity.IMPROVED}
# A larger limit promises little: a loss of up to as much may rightly be called unchanged.
_LARGEST_LIMIT = 0.2


def list_steps(sheet: Sheet) -> dict[Topic, Phrase]:
    """Say what to do, worst first; empty where there is nothing to do."""
    comparison, interleaved = sheet.comparison, sheet.comparison.interleaved
    groups: dict[Topic, list[Row]] = {} if sheet.findings else {Topic.NO_WORKLOAD: []}
    if comparison.validity.is_run_invalid:
        groups[Topic.UNTRUSTED] = []
    chosen = [each for each in sheet.findings if each.row.code is not Code.NUMERICS_VARY]
    # A gain, or a first baseline, of a workload that is blamed is accepted with the loss.
    blamed = {each.row.workload for each in chosen if each.severity in _BLAMES}
    accepted = {
        each.row.workload for each in chosen if each.row.gate and each.severity in _ACCEPTED
    }
    is_upgrade = interleaved is not None and interleaved.environment is not None
    is_outside = comparison.suite in OUTSIDE_SUITES or _is_of_samples(comparison) or is_upgrade
    slower = [(row.drift or 1.0) > 1 for row in list_cleared(comparison)]
    if not is_outside and max(slower.count(True), slower.count(False)) > 1:  # one may be chance
        groups[Topic.STALE] = []
    for finding in sheet.findings:
        topic, row = finding.topic, finding.row
        is_moot = row.workload in blamed or (is_outside and topic is Topic.IMPROVED)
        if topic is not None and not (topic in _ACCEPTING and is_moot):
            groups.setdefault(topic, []).append(row)
    return {
        topic: sentences.say(
            topic.name.lower(),
            is_outside=is_outside,
            # Whether `accept` alone would keep the baseline of one of these workloads as it is.
            is_kept=not accepted.issuperset(phrases.names(groups[topic])),
            **_gather_values(groups[topic], comparison),
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


# --- what the sentences name


def _gather_values(rows: list[Row], comparison: Comparison) -> dict[str, object]:
    """Return what the blocks of advice may name."""
    reasons = comparison.validity.reasons
    return {
        "rows": rows,
        "comparison": comparison,
        "cells": cells,
        "commands": commands,
        "sentence": Sentence,
        "accept": functools.partial(commands.accept, rows, comparison),
        "is_of_samples": _is_of_samples(comparison),
        "in_turns": functools.partial(commands.check_by_pairs, rows, comparison),
        "is_unpaired": not all(isinstance(row, Change) and row.pairs for row in rows),
        "is_gating": any(row.gate for row in rows),
        "edits": [each.detail for each in reasons if each.doubt is Doubt.CHECKOUT_CHANGED],
        "limits": [(limit,) for limit in _list_limits(rows)],
    }


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

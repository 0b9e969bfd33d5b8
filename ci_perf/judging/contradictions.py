"""Pairs and history that cannot both be right: sides that have changed places, for example."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import msgspec

from ci_perf.judging import changes
from ci_perf.judging.candidates import Candidate
from ci_perf.model.comparison import Change, Interval


def mark(judged: Iterable[Change], asked: Sequence[Candidate]) -> Iterator[Change]:
    """Yield the changes; where one side proves a gain and the other a loss, with the history's."""
    alone = [replace(each, pairs=(), cycles=(), earlier=(), said=None) for each in asked]
    by_history = {
        (known.change.workload, known.change.metric): known.change.interval
        for known in changes.judge([each for each in alone if each.history])
        if known.change is not None
    }
    for change in judged:
        known = by_history.get((change.workload, change.metric))
        is_contrary = change.pairs > 0 and _are_contrary(change.interval, known)
        yield msgspec.structs.replace(change, contrary=known) if is_contrary else change


def _are_contrary(first: Interval | None, second: Interval | None) -> bool:
    if first is None or second is None:
        return False
    return first.high < 1 < second.low or second.high < 1 < first.low

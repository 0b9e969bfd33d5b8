"""Describe the committed history: by machine and suite, every metric that gates."""

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.baselines import change_points, layout, summaries
from ci_perf.errors import UsageError
from ci_perf.gate import Notify, compare
from ci_perf.judging import trends
from ci_perf.model import codec
from ci_perf.model.baseline import Baseline
from ci_perf.model.suite import is_selected
from ci_perf.report.history import SuiteHistory

_DAY_S = 86_400


def read(
    baselines: Path, workloads: Path, *, names: tuple[str, ...], notify: Notify
) -> list[SuiteHistory]:
    """Describe what is committed below `baselines` of the workloads `names`; none means all.

    `workloads` holds the suite.toml that says which metrics gate. Change points need ruptures;
    `notify` is told where it is missing. Raises UsageError: no such workload, InvalidFileError.
    """
    committed = layout.read_everything(baselines)
    _check_names(names, sorted({baseline.workload for baseline in committed}), baselines)
    selected = [baseline for baseline in committed if is_selected(baseline.workload, names)]
    if not change_points.is_known():
        notify(f"no change points: ruptures is not installed; next: {change_points.INSTALL}")
    return list(_histories(selected, workloads, notify))


def _check_names(names: Iterable[str], known: list[str], baselines: Path) -> None:
    for name in names:
        if not any(is_selected(workload, (name,)) for workload in known):
            families = {workload.partition(".")[0] for workload in known}
            hint = codec.did_you_mean(name, [*sorted(families), *known])
            raise UsageError(f"{baselines}: has no baseline of a workload {name!r}; {hint}")


def _histories(
    baselines: Iterable[Baseline], workloads: Path, notify: Notify
) -> Iterator[SuiteHistory]:
    """Group what was measured on one class of machine in one suite."""
    now = dt.datetime.now(dt.UTC)
    split = change_points.places if change_points.is_known() else None
    for (machine, suite), group in itertools.groupby(baselines, key=_machine_and_suite):
        threshold = trends.gated(compare.rules(workloads, suite, notify=notify).limits)
        lines = trends.describe(list(map(summaries.subject, group)), threshold, split=split)
        yield SuiteHistory(
            machine=machine, suite=suite, lines=lines, days=lambda time: _days(time, now)
        )


def _machine_and_suite(baseline: Baseline) -> tuple[str, str]:
    return layout.machine_key(baseline.machine), baseline.suite


def _days(time: str, now: dt.datetime) -> float | None:
    """Return how long ago a time was; `None` for text that is no time: anybody edits a file."""
    try:
        then = dt.datetime.fromisoformat(time)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return (now - then).total_seconds() / _DAY_S

"""What a change has accepted: the numbers for which it commits a new epoch, or a new file."""

from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.judge import subjects
from ci_perf.model import metrics
from ci_perf.model.baseline import Baseline
from ci_perf.model.environment import Machine, is_same


def since(root: Path, base: Path, machine: Machine, suite: str) -> dict[str, tuple[str, ...]]:
    """Name the metrics by workload whose baseline below `root` is newer than that below `base`.

    Another epoch is, and so is a history without a session in common: nothing else than accepting
    makes either. Sessions that were appended are not.
    """
    found = {}
    for after in layout.read_all(root, machine, suite):
        if is_same(after.machine, machine):
            before = _read(layout.path(base, machine, suite, after.workload))
            if names := _accepted(before, after):
                found[after.workload] = names
    return found


def _read(file: Path) -> Baseline | None:
    """Return the base's file; one that cannot be read any more is none."""
    try:
        return layout.read(file) if file.is_file() else None
    except InvalidFileError:
        return None


def _accepted(before: Baseline | None, after: Baseline) -> tuple[str, ...]:
    known = {session.run for session in before.sessions} if before else set()
    names = tuple(metric.name for metric in metrics.JUDGED)
    if before is None or known.isdisjoint(session.run for session in after.sessions):
        return names
    return tuple(
        name
        for name in names
        if subjects.epoch(after.sessions, name) > subjects.epoch(before.sessions, name)
    )

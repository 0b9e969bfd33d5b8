"""Baseline files as the judge sees them, and what a change accepts by them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.baseline import Baseline
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.run import Source
from ci_perf.model.summary import SessionNumbers, Subject, Summary
from ci_perf.model.validity import Status, Validity


def baselines(root: Path, machine: Machine, suite: str) -> Summary:
    """Read the baselines of one class of machine and suite as one side of a comparison."""
    return _side(root, layout.read_all(root, machine, suite), machine, suite)


def read_base_summary(
    base: Path, head: Path, machine: Machine, suite: str, accepted: Mapping[str, Collection[str]]
) -> Summary:
    """Read the baselines of the base, with the sessions by which the head has `accepted` metrics.

    Of these sessions nothing else counts; `head` is the folder that a reader knows.
    """
    committed = [
        _with_accepted(before, head, accepted.get(before.workload, ()))
        for before in layout.read_all(base, machine, suite)
    ]
    known = {before.workload for before in committed}
    added = [layout.read(layout.path(head, machine, suite, name)) for name in accepted]
    committed += [after for after in added if after.workload not in known]
    return _side(head, sorted(committed, key=lambda each: each.workload), machine, suite)


def _with_accepted(before: Baseline, head: Path, names: Collection[str]) -> Baseline:
    if not names:
        return before
    after = layout.read(layout.path(head, before.machine, before.suite, before.workload))
    known = {session.run for session in before.sessions}
    new = [session for session in after.sessions if session.run not in known]
    if len(new) == len(after.sessions):
        return after  # another history
    is_numeric = metrics.FINGERPRINT in names
    sessions = [
        msgspec.structs.replace(
            session,
            processes=tuple(
                {name: value for name, value in process.items() if name in names}
                for process in session.processes
            ),
            epochs={name: epoch for name, epoch in session.epochs.items() if name in names},
            fingerprint=session.fingerprint if is_numeric else before.sessions[-1].fingerprint,
        )
        for session in new
    ]
    return msgspec.structs.replace(before, sessions=(*before.sessions, *sessions))


def _side(root: Path, committed: Sequence[Baseline], machine: Machine, suite: str) -> Summary:
    sessions = [session for baseline in committed for session in baseline.sessions]
    latest = max(sessions, key=lambda session: session.recorded_at, default=None)
    return Summary(
        label=str(layout.folder(root, committed[0].machine if committed else machine, suite)),
        source=latest.source if latest else Source(commit="none", branch="none", dirty=False),
        run=latest.run if latest else "",
        suite=suite,
        selection=(),
        validity=Validity(status=Status.VALID),  # nothing else is ever accepted
        subjects=tuple(map(subject, committed)),
        failed=(),
    )


def subject(baseline: Baseline) -> Subject:
    """Return one workload with its whole history."""
    return Subject(
        workload=baseline.workload,
        parameters=baseline.parameters,
        items_per_step=baseline.items_per_step,
        item_unit=baseline.item_unit,
        statistic=baseline.statistic,
        threads=baseline.threads,
        machine=baseline.machine,
        sessions=tuple(
            SessionNumbers(
                commit=session.source.commit,
                recorded_at=session.recorded_at,
                node=session.node,
                soft=session.soft,
                processes=session.processes,
                fingerprints=(session.fingerprint,) if session.fingerprint else (),
                canaries=session.canaries,
                epochs=session.epochs,
            )
            for session in baseline.sessions
        ),
    )


def find_accepted_since(
    root: Path, base: Path, machine: Machine, suite: str
) -> dict[str, tuple[str, ...]]:
    """Name the metrics, by workload, for which `root` has accepted a change since `base`.

    That is a metric with a later epoch, and every metric of a history without a session in common.
    Only accepting makes either. Appended sessions accept nothing.
    """
    accepted = {}
    for after in layout.read_all(root, machine, suite):
        if is_same(after.machine, machine):
            before = _read(layout.path(base, machine, suite, after.workload))
            if names := _find_accepted(before, after):
                accepted[after.workload] = names
    return accepted


def edits(base: Path, head: Path, suite: str) -> tuple[BaselineEdit, ...]:
    """Say which baselines of a suite differ between two folders, whatever the machine, by path.

    Raises InvalidFileError.
    """
    before, after = (
        {
            layout.path(Path(), each.machine, suite, each.workload).as_posix(): each
            for each in layout.read_everything(root, suite)
        }
        for root in (base, head)
    )
    return tuple(
        edit(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def edit(path: str, before: Baseline | None, after: Baseline | None) -> BaselineEdit:
    """Say what becomes of one baseline; the reason is that of a session that was not there."""
    newest = after.sessions[-1] if after else None
    is_added = newest is not None and not (before and before.sessions[-1] == newest)
    return BaselineEdit(
        path=path,
        before=before.headline if before else {},
        after=after.headline if after else {},
        accepted=_find_accepted(before, after) if after else (),
        reason=newest.reason if newest and is_added else "",
    )


def _read(file: Path) -> Baseline | None:
    """Return a baseline of the base; `None` where it is missing or cannot be read."""
    try:
        return layout.read(file) if file.is_file() else None
    except InvalidFileError:
        return None


def _find_accepted(before: Baseline | None, after: Baseline) -> tuple[str, ...]:
    known = {session.run for session in before.sessions} if before else set()
    judged = metric_values.find_judged(after.sessions)
    names = (*(metric.name for metric in judged), metrics.FINGERPRINT)
    if before is None or known.isdisjoint(session.run for session in after.sessions):
        return names
    return tuple(
        name
        for name in names
        if metric_values.current_epoch(after.sessions, name)
        > metric_values.current_epoch(before.sessions, name)
    )

"""Baseline files as the judge sees them."""

from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.model.baseline import Baseline, RecordedSession
from ci_perf.model.environment import Machine
from ci_perf.model.run import Source
from ci_perf.model.summary import Sitting, Subject, Summary
from ci_perf.model.validity import Status, Validity


def baselines(root: Path, machine: Machine, suite: str) -> Summary:
    """Read the baselines of one class of machine and suite as one side of a comparison."""
    found = layout.read_all(root, machine, suite)
    latest = _latest(found)
    return Summary(
        label=str(layout.folder(root, found[0].machine if found else machine, suite)),
        source=latest.source if latest else Source(commit="none", branch="none", dirty=False),
        run=latest.run if latest else "",
        suite=suite,
        selection=(),
        validity=Validity(status=Status.VALID),  # nothing else is ever accepted
        subjects=tuple(map(subject, found)),
        failed=(),
    )


def _latest(found: tuple[Baseline, ...]) -> RecordedSession | None:
    """Return the session that was recorded last, over all workloads."""
    sessions = [session for baseline in found for session in baseline.sessions]
    return max(sessions, key=lambda session: session.recorded_at, default=None)


def subject(baseline: Baseline) -> Subject:
    """Return one workload with all that its history holds."""
    return Subject(
        workload=baseline.workload,
        parameters=baseline.parameters,
        items_per_step=baseline.items_per_step,
        item_unit=baseline.item_unit,
        statistic=baseline.statistic,
        machine=baseline.machine,
        sessions=tuple(
            Sitting(
                commit=session.source.commit,
                recorded_at=session.recorded_at,
                soft=session.soft,
                processes=session.processes,
                fingerprints=(session.fingerprint,) if session.fingerprint else (),
                canaries=session.canaries,
                epochs=session.epochs,
            )
            for session in baseline.sessions
        ),
    )

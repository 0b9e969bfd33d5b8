"""Builders of what the judge keeps of one workload: its sessions, with numbers per launch."""

from ci_perf.model.summary import SessionNumbers, Subject
from tests.runs import CPU, SOFT


def a_session(*launches, day=1, epochs=None):
    """One session; each launch is its numbers by the name of their metric."""
    return SessionNumbers(
        commit=f"commit{day}",
        recorded_at=f"2026-11-{day:02}T10:00:00Z",
        soft=SOFT,
        processes=launches,
        epochs=epochs or {},
    )


def a_subject(*sessions, workload="w", parameters=None):
    """One workload on one machine, oldest session first."""
    return Subject(
        workload=workload,
        parameters=parameters or {},
        items_per_step=1.0,
        item_unit="step",
        statistic="median",
        machine=CPU,
        sessions=sessions,
    )

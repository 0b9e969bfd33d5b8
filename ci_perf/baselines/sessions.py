"""The order of a history, and how much of it is kept: the same for who accepts and who merges."""

from collections.abc import Iterable

from ci_perf.model.baseline import MAX_SESSIONS, RecordedSession


def newest(history: Iterable[RecordedSession]) -> tuple[RecordedSession, ...]:
    """Return the sessions that a file has room for, oldest first."""
    return tuple(sorted(history, key=_age))[-MAX_SESSIONS:]


def _age(session: RecordedSession) -> tuple[int, str]:
    """Sort by accepted changes before time.

    What a branch measured without a change that was merged meanwhile describes older code, however
    late that was, and must not be the latest session.
    """
    return sum(session.epochs.values()), session.recorded_at

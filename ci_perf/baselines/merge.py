"""Two branches that both recorded sessions of one workload, made one history again.

Sessions are united by the id of their run. Where both sides have moved on by changes of their own
nobody has measured both changes together, so that is a conflict for a person.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ci_perf.baselines import layout, sessions
from ci_perf.errors import CiPerfError
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession

# What one step time stands for, and where: of two of these no history can be made.
_FIXED = (
    "workload",
    "suite",
    "machine",
    "parameters",
    "items_per_step",
    "item_unit",
    "statistic",
)
_NEXT = "next: keep one side (git checkout --ours or --theirs), measure what is merged, accept it"

_Epoch = tuple[str, int]
_ById = Mapping[str, RecordedSession]


class ConflictError(CiPerfError):
    """Two histories that cannot be made one."""


def merge(base: Baseline | None, ours: Baseline, theirs: Baseline, *, name: str) -> Baseline:
    """Unite what both sides added to `base`, which is `None` where both made the file.

    Raises ConflictError, which begins with `name`.
    """
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    if reason := _conflict(base, ours, theirs):
        raise ConflictError(f"{name}: cannot be merged: {reason}; {_NEXT}")
    united = {session.run: session for session in (*ours.sessions, *theirs.sessions)}
    by_run = sorted(united.values(), key=lambda session: session.run)  # equal times: whichever side
    return layout.with_headline(
        msgspec.structs.replace(
            ours,
            sessions=sessions.newest(by_run),
            schema_version=max(ours.schema_version, theirs.schema_version),
        )
    )


def _conflict(base: Baseline | None, ours: Baseline, theirs: Baseline) -> str:
    """Return what is in the way; empty when nothing is."""
    if differing := [name for name in _FIXED if getattr(ours, name) != getattr(theirs, name)]:
        return f"expected the same {' and '.join(differing)} on both sides, found two"
    for side, found in (("ours", ours), ("theirs", theirs)):
        if base and (gone := _gone(base, found)):
            return f"{side} began the history anew (without run {gone}), the other side went on"
    mine, other = _by_id(ours), _by_id(theirs)
    edited = [run for run in mine if run in other and mine[run] != other[run]]
    if edited:
        return f"expected the same numbers of run {edited[0]} on both sides, found others"
    return _moved_apart(base, ours, theirs)


def _gone(base: Baseline, side: Baseline) -> str:
    """Return a run that `side` no longer has, unless there was no more room for it."""
    kept = _by_id(side)
    gone = [session.run for session in base.sessions if session.run not in kept]
    is_oldest = gone == [session.run for session in base.sessions[: len(gone)]]
    had_no_room = len(side.sessions) == MAX_SESSIONS and is_oldest
    return "" if had_no_room or not gone else gone[0]


def _moved_apart(base: Baseline | None, ours: Baseline, theirs: Baseline) -> str:
    """Say what both sides have changed: an epoch of one number that two different runs began."""
    names = {name for one in (*ours.sessions, *theirs.sessions) for name in one.epochs}
    known = _openers(base.sessions, names) if base else {}
    mine, other = _openers(ours.sessions, names), _openers(theirs.sessions, names)
    both = sorted((mine.keys() & other.keys()) - known.keys())
    apart = [name for name, number in both if mine[name, number] != other[name, number]]
    if not apart:
        return ""
    if apart[0] == _ANY:
        return "both sides began a history of their own"
    return f"both sides accepted a change of {', '.join(dict.fromkeys(apart))}"


# Metrics whose epoch no session has moved: all are in the same one.
_ANY = ""


def _openers(history: Iterable[RecordedSession], names: set[str]) -> dict[_Epoch, str]:
    """Return the run that began each epoch of each metric."""
    found: dict[_Epoch, str] = {}
    for session in history:
        for name in (_ANY, *names):
            found.setdefault((name, session.epochs.get(name, 0)), session.run)
    return found


def _by_id(side: Baseline) -> _ById:
    return {session.run: session for session in side.sessions}

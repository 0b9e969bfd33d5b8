"""Whether the checkout of the head stayed as it was while it was measured."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.system import git

# A tracked file: when it was written (ns), and how many bytes it has.
_Stamps = Mapping[str, tuple[int, int]]

_ANSWER_S = 300.0
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutState:
    """The commit that is checked out, and when the tracked files of both sides were written."""

    commit: str
    head: _Stamps = field(default_factory=dict)
    base: _Stamps = field(default_factory=dict)


def read_state(head: Path, base: Path | None) -> CheckoutState:
    """Read the state of the checkout at `head`, with the files that it shares with `base`."""
    names = _list_tracked(head) if base else []
    return CheckoutState(
        commit=git.source(head).commit,
        head=_read_stamps(head, names),
        base=_read_stamps(base, names) if base else {},
    )


def describe_move(before: CheckoutState, after: CheckoutState, *, has_pairs: bool) -> str:
    """Say what has changed in the checkout of the head alone; "" for nothing.

    Without pairs, the launches of a command may have rewritten files of the head alone.
    """
    if before.commit != after.commit:
        return f"HEAD was {before.commit}, and is {after.commit}"
    own = _list_changed(before.head, after.head) - _list_changed(before.base, after.base)
    if not own or not has_pairs:
        return ""
    more = [f"{len(own) - _MOST_NAMED} more"] * (len(own) > _MOST_NAMED)
    return f"written in the head alone: {', '.join([*sorted(own)[:_MOST_NAMED], *more])}"


def _list_tracked(root: Path) -> list[str]:
    """Name the tracked files of the whole repository, relative to `root`."""
    try:
        listed = git.read(root, "ls-files", "-z", ":/", timeout_s=_ANSWER_S)
    except CiPerfError:
        return []
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _read_stamps(root: Path, names: list[str]) -> _Stamps:
    stamps = {}
    for name in names:
        try:
            status = os.lstat(root / name)
        except OSError:  # deleted, or only in the head
            continue
        if not stat.S_ISDIR(status.st_mode):
            stamps[name] = (status.st_mtime_ns, status.st_size)
    return stamps


def _list_changed(before: _Stamps, after: _Stamps) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}

"""Merge the histories of two branches that both recorded sessions of one workload.

Sessions are united by the id of their run. Where both sides accepted changes of their own, nobody
has measured both changes together, so that is a conflict for a person.

`install_driver` teaches one clone to merge baselines so. Half of it is committed (`.gitattributes`
says which files), the other half belongs to the clone: git runs no command of a repository.
"""

import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession
from ci_perf.system import files

# What a step time stands for, and where it was measured: one history has one of each.
_FIXED = (
    "workload",
    "suite",
    "machine",
    "parameters",
    "items_per_step",
    "item_unit",
    "statistic",
    "threads",
)
_NEXT = "next: keep one side (git checkout --ours or --theirs), measure what is merged, accept it"
_DRIVER = "ci-perf"
_ATTRIBUTES = ".gitattributes"
# Stands for all metrics whose epoch no session has moved: they share one.
_ANY = ""
_Epoch = tuple[str, int]
_ById = Mapping[str, RecordedSession]


class ConflictError(CiPerfError):
    """Two histories that cannot be merged."""


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
            sessions=layout.newest_sessions(by_run),
            schema_version=max(ours.schema_version, theirs.schema_version),
        )
    )


def install_driver(baselines: Path) -> Path:
    """Configure the clone around the current folder; return the attributes file, to be committed.

    Raises UsageError (not in a repository, baselines outside it) and CannotWriteError.
    """
    root = _root()
    try:
        folder = baselines.resolve().relative_to(root.resolve())
    except ValueError:
        raise UsageError(
            f"--baselines {baselines}: expected a folder in the repository {root}, found one "
            "outside it, which git never merges"
        ) from None
    attributes = root / _ATTRIBUTES
    _add(attributes, attributes_line(folder))
    _git("config", f"merge.{_DRIVER}.name", "unite the sessions of both sides")
    _git("config", f"merge.{_DRIVER}.driver", f"{_program()} baseline merge %O %A %B --path %P")
    return attributes


def attributes_line(folder: Path) -> str:
    """Return the line of `.gitattributes`: the files of workloads, and no other JSON there."""
    pattern = f"/{folder.as_posix()}/*/*/*.json"
    # git reads a pattern with spaces only within quotes.
    return f'"{pattern}" merge={_DRIVER}' if " " in pattern else f"{pattern} merge={_DRIVER}"


def _conflict(base: Baseline | None, ours: Baseline, theirs: Baseline) -> str:
    """Say why the histories cannot be merged; empty where they can."""
    if differing := [name for name in _FIXED if getattr(ours, name) != getattr(theirs, name)]:
        return f"expected the same {' and '.join(differing)} on both sides, found two"
    for side, history in (("ours", ours), ("theirs", theirs)):
        if base and (gone := _gone(base, history)):
            return f"{side} began the history anew (without run {gone}), the other side went on"
    mine, other = _by_id(ours), _by_id(theirs)
    edited = [run for run in mine if run in other and mine[run] != other[run]]
    if edited:
        return f"expected the same numbers of run {edited[0]} on both sides, found others"
    return _name_conflicts(base, ours, theirs)


def _gone(base: Baseline, side: Baseline) -> str:
    """Return a run that `side` no longer has, unless it was the oldest of too many."""
    kept = _by_id(side)
    gone = [session.run for session in base.sessions if session.run not in kept]
    is_oldest = gone == [session.run for session in base.sessions[: len(gone)]]
    had_no_room = len(side.sessions) == MAX_SESSIONS and is_oldest
    return "" if had_no_room or not gone else gone[0]


def _name_conflicts(base: Baseline | None, ours: Baseline, theirs: Baseline) -> str:
    """Say which metrics both sides changed: those whose next epoch two different runs began."""
    names = {name for session in (*ours.sessions, *theirs.sessions) for name in session.epochs}
    known = _openers(base.sessions, names) if base else {}
    mine, other = _openers(ours.sessions, names), _openers(theirs.sessions, names)
    both = sorted((mine.keys() & other.keys()) - known.keys())
    apart = [name for name, number in both if mine[name, number] != other[name, number]]
    if not apart:
        return ""
    if apart[0] == _ANY:
        return "both sides began a history of their own"
    return f"both sides accepted a change of {', '.join(dict.fromkeys(apart))}"


def _openers(history: Iterable[RecordedSession], names: set[str]) -> dict[_Epoch, str]:
    """Return the run that began each epoch of each metric."""
    openers: dict[_Epoch, str] = {}
    for session in history:
        for name in (_ANY, *names):
            openers.setdefault((name, session.epochs.get(name, 0)), session.run)
    return openers


def _by_id(side: Baseline) -> _ById:
    return {session.run: session for session in side.sessions}


def _program() -> str:
    """Spell the command of this installation: git merges where no virtual environment is active."""
    return f"{shlex.quote(sys.executable)} -m ci_perf"


def _root() -> Path:
    return Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))


def _add(attributes: Path, wanted: str) -> None:
    text = files.read_text(attributes) if attributes.exists() else ""
    if wanted in text.splitlines():
        return
    gap = "" if not text or text.endswith("\n") else "\n"
    files.write_text(attributes, f"{text}{gap}{wanted}\n")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"git: cannot be started: {error.strerror}; install it first") from None
    if done.returncode == 0:
        return done.stdout
    what = f"git {arguments[0]}: {done.stderr.strip()}"
    if arguments[0] == "config":
        raise CannotWriteError(what)
    raise UsageError(f"{what}; run this within the repository that holds the baselines")

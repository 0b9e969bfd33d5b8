"""The sessions of a workload, once each, from every version of its file. No git, no verdict.

A file holds the newest sessions only; a branch has had them all.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.features.history.branch_history import SkippedFile
from ci_perf.judging import metric_values
from ci_perf.model import codec
from ci_perf.model.base import SCHEMA_VERSION, Name, SuiteName
from ci_perf.model.baseline import Baseline, RecordedSession

# A commit, and the file as it left it; `None` where the clone lacks it.
StoredVersion = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCommitted:
    """A session, and the first commit that has it.

    ``epochs`` count accepted changes over all sessions, also where the file began anew.
    """

    session: RecordedSession
    commit: str
    epochs: Mapping[str, int]
    starts_anew: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHistory:
    """All sessions of one file, in the order of the commits; ``latest`` is the file at the end."""

    latest: Baseline
    sessions: tuple[FirstCommitted, ...]


class _File(msgspec.Struct, tag_field="type", tag="baseline"):
    """A baseline whose sessions are still text: each text is parsed once, whatever repeats it."""

    workload: Name
    suite: SuiteName
    sessions: tuple[msgspec.Raw, ...]
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class _Order:
    """The runs in one version of the file, in its order."""

    commit: str
    runs: Sequence[str]


def read(
    path: str, newest_first: Iterable[StoredVersion]
) -> tuple[FileHistory | None, list[SkippedFile]]:
    """Read every version of a file, and return its sessions; `None` where no version is readable.

    A version that cannot be read is skipped, with the reason, and the others stand. Where two
    versions disagree about a run, the first commit that has it counts.
    """
    latest: Baseline | None = None
    sessions: dict[str, RecordedSession] = {}
    orders: list[_Order] = []
    skipped: list[SkippedFile] = []
    decode = functools.cache(functools.partial(_decode_session, path))
    for commit, content in newest_first:
        try:
            own = {each.run: each for each in map(decode, _split_sessions(path, content))}
            latest = latest or codec.decode(content or b"", Baseline, name=path)
        except InvalidFileError as error:
            skipped.append(SkippedFile(path=path, commit=commit, reason=str(error)))
            continue
        for run, session in own.items():
            if sessions.get(run, session) is not session:
                reason = f"{path}: run {run} has other numbers in a later commit"
                skipped.append(SkippedFile(path=path, commit=commit, reason=reason))
        sessions |= own
        orders.append(_Order(commit, list(own)))
    if latest is None:
        return None, skipped
    ordered = tuple(_with_epochs(_order_runs(orders[::-1]), sessions))
    return FileHistory(latest=latest, sessions=ordered), skipped


def _split_sessions(path: str, content: bytes | None) -> list[bytes]:
    """Return the texts of the sessions in one version of a file. Raises InvalidFileError."""
    if content is None:
        raise InvalidFileError(f"{path}: this clone lacks it, or it is larger than 50 MiB")
    file = codec.decode(content, _File, name=path)
    layout.check_place(file.suite, file.workload, PurePosixPath(path))
    if not file.sessions:
        raise InvalidFileError(f"{path}: $.sessions: expected at least one, found none")
    return list(map(bytes, file.sessions))


def _decode_session(path: str, raw: bytes) -> RecordedSession:
    where = f"{path}: $.sessions"
    session = codec.decode(raw, RecordedSession, name=where)
    layout.check_session(session, where)
    return session


@dataclass(frozen=True, slots=True)
class _Place:
    """A run, the first commit that has it, and how often the file had begun anew by then."""

    run: str
    commit: str
    era: int


def _order_runs(oldest_first: Iterable[_Order]) -> list[_Place]:
    """Put each run where its first commit put it, among the runs that were there.

    A file sorts a late measurement of older code before what was accepted meanwhile; a commit that
    was reverted stays where it was, and what follows comes after it.
    """
    places: list[_Place] = []
    known: set[str] = set()
    before: set[str] = set()
    era = 0
    for order in oldest_first:
        era += bool(before) and before.isdisjoint(order.runs)
        for at, run in enumerate(order.runs):
            if run not in known:
                places.insert(
                    _index(places, order.runs[at + 1 :], known), _Place(run, order.commit, era)
                )
                known.add(run)
        before = set(order.runs)
    return places


def _index(places: Sequence[_Place], later: Sequence[str], known: set[str]) -> int:
    """Return where a run belongs: before the first known one that follows it in its file."""
    following = next((run for run in later if run in known), None)
    if following is None:
        return len(places)
    return next(at for at, place in enumerate(places) if place.run == following)


def _with_epochs(
    places: Sequence[_Place], sessions: Mapping[str, RecordedSession]
) -> Iterator[FirstCommitted]:
    """Count each metric's epochs anew: the next one begins wherever the file's own changes."""
    judged = metric_values.find_judged(sessions.values())
    epochs = dict.fromkeys((metric.name for metric in judged), 0)
    before: _Place | None = None
    for place in places:
        session = sessions[place.run]
        starts_anew = before is not None and before.era != place.era
        if before is not None:
            earlier = sessions[before.run].epochs
            for name in epochs:
                is_next = earlier.get(name, 0) != session.epochs.get(name, 0)
                epochs[name] += starts_anew or is_next
        yield FirstCommitted(
            session=session,
            commit=place.commit,
            epochs={name: number for name, number in epochs.items() if number},
            starts_anew=starts_anew,
        )
        before = place

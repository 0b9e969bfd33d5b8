"""What a controller has done, line by line on disk before it goes on; and what follows from it."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ci_perf.errors import BusyError, CannotWriteError, InvalidFileError
from ci_perf.model import codec
from ci_perf.model.fleet import (
    Attempt,
    Began,
    Ending,
    Event,
    JournalLine,
    NotTaken,
    Requeued,
    Started,
    Submitted,
    Submitting,
)
from ci_perf.system import files, lock

NAME = "journal.jsonl"


@dataclass(slots=True)
class OpenAttempt:
    """An attempt without an end; ``handle`` is `None` where the engine was asked, and no more."""

    attempt: Attempt
    handle: str | None = None
    node: str = ""


@dataclass(slots=True)
class Past:
    """What a journal says: endings and open attempts by unit, and what units have behind them."""

    began: Began | None = None
    endings: dict[str, Ending] = field(default_factory=dict)
    open: dict[str, OpenAttempt] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Journal:
    """Appends lines, and returns once they are on the disk. One process may have it open."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """Open or create the journal of a folder. Raises CannotWriteError and BusyError."""
        self._path, self._clock = folder / NAME, clock
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)
            is_ours = lock.try_to_get(self._file)
        except OSError as error:
            raise self._cannot(error) from None
        if not is_ours:
            os.close(self._file)
            raise BusyError(
                f"{self._path}: expected no other controller of this fleet run, found one that "
                "still runs; end it, or wait for it"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def append(self, events: Iterable[Event]) -> None:
        """Append a line per event, and wait for the disk. Raises CannotWriteError."""
        at = self._clock()
        lines = [msgspec.json.encode(JournalLine(at=at, entry=event)) + b"\n" for event in events]
        if not lines:
            return
        try:
            _write_all(self._file, b"".join(lines))
            os.fsync(self._file)
        except OSError as error:
            raise self._cannot(error) from None

    def read(self) -> Past:
        """Read what an earlier controller has written, and drop a last line that it cut off.

        Raises InvalidFileError that names the line.
        """
        text = files.read_text(self._path)
        whole, _, cut = text.rpartition("\n")
        if cut:
            os.ftruncate(self._file, len(text[: -len(cut)].encode()))
        return replay(
            codec.decode(line, JournalLine, name=f"{self._path}: line {number}").entry
            for number, line in enumerate(whole.split("\n"), start=1)
            # Not splitlines(): JSON leaves U+2028 and U+0085 in a text as they are.
            if line
        )

    def _cannot(self, error: OSError) -> CannotWriteError:
        return CannotWriteError(f"{self._path}: cannot be written: {error.strerror}")


def replay(events: Iterable[Event]) -> Past:
    """Return what follows from the events of a journal.

    Raises InvalidFileError: an event of an attempt that was never submitted. A unit that was
    cancelled has no ending for a controller that goes on.
    """
    past = Past()
    attempts: dict[str, OpenAttempt] = {}
    for event in events:
        _apply(event, past, attempts)
    past.endings = {u: ending for u, ending in past.endings.items() if ending.kind != "cancelled"}
    return past


def _apply(event: Event, past: Past, attempts: dict[str, OpenAttempt]) -> None:
    match event:
        case Began():
            past.began = past.began or event
        case Submitting():
            for attempt in event.attempts:
                attempts[attempt.nonce] = past.open[attempt.unit] = OpenAttempt(attempt)
        case Submitted() | NotTaken() | Started():
            _hear(event, past, attempts)
        case Requeued():
            past.open.pop(event.unit, None)
            past.spent[event.unit] = past.spent.get(event.unit, 0) + event.spent
            if event.node and event.spent:
                past.nodes[event.unit] = (*past.nodes.get(event.unit, ()), event.node)
        case Ending():
            past.open.pop(event.unit, None)
            past.endings[event.unit] = event


def _hear(
    event: Submitted | NotTaken | Started, past: Past, attempts: dict[str, OpenAttempt]
) -> None:
    """Take over what the engine has said of attempts."""
    match event:
        case Submitted():
            for nonce, handle in event.handles.items():
                _of(nonce, attempts).handle = handle
        case NotTaken():
            for nonce in event.nonces:
                past.open.pop(_of(nonce, attempts).attempt.unit, None)
        case Started():
            _of(event.nonce, attempts).node = event.node


def _of(nonce: str, attempts: dict[str, OpenAttempt]) -> OpenAttempt:
    if nonce not in attempts:
        raise InvalidFileError(
            f"{NAME}: expected only attempts that were submitted, found {nonce!r}; it is damaged: "
            "begin anew in another folder"
        )
    return attempts[nonce]


def _write_all(handle: int, data: bytes) -> None:
    """Write all of it: a disk may take a part, and say so."""
    while data:
        data = data[os.write(handle, data) :]

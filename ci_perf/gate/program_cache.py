"""Records of programs that this machine has made: a folder of the user's cache, newest first.

A record that holds for no commit any more does no harm: it is compared before it is believed.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.gate import Notify
from ci_perf.model.program import Program
from ci_perf.system import files

# Branches that are checked in turns each keep theirs; reading one takes milliseconds.
_KEPT = 20


def folder(suite: str) -> Path:
    """Return the folder of the records of a suite, in the cache of the user."""
    return files.cache_folder() / "programs" / suite.replace(":", "-")


class ProgramCache:
    """The records of one suite. What cannot be read or written is said, and loses nothing else."""

    def __init__(self, folder: Path, notify: Notify) -> None:
        self._folder = folder
        self._notify = notify

    def newest_first(self, workload: str) -> Iterator[Program]:
        """Yield the records of a workload."""
        for file in self._files(workload):
            try:
                yield files.read(file, Program)
            except CiPerfError as error:
                self._notify(f"note: a kept record of {workload} is not used: {error}")

    def keep(self, program: Program) -> None:
        """Write a record, and remove the oldest ones of its workload."""
        text = msgspec.json.encode(program)
        file = self._folder / program.workload / f"{hashlib.sha256(text).hexdigest()[:16]}.json"
        try:
            files.make_folder(file.parent)
            files.write(file, program)
            for old in self._files(program.workload)[_KEPT:]:
                old.unlink(missing_ok=True)
        except (CiPerfError, OSError) as error:
            self._notify(f"note: the record of {program.workload} is not kept: {error}")

    def _files(self, workload: str) -> list[Path]:
        ages: list[tuple[int, Path]] = []
        for file in (self._folder / workload).glob("*.json"):
            with contextlib.suppress(OSError):  # another process has removed it meanwhile
                ages.append((file.stat().st_mtime_ns, file))
        return [file for _, file in sorted(ages, reverse=True)]

"""Make the Program of a recording out of its facts."""

import os
from collections.abc import Iterable
from pathlib import Path

from ci_perf.measuring.recording.contents import blob_of
from ci_perf.measuring.recording.notes import Fact
from ci_perf.model import program
from ci_perf.model.program import ModuleSearch, Program, ProgramFile
from ci_perf.program import units

_MOST_FILES = 20_000
_MOST_UNITS = 200_000
# Of one text; a run file would refuse a longer one.
_TEXT_CHARS = 500
_MOST_OBSTACLES = 20

Facts = dict[Fact, dict[str, str]]


class Assembly:
    """All facts of one recording; a name's first value counts."""

    def __init__(self, facts: Iterable[tuple[Fact, str, str]], root: str) -> None:
        self._root = Path(root)
        self._facts: Facts = {fact: {} for fact in Fact}
        self._units: dict[str, set[str]] = {}
        self._searches: dict[str, set[str]] = {}
        for fact, name, value in facts:
            if fact is Fact.UNIT:
                self._units.setdefault(name, set()).add(value)
            elif fact is Fact.SEARCH:
                self._searches.setdefault(name, set()).add(value)
            else:
                self._facts[fact].setdefault(name, value)

    def program(self, *, workload: str, steps: int, wholly: bool) -> Program:
        """Return the program; `wholly`, functions were executed that nobody told."""
        files = self._files(wholly=wholly or bool(self._facts[Fact.SIGHT]))
        folders = self._folders()
        searches = {
            name: ModuleSearch(names=tuple(sorted(names)), entries=self._entries(name, names))
            for name, names in sorted(self._searches.items())
        }
        missing = {name for name in self._facts[Fact.ABSENT] if name not in files}
        paths = [*files, *folders, *searches, *missing, *self._facts[Fact.LINK]]
        obstacles = [*self._facts[Fact.OBSTACLE], *_limits(files)]
        return Program(
            workload=workload,
            conditions="",
            steps=steps,
            variables=dict(sorted(self._facts[Fact.VARIABLE].items())),
            files=files if not _limits(files) else {},
            folders=folders,
            links=self._links(paths),
            searches=searches,
            absent=tuple(sorted(missing)),
            outside=dict(sorted(self._facts[Fact.OUTSIDE].items())),
            obstacles=tuple(text[:_TEXT_CHARS] for text in sorted(obstacles)[:_MOST_OBSTACLES]),
        )

    def _files(self, *, wholly: bool) -> dict[str, ProgramFile]:
        facts = self._facts
        files: dict[str, ProgramFile] = {}
        for name in facts[Fact.EXISTS]:  # to open it earlier would be to count it as read
            files[name] = ProgramFile(blob=blob_of(str(self._root / name)), units={})
        for name, blob in self._native():
            files[name] = ProgramFile(blob=blob)
        for name, blob in facts[Fact.SOURCE].items():
            executed = self._units.get(name, set())
            files[name] = ProgramFile(
                blob=blob, units=None if wholly else self._digests(name, blob, executed)
            )
        for name, blob in facts[Fact.DATA].items():
            # Who reads a source sees all of it.
            files[name] = ProgramFile(blob=facts[Fact.SOURCE].get(name, blob))
        for name in self._units.keys() - files.keys() - facts[Fact.PRODUCT].keys():
            if blob := blob_of(str(self._root / name)):  # imported before the recording
                files[name] = ProgramFile(blob=blob)
        return {name: files[name] for name in sorted(files) if files[name].blob}

    def _native(self) -> Iterable[tuple[str, str]]:
        """Yield the files that nobody opened by Python, under the names that the kernel has."""
        facts = self._facts
        told = {*facts[Fact.SOURCE], *facts[Fact.DATA], *facts[Fact.PRODUCT], *facts[Fact.MADE]}
        real = {os.path.realpath(self._root / name) for name in told}
        for name, blob in facts[Fact.NATIVE].items():
            if os.path.realpath(self._root / name) not in real:
                yield name, blob

    def _digests(self, name: str, blob: str, executed: set[str]) -> dict[str, str] | None:
        """Return the digests of what was executed, `None` for what they cannot tell."""
        try:
            source = (self._root / name).read_bytes()
            known = units.digests(source)
        except (OSError, ValueError):
            return None
        if program.blob(source) != blob or not executed <= known.keys():
            return None  # changed meanwhile, or code that the source does not show
        return {unit: known[unit] for unit in sorted(executed)}

    def _folders(self) -> dict[str, str]:
        listed = {
            name: digest
            for name, digest in self._facts[Fact.FOLDER].items()
            if not name.endswith("/")
        }
        by_python = {*listed, *self._facts[Fact.LISTED]}
        natively = self._facts[Fact.NATIVE_FOLDER]
        listed |= {name: natively[name] for name in natively.keys() - by_python}
        existing = {name[:-1] for name in self._facts[Fact.FOLDER] if name.endswith("/")}
        return dict(sorted({**dict.fromkeys(existing, ""), **listed}.items()))

    def _entries(self, name: str, names: set[str]) -> tuple[str, ...]:
        try:
            entries = program.searched(names, os.listdir(self._root / name))
        except OSError:
            return ()
        return tuple(
            entry
            for entry in entries
            if not program.is_without_plugins(entry, self._entry_points(f"{name}/{entry}"))
        )

    def _entry_points(self, name: str) -> bytes | None:
        try:
            return (self._root / name / "entry_points.txt").read_bytes()
        except OSError:
            return None

    def _links(self, paths: Iterable[str]) -> dict[str, str]:
        """Return every link on one of these paths, with the blob of its text."""
        links: dict[str, str] = {}
        looked_at: set[Path] = set()
        for path in paths:
            below = Path(path)
            for part in (below, *below.parents):
                if part in looked_at:
                    continue
                looked_at.add(part)
                if (self._root / part).is_symlink():
                    target = os.fsencode(os.readlink(self._root / part))
                    links[part.as_posix()] = program.blob(target)
        return dict(sorted(links.items()))


def _limits(files: dict[str, ProgramFile]) -> list[str]:
    count = sum(len(file.units or ()) for file in files.values())
    if len(files) > _MOST_FILES or count > _MOST_UNITS:
        return [f"the program reads {len(files):,} files and executes {count:,} functions of them"]
    return []

"""What no audit event tells: modules and files looked for, links, variables, spawned processes."""

import contextlib
import importlib
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from ci_perf.measuring.recording import callers
from ci_perf.measuring.recording.audited import Audit
from ci_perf.measuring.recording.contents import Contents
from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import Owner, Places, absolute
from ci_perf.model import program

_ENVIRONMENT_MODULES = ("os", "_collections_abc", "patched")
# Sets that tell what a function can do: whoever asks for os.stat there means ours from now on.
_ABILITIES = ("dir_fd", "effective_ids", "fd", "follow_symlinks")
# Python itself looks for these when it starts.
_AT_START = ("sitecustomize", "usercustomize")
METADATA = ("*.dist-info", "*.egg", "*.egg-info")


class Questions:
    """Notes whether what os.stat, os.lstat, os.access and os.readlink ask for is there."""

    def __init__(self, contents: Contents, places: Places, audit: Audit) -> None:
        self._contents = contents
        self._audit = audit
        self._places = places
        self._roots = (places.root, places.real_root, *places.tops)
        self._is_installed = places.is_installed

    def watch(self) -> None:
        """Put functions of ours in the place of theirs."""
        for name in ("stat", "lstat", "access", "readlink"):
            theirs = getattr(os, name)
            ours = self._watched(name, theirs)
            ours.__name__ = ours.__qualname__ = name
            for ability in _ABILITIES:
                able = getattr(os, f"supports_{ability}")
                if theirs in able:
                    able.add(ours)
            setattr(os, name, ours)

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        audit, roots, note = self._audit, self._roots, self._note
        is_installed = self._is_installed

        def call(path: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
            # Most questions are about files that are beyond the repository for sure.
            is_beyond = type(path) is str and path[:1] == "/" and not path.startswith(roots)
            if is_beyond or is_installed(path) or audit.is_aside:
                return real(path, *args, **options)
            with audit.aside():
                asked = _below(path, options.get("dir_fd"))
            is_there = False
            try:
                result = real(path, *args, **options)
                is_there = result is not False
            finally:
                with audit.aside():
                    note(name, asked, sys._getframe(1), is_there=is_there)  # noqa: SLF001
            return result

        return call

    def _note(self, name: str, path: object, frame: FrameType, *, is_there: bool) -> None:
        try:
            spelled = absolute(path)
            if spelled is None:
                return
            if self._places.is_neighbour(spelled):
                self._contents.used_neighbour(spelled)
            elif not is_there:
                self._contents.missed(spelled)
            elif name == "readlink":
                self._contents.read_link(spelled)
            else:
                as_file = name != "access" and not callers.asks_existence(frame)
                self._contents.looked_for(spelled, as_file=as_file)
        except Exception as error:  # noqa: BLE001  the program would see it
            self._audit.trouble(error)


class Variables:
    """Notes the variables of the environment that are read, and those that C code may read."""

    def __init__(self, notes: Notes, places: Places, audit: Audit) -> None:
        self._notes = notes
        self._places = places
        self._audit = audit
        # The program's own doing.
        self._set: set[str] = set()
        # Where somebody goes through all of it: what is read there one by one is not asked for.
        self._passing = (0, 0)

    def watch(self) -> None:
        """Put methods of ours in the place of those of os.environ."""
        for name, value in os.environ.items():
            if name.startswith(program.NATIVE_VARIABLES):
                self._note(name, value)
        kind: Any = type(os.environ)
        get, put, remove, iterate = (
            getattr(kind, f"__{name}__") for name in ("getitem", "setitem", "delitem", "iter")
        )

        def getitem(environment: Any, key: Any) -> Any:  # noqa: ANN401
            value = None
            try:
                value = get(environment, key)
            finally:
                self._asked(key, value, sys._getframe(1))  # noqa: SLF001
            return value

        def setitem(environment: Any, key: Any, value: Any) -> None:  # noqa: ANN401
            put(environment, key, value)
            self._set.add(os.fsdecode(key))

        def delitem(environment: Any, key: Any) -> None:  # noqa: ANN401
            remove(environment, key)
            self._set.add(os.fsdecode(key))

        def iterate_all(environment: Any) -> Iterator[Any]:  # noqa: ANN401
            self._all_asked(sys._getframe(1))  # noqa: SLF001
            return iterate(environment)  # type: ignore[no-any-return]

        kind.__getitem__, kind.__setitem__, kind.__delitem__ = getitem, setitem, delitem
        kind.__iter__ = iterate_all

    def _asked(self, key: object, value: object, frame: FrameType) -> None:
        is_meant = (id(frame), frame.f_lasti) != self._passing and not callers.copies(frame)
        if is_meant and not self._audit.is_aside and isinstance(key, (str, bytes)):
            self._note(os.fsdecode(key), value)

    def _all_asked(self, frame: FrameType) -> None:
        """Note who goes through the whole environment.

        The standard library and torch do so to hand it on to a program, which is another obstacle,
        and to find names with prefixes that are always noted. A repository may do anything.
        """
        self._passing = (id(frame), frame.f_lasti)
        file = callers.first_outside(frame, _ENVIRONMENT_MODULES)
        if not self._audit.is_aside and self._places.classify(file)[0] is Owner.REPOSITORY:
            self._notes.add(Fact.OBSTACLE, "the program reads the whole environment (os.environ)")

    def _note(self, name: str, value: object) -> None:
        if name not in self._set and name not in program.SET_BY_LAUNCH:
            digest = "" if value is None else program.digest(os.fsencode(value))  # type: ignore[arg-type]
            self._notes.add(Fact.VARIABLE, name, digest)


def _below(path: Any, folder: int | None) -> Any:  # noqa: ANN401
    """Return a path that is relative to an open folder as one that is not."""
    if folder is None or not isinstance(path, (str, bytes, os.PathLike)):
        return path
    with contextlib.suppress(OSError):
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
    return path


def watch_lines(contents: Contents, audit: Audit) -> None:
    """Note the sources that are read by linecache, unless their lines are only quoted.

    It keeps what it has read once, so that opening the file does not tell who reads it.
    """
    real = linecache.getlines

    def getlines(filename: str, module_globals: Any = None) -> list[str]:  # noqa: ANN401
        lines = real(filename, module_globals)
        if lines and not audit.is_aside:
            with audit.aside():
                _note_lines(filename, sys._getframe(1), contents, audit)  # noqa: SLF001
        return lines

    linecache.getlines = getlines


def _note_lines(filename: str, frame: FrameType, contents: Contents, audit: Audit) -> None:
    try:
        entry: Any = linecache.cache.get(filename, ())
        path = absolute(entry[-1] if len(entry) > 1 else filename)
        if path is not None and not callers.quotes(frame):
            contents.read(path)
    except Exception as error:  # noqa: BLE001  the program would see it
        audit.trouble(error)


def watch_spawn(audit: Audit) -> None:
    """Note the programs that multiprocessing starts, which tells no audit event."""
    import _posixsubprocess

    start = _posixsubprocess.fork_exec

    def fork_exec(arguments: Any, *more: Any) -> int:  # noqa: ANN401
        audit.start_program([*arguments], sys._getframe(1))  # noqa: SLF001
        return start(arguments, *more)

    _posixsubprocess.fork_exec = fork_exec


class Searches:
    """The first finder of sys.meta_path: it finds nothing, and notes what is looked for where."""

    def __init__(self, notes: Notes, places: Places) -> None:
        self._notes = notes
        self._places = places
        self._folders: dict[str, str | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Note one search."""
        del target
        with contextlib.suppress(Exception):  # a path of the program's own making
            self.note(sys.path if path is None else path, (name.rpartition(".")[2],))
        return None

    def note(self, folders: Iterable[str], names: Iterable[str]) -> None:
        """Note that modules or metadata of these names are looked for in these folders."""
        names = tuple(names)
        for folder in folders:
            below = self._below(folder)
            if below is None:
                continue
            for name in names:
                # In a checkout of ci_perf this package lies below the root, and is no part of it.
                if self._places.classify(os.path.join(folder, name))[0] is not Owner.INSTALLED:
                    self._notes.add(Fact.SEARCH, below, name)

    def note_loaded(self) -> None:
        """Note what was imported before the recording began."""
        loaded = {name.partition(".")[0] for name in [*sys.modules]}
        self.note(sys.path, sorted({*loaded, *_AT_START}))
        for module in [*sys.modules.values()]:
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and (name := self._places.in_repository(file)) is not None:
                self._notes.add(Fact.UNIT, name, _UNKNOWN)

    def _below(self, folder: object) -> str | None:
        if not isinstance(folder, str):  # whatever a program puts on its path
            return None
        if folder in self._folders and folder.startswith("/"):
            return self._folders[folder]
        path = absolute(folder or os.getcwd())
        owner, name = self._places.classify(path or "/")
        self._folders[folder] = below = name if owner is Owner.REPOSITORY else None
        return below


# No unit is called so: the whole file counts.
_UNKNOWN = "?"


def read_sources(places: Places) -> None:
    """Have the import system read each source of the repository, and no bytecode of it.

    A file of bytecode is taken for its source by the time and the length of it.
    """
    machinery: Any = importlib.import_module("importlib._bootstrap_external")
    name_cache = machinery.cache_from_source

    def cache_from_source(path: Any, *more: Any, **options: Any) -> Any:  # noqa: ANN401
        if places.in_repository(os.path.abspath(os.fsdecode(path))) is not None:
            raise NotImplementedError  # the import system then reads the source, and writes nothing
        return name_cache(path, *more, **options)

    machinery.cache_from_source = cache_from_source

"""What no audit event tells: modules and files looked for, variables, lines, spawned processes."""

import importlib.machinery
import linecache
import os
import posix
import sys
from types import FrameType
from typing import Any

from ci_perf.features.same_program import callers
from ci_perf.features.same_program.audit import Audit, find_absolute
from ci_perf.features.same_program.notes import NoteKind
from ci_perf.features.same_program.used import UsedPaths
from ci_perf.model.program import NATIVE_VARIABLES, SET_BY_LAUNCH, digest

# They show that something is there; to make it fails then.
_ABOUT_EXISTENCE = ("access", "mkfifo", "mknod", "readlink")
_QUESTIONS = (*_ABOUT_EXISTENCE, "lstat", "stat", "statvfs")
# Sets that tell what a function can do: whoever asks for os.stat there means ours from now on.
_ABILITIES = ("dir_fd", "effective_ids", "fd", "follow_symlinks")
_ENVIRONMENT_MODULES = {"os", "_collections_abc"}


def watch_questions(used: UsedPaths, audit: Audit) -> None:
    """Note what os.stat and its like are asked of, and what the answer may tell of it."""

    def note(told: Any, frame: FrameType) -> None:
        name, path, folder = told
        absolute = find_absolute(path, folder)
        is_metadata = callers.is_metadata(frame)  # a folder that has changed is listed anew
        if absolute is None or callers.is_import(frame):
            return
        if name in _ABOUT_EXISTENCE or callers.asks_existence(frame) or is_metadata:
            used.note(absolute, NoteKind.EXISTS)
        else:
            used.note_below_root(absolute)

    settled = used.settled

    def watch(name: str) -> None:
        real = getattr(posix, name)

        def ask(path: Any, *args: Any, **options: Any) -> Any:
            is_known = type(path) is str and (path in settled or used.is_installed(path))
            if not is_known and type(path) is not int:
                frame = sys._getframe(1)  # noqa: SLF001  the caller's
                audit.hear(note, (name, path, options.get("dir_fd")), frame)
            return real(path, *args, **options)

        ask.__name__ = ask.__qualname__ = name
        for ability in _ABILITIES:
            able = getattr(os, f"supports_{ability}")
            able |= {ask} if real in able else set()
        setattr(os, name, ask)
        setattr(posix, name, ask)

    for name in _QUESTIONS:
        watch(name)


def watch_searches(used: UsedPaths, audit: Audit) -> None:
    """Note which modules are looked for in which folders of the repository."""
    finder: Any = importlib.machinery.FileFinder
    find_spec = finder.find_spec

    def note(told: Any, _frame: FrameType) -> None:
        used.note_search(*told)

    def find(self: Any, fullname: str, target: object = None) -> Any:
        if not used.is_installed(f"{self.path}/"):
            told = os.path.join(os.getcwd(), self.path), fullname.rpartition(".")[2]
            audit.hear(note, told, sys._getframe())  # noqa: SLF001
        return find_spec(self, fullname, target)

    finder.find_spec = find


class Variables:
    """Notes the variables of the environment that are read, and those that C code may read."""

    def __init__(self, used: UsedPaths, audit: Audit) -> None:
        self._used = used
        self._audit = audit
        self._own: set[str] = set()  # which the program has set
        self._noted: set[str | bytes] = set()

    def watch(self) -> None:
        """Put methods of ours in the place of those of os.environ."""
        kind: Any = type(os.environ)
        get, put, remove = (
            getattr(kind, f"__{name}__") for name in ("getitem", "setitem", "delitem")
        )

        def getitem(environment: Any, key: Any) -> Any:
            value = None
            try:
                value = get(environment, key)
            finally:
                if type(key) is not str or key not in self._noted:
                    frame = sys._getframe(1)  # noqa: SLF001
                    self._audit.hear(self._note_read, (key, value), frame)
            return value

        def setitem(environment: Any, key: Any, value: Any) -> None:
            put(environment, key, value)
            self._own.add(os.fsdecode(key))

        def delitem(environment: Any, key: Any) -> None:
            remove(environment, key)
            self._own.add(os.fsdecode(key))

        def watch_all(name: str) -> None:
            real = getattr(kind, name)

            def ask(environment: Any) -> Any:
                self._audit.hear(self._note_all, None, sys._getframe(1))  # noqa: SLF001
                return real(environment)

            setattr(kind, name, ask)

        for name, value in os.environ.items():
            if name.startswith(NATIVE_VARIABLES):
                self._note(name, value)
        kind.__getitem__, kind.__setitem__, kind.__delitem__ = getitem, setitem, delitem
        for name in ("__iter__", "__len__", "__repr__"):
            watch_all(name)

    def _note_read(self, told: Any, frame: FrameType) -> None:
        place = callers.find_module(frame), frame.f_code.co_name
        is_copied = place in {("_collections_abc", "__iter__"), ("os", "copy")}
        if isinstance(told[0], (str, bytes)) and not is_copied:
            self._noted.add(told[0])
            self._note(os.fsdecode(told[0]), told[1])

    def _note_all(self, _told: object, frame: FrameType) -> None:
        """Note who goes through the whole environment.

        The standard library and torch do so to hand it on to a program, which is an obstacle
        itself, and to find names with prefixes that are always noted. A repository may do more.
        """
        while frame.f_back and callers.find_module(frame) in _ENVIRONMENT_MODULES:
            frame = frame.f_back
        if not self._used.is_installed(frame.f_code.co_filename):
            what = "it reads the whole environment (os.environ)"
            self._used.notes.add(NoteKind.OBSTACLE, what)

    def _note(self, name: str, value: Any) -> None:
        if name not in self._own and name not in SET_BY_LAUNCH:
            known = "" if value is None else digest(os.fsencode(value))
            self._used.notes.add(NoteKind.VARIABLE, name, known)


def watch_lines(used: UsedPaths, audit: Audit) -> None:
    """Note the sources of which linecache gives lines, unless they are only quoted.

    It keeps what it has read once, so that opening the file does not tell who reads it.
    """

    def note(filename: Any, frame: FrameType) -> None:
        entry: Any = linecache.cache.get(filename, ())
        path = find_absolute(entry[-1] if len(entry) > 1 else filename)
        if path is not None and not callers.quotes(frame):
            used.note(path, NoteKind.READ)

    def watch(name: str) -> None:
        real = getattr(linecache, name)

        def give(filename: str, module_globals: Any = None) -> list[str]:
            lines: list[str] = real(filename, module_globals)
            frame = sys._getframe(1)  # noqa: SLF001
            is_inner = name == "updatecache" and callers.find_module(frame) == "linecache"
            if lines and not is_inner:
                audit.hear(note, filename, frame)
            return lines

        setattr(linecache, name, give)

    watch("getlines")
    watch("updatecache")


def watch_spawn(audit: Audit) -> None:
    """Note the programs that multiprocessing starts, which tells no audit event."""
    import _posixsubprocess

    start = _posixsubprocess.fork_exec

    def fork_exec(arguments: Any, *more: Any) -> int:
        audit.hear(audit.start_program, [*arguments], sys._getframe(1))  # noqa: SLF001
        return start(arguments, *more)

    _posixsubprocess.fork_exec = fork_exec

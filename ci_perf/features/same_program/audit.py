"""What Python's audit events tell: files, folders, libraries, programs, sockets.

The hook is called within the program, in any of its threads, and in its forked children.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import unquote, urlsplit

from ci_perf.features.same_program import callers
from ci_perf.features.same_program.notes import NoteKind
from ci_perf.features.same_program.used import Owner, UsedPaths

# Between two looks at what the kernel has told: it keeps 16,384 events.
_READ_EVERY = 1000
_WRITES = os.O_WRONLY | os.O_RDWR
# They tell about this machine, and read nothing of the repository.
_HARMLESS_PROGRAMS = {"ldconfig", "lscpu", "nvidia-smi", "uname"}
# Programs that these parts start read what torch generates from what the program has executed, or,
# to find a library, nothing but the system's own files.
_START_PROGRAMS = (
    "-packages/torch/_inductor/",
    "-packages/triton/",
    f"{Path(os.__file__).parent}/ctypes/util.py",
)
# Python's own helper of multiprocessing: it imports the standard library alone.
_TRACKER = "from multiprocessing.resource_tracker import main"
# They fail where something is there, or is not there.
_TELL_EXISTENCE = (
    *("chdir", "chflags", "chmod", "chown", "getxattr", "listxattr", "remove", "removexattr"),
    *("rmdir", "setxattr", "truncate", "utime"),
)


# What an audit event comes with.
_Arguments = tuple[Any, ...]


class Audit:
    """Hears all audit events until `stop`: a hook cannot be removed."""

    def __init__(self, used: UsedPaths, read_kernel: Callable[[], None]) -> None:
        """Note what is used; call `read_kernel` every now and then."""
        self._used = used
        self._read_kernel = read_kernel
        self._heard = 0
        self._state = threading.local()
        self._is_on = True
        starts = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn")
        shells = ("os.system", "pty.spawn")
        look_ups = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
        self._handlers: dict[str, Callable[[_Arguments, FrameType], None]] = {
            "open": self._open,
            "os.listdir": self._list,
            "os.scandir": self._scan,
            **{f"os.{name}": self._try for name in _TELL_EXISTENCE},
            "os.mkdir": self._make_folder,
            "os.rename": self._rename,
            "os.link": self._link,
            "os.symlink": self._link_symbolically,
            "import": self._load,
            "ctypes.dlopen": self._load,
            "sqlite3.connect": self._open_database,
            **dict.fromkeys(("socket.connect", "socket.bind", "socket.sendto"), self._connect),
            **dict.fromkeys(look_ups, self._look_up),
            **dict.fromkeys(starts, self._start),
            **dict.fromkeys(shells, self._start_shell),
        }

    def start(self) -> None:
        """Begin to hear."""
        handlers, hear, is_installed = self._handlers, self.hear, self._used.is_installed
        settled = self._used.settled

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            handler = handlers.get(event)
            if handler is None:
                return
            path = arguments[0] if event == "open" else None
            if type(path) is str and (path in settled or is_installed(path)):
                self._count()
            else:
                hear(handler, arguments, sys._getframe(1))  # noqa: SLF001  the caller's

        sys.addaudithook(hook)

    def stop(self) -> None:
        """Hear nothing any more."""
        self._is_on = False

    def hear(self, handler: Callable[[Any, Any], None], told: object, frame: FrameType) -> None:
        """Call a handler unless this is our own work. It never raises: the program would see it."""
        if self.is_aside:
            return
        with self.aside():
            try:
                handler(told, frame)
                self._count()
            except Exception as error:  # noqa: BLE001  the program would see it
                words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                with contextlib.suppress(Exception):
                    self._used.notes.add(NoteKind.OBSTACLE, f"the recording failed: {words}")

    def _count(self) -> None:
        self._heard += 1
        if self._heard % _READ_EVERY == 0:
            self._read_kernel()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Within, this thread hears nothing: it is our own work."""
        before = getattr(self._state, "is_busy", False)
        self._state.is_busy = True
        try:
            yield
        finally:
            self._state.is_busy = before

    @property
    def is_aside(self) -> bool:
        """Whether this thread is at our own work, or all is over."""
        return not self._is_on or getattr(self._state, "is_busy", False)

    def start_program(self, command: object, frame: FrameType | None) -> None:
        """Note a program that is started, by whatever way: what it reads, nobody sees."""
        listed = command if isinstance(command, (list, tuple)) else [command]
        words = [os.fsdecode(each) for each in listed if isinstance(each, (str, bytes, Path))]
        name = Path(words[0]).name if words else "a program"
        is_tracker = any(word.startswith(_TRACKER) for word in words)
        is_harmless = is_tracker or self._is_harmless(words)
        if not (is_harmless or callers.has_caller(frame, _START_PROGRAMS)):
            self._used.notes.add(NoteKind.OBSTACLE, f"it starts another program, {name[:200]}")

    def _is_harmless(self, words: list[str]) -> bool:
        if not words or Path(words[0]).name not in _HARMLESS_PROGRAMS:
            return False
        folders = [os.getcwd()] if "/" in words[0] else os.get_exec_path()
        places = (self._used.resolve(os.path.join(each, words[0])) for each in folders)
        return all(self._used.find_owner(each) is not Owner.REPOSITORY for each in places)

    def _open(self, arguments: _Arguments, frame: FrameType) -> None:
        name, _, flags = arguments
        path = find_absolute(name)
        if path is None or callers.is_linecache(frame) or callers.quotes(frame):
            return
        if callers.is_import(frame):
            self._note_imported(path)
        elif callers.is_our_own(frame):
            return
        elif isinstance(flags, int) and flags & _WRITES:
            empties = bool(flags & os.O_TRUNC) and not flags & os.O_EXCL
            self._used.note_write(path, empties=empties)
        elif isinstance(flags, int) and flags & os.O_PATH:  # of which the kernel does not tell
            self._used.note_below_root(path)
        else:
            self._used.note(path, NoteKind.READ)

    def _note_imported(self, path: str) -> None:
        folder, name = os.path.split(path)
        if folder.endswith("/__pycache__") and name.endswith(".pyc"):
            path = f"{os.path.dirname(folder)}/{name.partition('.')[0]}.py"
        if path.endswith(".py"):
            self._used.note(path, NoteKind.SOURCE)
        elif "/__pycache__/" not in path:  # there, the import system writes
            self._used.note(path, NoteKind.READ)

    def _list(self, arguments: _Arguments, frame: FrameType) -> None:
        path = _find_folder(arguments[0])
        if path is None:
            return
        if callers.is_import(frame):
            self._used.note_imports(path)
        elif callers.is_metadata(frame):
            self._used.note_imports(path)
            for ending in ("*.dist-info", "*.egg", "*.egg-info"):
                self._used.note_search(path, ending)
        else:
            self._used.note(path, NoteKind.LISTED)

    def _scan(self, arguments: _Arguments, frame: FrameType) -> None:
        self._list(arguments, frame)
        # Sizes and times come with the names; the standard library asks for kinds alone: of a link,
        # for that of what it leads to.
        is_standard = bool(callers.find_module(frame))
        with contextlib.suppress(OSError, TypeError):
            for entry in os.scandir(_find_folder(arguments[0])):
                if not is_standard:
                    self._used.note_below_root(entry.path)
                elif entry.is_symlink():
                    self._used.note(entry.path, NoteKind.EXISTS)

    def _try(self, arguments: _Arguments, frame: FrameType) -> None:
        path = find_absolute(arguments[0], arguments[-1])
        if not callers.is_import(frame) and path is not None:
            self._used.note(path, NoteKind.EXISTS)

    def _make_folder(self, arguments: _Arguments, frame: FrameType) -> None:
        path = find_absolute(arguments[0], arguments[-1])
        if not callers.is_import(frame) and path is not None:
            self._used.note(path, NoteKind.EXISTS)
            self._used.note_write(path, empties=True)

    def _rename(self, arguments: _Arguments, frame: FrameType) -> None:
        source = find_absolute(arguments[0], arguments[2])
        target = find_absolute(arguments[1], arguments[3])
        if not callers.is_import(frame) and source and target:
            self._used.note_new_name(source, target, moves=True)

    def _link(self, arguments: _Arguments, frame: FrameType) -> None:
        del frame
        source = find_absolute(arguments[0], arguments[2])
        target = find_absolute(arguments[1], arguments[-1])
        if source and target:
            self._used.note_new_name(source, target, moves=False)

    def _link_symbolically(self, arguments: _Arguments, frame: FrameType) -> None:
        del frame
        target = find_absolute(arguments[1], arguments[2])
        if target is not None:
            source = os.path.join(os.path.dirname(target), os.fsdecode(arguments[0]))
            self._used.note_new_name(source, target, moves=False)

    def _load(self, arguments: _Arguments, frame: FrameType) -> None:
        """Note a library; an import names one only of native code."""
        del frame
        path = arguments[0] if len(arguments) == 1 else arguments[1]
        if path and "/" in os.fsdecode(path) and (absolute := find_absolute(path)):
            self._used.note(absolute, NoteKind.READ)

    def _open_database(self, arguments: _Arguments, frame: FrameType) -> None:
        del frame
        name = os.fsdecode(arguments[0])
        path = unquote(urlsplit(name).path) if name.startswith("file:") else name
        if path != ":memory:" and (absolute := find_absolute(path)):
            self._used.note(absolute, NoteKind.READ)

    def _connect(self, arguments: _Arguments, frame: FrameType) -> None:
        del frame
        address = arguments[1]
        if isinstance(address, (str, bytes)):
            text = os.fsdecode(address)
            # Those by which multiprocessing passes tensors, and abstract ones, which leave no file.
            if "/pymp-" in text or not text or text.startswith("\0"):
                return
        self._used.notes.add(NoteKind.OBSTACLE, f"it opens a socket, to {address!r:.100}")

    def _look_up(self, arguments: _Arguments, frame: FrameType) -> None:
        del frame
        what = f"it asks for the address of {arguments[0]!r:.100}"
        self._used.notes.add(NoteKind.OBSTACLE, what)

    def _start(self, arguments: _Arguments, frame: FrameType) -> None:
        # (executable, arguments, …); of os.spawn, (mode, path, arguments, …)
        command = arguments[1] if isinstance(arguments[1], (list, tuple)) else arguments[:1]
        self.start_program(command or arguments[:1], frame)

    def _start_shell(self, arguments: _Arguments, frame: FrameType) -> None:
        del arguments, frame
        self._used.notes.add(NoteKind.OBSTACLE, "it starts a shell")


def _find_folder(folder: Any) -> str | None:  # noqa: ANN401  of a program
    """Return the path of a folder that is listed; it may be open under a number."""
    if isinstance(folder, int):
        folder = os.readlink(f"/proc/self/fd/{folder}")
    return find_absolute("." if folder is None else folder)


def find_absolute(path: Any, folder: Any = None) -> str | None:  # noqa: ANN401  of a program
    """Return the path that a call was given; `None` for an open file, an empty path or none.

    It may be relative to a folder that is open under the number `folder`.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        return None
    if not text or text.startswith("/"):
        return text or None
    opened = f"/proc/self/fd/{folder}"
    here = isinstance(folder, int) and folder > 0 and os.path.isdir(opened)
    return os.path.join(os.readlink(opened) if here else os.getcwd(), text)

"""What a program does, by Python's audit events and by few patches of what tells none.

The hook and the patches are called within the program, in any of its threads, and in its forked
children.
"""

import contextlib
import importlib.machinery
import importlib.util
import os
import posix
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from urllib.parse import unquote, urlsplit

from ci_perf.measuring.recording.notes import NoteKind
from ci_perf.measuring.recording.used import UsedPaths
from ci_perf.model.program import NATIVE_VARIABLES, SET_BY_LAUNCH, digest

# Between two looks at what the kernel has told: it keeps 16,384 events.
_READ_EVERY = 1000
_WRITES = os.O_WRONLY | os.O_RDWR
_LISTS = {"os.listdir", "os.scandir"}
_NEW_NAMES = {"os.link", "os.rename", "os.symlink"}
_PROGRAMS = {"os.exec", "os.posix_spawn", "os.system", "pty.spawn", "subprocess.Popen"}
_SOCKETS = {
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyaddr"),
    *("socket.gethostbyname", "socket.sendto"),
}
# They fail where something is there, or is not there.
_TELL_EXISTENCE = {
    *("os.chdir", "os.chflags", "os.chmod", "os.chown", "os.getxattr", "os.listxattr"),
    *("os.remove", "os.removexattr", "os.rmdir", "os.setxattr", "os.truncate", "os.utime"),
}
_LIBRARIES = {"ctypes.dlopen", "import"}  # an import names a file only of native code
_FILES = {"open", "os.mkdir", "sqlite3.connect"}
_HEARD = _LISTS | _NEW_NAMES | _PROGRAMS | _SOCKETS | _TELL_EXISTENCE | _LIBRARIES | _FILES
# Of these there is no audit event.
_QUESTIONS = ("access", "lstat", "mkfifo", "mknod", "readlink", "stat", "statvfs")
# Sets that tell what a function can do: whoever asks for os.stat there means ours from now on.
_ABILITIES = ("dir_fd", "effective_ids", "fd", "follow_symlinks")

# The standard library, but not the packages that are installed below it.
_STDLIB = f"{Path(os.__file__).parent}/"
_IMPORT = "<frozen importlib._bootstrap_external>"
_METADATA = ("importlib/metadata/__init__.py", "importlib_metadata/__init__.py")
# Programs that these parts start read what torch generates from what the program has executed, or,
# to find a library, nothing but the system's own files.
_START_PROGRAMS = (
    "-packages/torch/_inductor/",
    "-packages/triton/",
    f"{_STDLIB}ctypes/util.py",
)
# It asks for a free port, and whether a server is ready: that is no work of the program's.
_ASK_SERVERS = (str(Path(__file__).parents[1] / "server.py"),)
# What these functions of the standard library learn of a file is whether, and as what, it exists.
_ASK_EXISTENCE = {
    *("_access_check", "_joinrealpath", "_lexists", "_path_stat", "checkcache", "exists"),
    *("is_dir", "is_file", "is_junction", "is_symlink", "isdir", "isfile", "isjunction", "islink"),
    *("lexists", "realpath", "resolve", "samefile", "updatecache"),
}


class Watch:
    """Hears what the program does until `is_over`: an audit hook cannot be removed."""

    def __init__(self, used: UsedPaths, read_kernel: Callable[[], None]) -> None:
        """Note what is used; call `read_kernel` every now and then."""
        self._used = used
        self._read_kernel = read_kernel
        self._heard = 0
        self._state = threading.local()
        self.is_over = False

    def start(self) -> None:
        """Begin to hear."""
        self._watch_questions()
        self._watch_searches()
        self._watch_variables()
        self._watch_spawn()
        settled, is_installed = self._used.settled, self._used.is_installed

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in _HEARD:
                return
            path = arguments[0] if event == "open" else None
            if type(path) is str and (path in settled or is_installed(path)):
                self._count()
            else:
                self.hear(self._note, event, arguments, sys._getframe(1))  # noqa: SLF001

        sys.addaudithook(hook)

    def hear(self, handler: Callable[..., None], *told: object) -> None:
        """Call a handler, unless this is within one. It never raises: the program would see it."""
        if self.is_over or getattr(self._state, "is_busy", False):
            return
        self._state.is_busy = True
        try:
            handler(*told)
        except Exception as error:  # noqa: BLE001  the program would see it
            words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            with contextlib.suppress(Exception):
                self._used.notes.add(NoteKind.OBSTACLE, f"the recording failed: {words}")
        finally:
            self._state.is_busy = False
        self._count()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Within, what this thread does is no work of the program's."""
        self._state.is_busy = True
        try:
            yield
        finally:
            self._state.is_busy = False

    def _count(self) -> None:
        self._heard += 1
        if self._heard % _READ_EVERY == 0:
            self.hear(self._read_kernel)

    def _note(self, event: str, arguments: tuple[Any, ...], frame: FrameType) -> None:
        if event in _PROGRAMS:
            self._note_program(arguments[0], frame)
        elif event in _SOCKETS:
            self._note_socket(arguments, frame)
        elif event == "open":
            self._note_open(arguments[0], arguments[2], frame)
        elif event in _LISTS:
            self._note_list(arguments[0], frame, scans=event == "os.scandir")
        elif event in _LIBRARIES:
            path = arguments[0 if len(arguments) == 1 else 1]
            if path and "/" in os.fsdecode(path):
                self._note_path(path, None, NoteKind.READ)
        elif event == "sqlite3.connect":
            name = os.fsdecode(arguments[0])
            file = unquote(urlsplit(name).path) if name.startswith("file:") else name
            if file != ":memory:":
                self._note_path(file, None, NoteKind.READ)
        elif frame.f_code.co_filename != _IMPORT:  # which writes into __pycache__
            self._note_name(event, arguments)

    def _note_socket(self, arguments: tuple[Any, ...], frame: FrameType) -> None:
        if _is_within(_ASK_SERVERS, frame):
            return
        address = arguments[1] if len(arguments) == 2 else arguments[0]
        is_path = len(arguments) == 2 and isinstance(address, (str, bytes))
        text = os.fsdecode(address) if is_path else "/"
        # Those by which multiprocessing passes tensors, and abstract ones, which leave no file.
        if "/pymp-" not in text and text[:1] not in {"", "\0"}:
            self._used.notes.add(NoteKind.OBSTACLE, f"it opens a socket, to {address!r:.100}")

    def _note_name(self, event: str, arguments: tuple[Any, ...]) -> None:
        self._used.forget_names()
        if event in _NEW_NAMES:
            source, target, *folders = arguments
            if event != "os.symlink":  # links are followed when they are used
                self._note_path(source, folders[0], NoteKind.READ)
            self._note_path(target, folders[-1], NoteKind.MADE)
        else:
            kind = NoteKind.MADE if event == "os.mkdir" else NoteKind.EXISTS
            self._note_path(arguments[0], arguments[-1], kind)

    def _note_path(self, path: object, folder: object, kind: NoteKind) -> None:
        """Note a path; it may be relative to a folder that is open under the number `folder`."""
        if absolute := _find_absolute(path, folder):
            self._used.note(absolute, kind)

    def _note_program(self, program: object, frame: FrameType | None) -> None:
        """Note a program that is started, by whatever way: what it reads, nobody sees."""
        if _is_within(_START_PROGRAMS, frame):
            return
        words = os.fsdecode(program) if isinstance(program, (str, bytes)) else str(program)
        what = f"it starts another program, {words[:200]}"
        self._used.notes.add(NoteKind.OBSTACLE, what)

    def _note_open(self, name: object, flags: object, frame: FrameType) -> None:
        path = _find_absolute(name)
        if path is None:
            return
        if _is_import(frame):
            if "/__pycache__/" in path:
                if not path.endswith(".pyc"):  # there, the import system writes
                    return
                path = importlib.util.source_from_cache(path)
            self._used.note(path, NoteKind.SOURCE if path.endswith(".py") else NoteKind.READ)
        elif isinstance(flags, int) and flags & _WRITES:
            self._used.note(path, NoteKind.MADE)
            # Whoever cannot create a file may read it.
            is_emptied = flags & os.O_TRUNC and not flags & os.O_EXCL
            if not (is_emptied or os.path.isdir(path)):
                self._used.note(path, NoteKind.READ)
        else:
            self._used.note(path, NoteKind.READ)

    def _note_list(self, folder: object, frame: FrameType, *, scans: bool) -> None:
        if isinstance(folder, int):
            folder = f"/proc/self/fd/{folder}"
        path = _find_absolute("." if folder is None else folder)
        if path is None:
            return
        if _is_import(frame) or _is_metadata(frame):
            # What for, its searches say.
            self._used.notes.add(NoteKind.IMPORTED_FROM, self._used.resolve(path))
            for ending in ("*.dist-info", "*.egg", "*.egg-info") if _is_metadata(frame) else ():
                self._used.note_search(path, ending)
            return
        self._used.note(path, NoteKind.LISTED)
        # Sizes and times come with the names; the standard library asks for kinds alone: of a link,
        # for that of what it leads to.
        is_standard = _is_of_stdlib(frame.f_code)
        for entry in os.scandir(path) if scans and os.path.isdir(path) else ():
            if not is_standard:
                self._used.note(entry.path, NoteKind.ASKED)
            elif entry.is_symlink():
                self._used.note(entry.path, NoteKind.EXISTS)

    def _watch_questions(self) -> None:
        """Note what os.stat and its like are asked of, and what the answer may tell of it."""
        used = self._used

        def note(path: object, folder: object, frame: FrameType) -> None:
            # To learn the time of a folder, metadata are listed anew.
            asks_existence = _is_metadata(frame) or _asks_existence(frame)
            kind = NoteKind.EXISTS if asks_existence else NoteKind.ASKED
            self._note_path(path, folder, kind)

        def watch(name: str) -> None:
            real = getattr(posix, name)

            def ask(path: Any, *args: Any, **options: Any) -> Any:
                is_known = type(path) is str and (path in used.settled or used.is_installed(path))
                if not is_known and type(path) is not int:
                    frame = sys._getframe(1)  # noqa: SLF001
                    self.hear(note, path, options.get("dir_fd"), frame)
                return real(path, *args, **options)

            ask.__name__ = ask.__qualname__ = name
            for ability in _ABILITIES:
                able = getattr(os, f"supports_{ability}")
                able |= {ask} if real in able else set()
            setattr(os, name, ask)
            setattr(posix, name, ask)

        for name in _QUESTIONS:
            watch(name)

    def _watch_searches(self) -> None:
        """Note which modules are looked for in which folders of the repository."""
        finder: Any = importlib.machinery.FileFinder
        find_spec, used = finder.find_spec, self._used

        def find(self_: Any, fullname: str, target: object = None) -> Any:
            if not used.is_installed(f"{self_.path}/"):
                folder, name = os.path.join(os.getcwd(), self_.path), fullname.rpartition(".")[2]
                self.hear(used.note_search, folder, name)
            return find_spec(self_, fullname, target)

        finder.find_spec = find

    def _watch_variables(self) -> None:
        """Note the variables of the environment that are read, and those that C code may read.

        The values are those of the start: what the program sets itself is no input.
        """
        kind: Any = type(os.environ)
        get, start, notes = kind.__getitem__, dict(os.environ), self._used.notes
        noted: set[object] = set()

        def note(name: str) -> None:
            noted.add(name)
            if name not in SET_BY_LAUNCH:
                value = start.get(name)
                known = "" if value is None else digest(os.fsencode(value))
                notes.add(NoteKind.VARIABLE, name, known)

        def getitem(environment: Any, key: Any) -> Any:
            if type(key) is not str or key not in noted:
                code = sys._getframe(1).f_code  # noqa: SLF001
                is_copied = code.co_name in {"__iter__", "copy"} and _is_of_stdlib(code)
                if isinstance(key, (str, bytes)) and not is_copied:
                    self.hear(note, os.fsdecode(key))
            return get(environment, key)

        for name in start:
            if name.startswith(NATIVE_VARIABLES):
                note(name)
        kind.__getitem__ = getitem
        for name in ("__iter__", "__len__", "__repr__"):
            self._watch_environment(kind, name)

    def _watch_environment(self, kind: Any, name: str) -> None:
        """Note who goes through the whole environment by a method.

        The standard library and torch do so to hand it on to a program, which is an obstacle
        itself, and to find names with prefixes that are always noted. A repository may do more.
        """
        real = getattr(kind, name)

        def note(frame: FrameType | None) -> None:
            while frame is not None and _is_of_stdlib(frame.f_code):
                frame = frame.f_back
            if frame is not None and not self._used.is_installed(frame.f_code.co_filename):
                what = "it reads the whole environment (os.environ)"
                self._used.notes.add(NoteKind.OBSTACLE, what)

        def ask(environment: Any) -> Any:
            self.hear(note, sys._getframe(1))  # noqa: SLF001
            return real(environment)

        setattr(kind, name, ask)

    def _watch_spawn(self) -> None:
        """Note the programs that multiprocessing starts, which tells no audit event."""
        import _posixsubprocess

        start = _posixsubprocess.fork_exec

        def fork_exec(arguments: Any, *more: Any) -> int:
            for program in [*arguments][:1]:
                self.hear(self._note_program, program, sys._getframe(1))  # noqa: SLF001
            return start(arguments, *more)

        _posixsubprocess.fork_exec = fork_exec


def _find_absolute(path: Any, folder: object = None) -> str | None:
    """Return the path that a call was given; `None` for an open file, an empty path or none."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        return None
    opened = f"/proc/self/fd/{folder}"
    here = opened if type(folder) is int and os.path.isdir(opened) else os.getcwd()
    return os.path.join(here, text) if text else None


def _is_within(files: tuple[str, ...], frame: FrameType | None) -> bool:
    """Whether code of one of these files has called, at any distance."""
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in files):
            return True
        frame = frame.f_back
    return False


def _is_import(frame: FrameType) -> bool:
    """Whether the import system reads a module, or looks for one."""
    is_asked = frame.f_code.co_name == "get_data"  # a program may ask a loader for a source
    caller = frame.f_back.f_code.co_name if frame.f_back else ""
    return frame.f_code.co_filename == _IMPORT and (not is_asked or caller == "get_code")


def _is_metadata(frame: FrameType) -> bool:
    """Whether the metadata of installed packages are looked for."""
    return frame.f_code.co_filename.endswith(_METADATA)


def _is_of_stdlib(code: CodeType) -> bool:
    file = code.co_filename
    return file.startswith((_STDLIB, "<frozen ")) and "-packages/" not in file


def _asks_existence(frame: FrameType | None) -> bool:
    """Whether the standard library asks on behalf of a function that tells existence alone."""
    while frame is not None and _is_of_stdlib(frame.f_code):
        if frame.f_code.co_name in _ASK_EXISTENCE:
            return True
        frame = frame.f_back
    return False

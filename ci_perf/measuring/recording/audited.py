"""What Python's audit events tell: files, folders, libraries, programs, sockets.

Called from within the program, in any of its threads, and in its forked children.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ci_perf.measuring.recording import callers
from ci_perf.measuring.recording.contents import Contents
from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import absolute

# Between two looks at what the kernel has told: it keeps 16,384 events.
_DRAINED = 1000

_WRITES = os.O_WRONLY | os.O_RDWR
_REPLACES = os.O_TRUNC | os.O_EXCL

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


# They fail where something is there, or is not: with their first argument, or their first two.
_TELL_EXISTENCE = tuple(
    f"os.{name}" for name in ("chdir", "mkdir", "remove", "rename", "rmdir", "symlink")
)

_Handler = Callable[[Any, FrameType], None]
_ATTRIBUTE = "object.__getattr__"


class Audit:
    """Hears all audit events until `stop`: a hook cannot be removed."""

    def __init__(
        self,
        notes: Notes,
        contents: Contents,
        *,
        executes: Callable[[CodeType], None],
        searches_metadata: Callable[[str], None],
        is_installed: Callable[[object], bool],
        is_profiled: bool,
        drain: Callable[[], None],
    ) -> None:
        """Tell `executes` of code that somebody holds, and `searches_metadata` of folders.

        `is_profiled` says that a profiler of the program would take the place of ours. `drain` is
        called every now and then.
        """
        self._notes = notes
        self._contents = contents
        self._executes = executes
        self._searches_metadata = searches_metadata
        self._is_installed = is_installed
        self._is_profiled = is_profiled
        self._drain = drain
        self._heard = 0
        self._state = threading.local()
        self._is_on = True
        self._handlers: dict[str, _Handler] = {
            "open": self._open,
            _ATTRIBUTE: self._attribute,
            "os.listdir": self._list,
            "os.scandir": self._scan,
            **dict.fromkeys(_TELL_EXISTENCE, self._try),
            "os.mkdir": self._make_folder,
            "os.link": self._link,
            "import": self._import,
            "ctypes.dlopen": self._load,
            "sqlite3.connect": self._load,
            "sys.setprofile": self._profile,
            "socket.connect": self._socket,
            "socket.bind": self._socket,
            "socket.sendto": self._socket,
            "socket.getaddrinfo": self._look_up,
            "socket.gethostbyname": self._look_up,
            "socket.gethostbyaddr": self._look_up,
            "subprocess.Popen": self._start_program,
            "os.exec": self._start_program,
            "os.posix_spawn": self._start_program,
            "os.spawn": self._start_program,
            "os.system": self._start_shell,
            "pty.spawn": self._start_shell,
        }

    def hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        """Return what sys.addaudithook takes. It never raises: the program would see it."""
        handlers, hear, is_installed = self._handlers, self._hear, self._is_installed

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            handler = handlers.get(event)
            if handler is None:
                return
            # Frames tell of f_code in the same event: at every call, where calls are watched.
            if event == _ATTRIBUTE and arguments[1] != "__code__":
                return
            if event != "open" or not is_installed(arguments[0]):
                hear(handler, arguments, sys._getframe(1))  # noqa: SLF001  the caller's

        return hook

    def _hear(self, handler: _Handler, arguments: tuple[Any, ...], frame: FrameType) -> None:
        if self.is_aside:
            return
        with self.aside():
            try:
                handler(arguments, frame)
                self._heard += 1
                if self._heard % _DRAINED == 0:
                    self._drain()
            except Exception as error:  # noqa: BLE001  the program would see it
                self.trouble(error)

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

    def trouble(self, error: Exception) -> None:
        """Note that the recording itself failed."""
        with contextlib.suppress(Exception):
            words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._notes.add(Fact.OBSTACLE, f"the recording failed: {words}")

    def stop(self) -> None:
        """Hear nothing any more."""
        self._is_on = False

    def start_program(self, command: object, frame: FrameType | None) -> None:
        """Note a program that is started, by whatever way."""
        words = [os.fsdecode(word) for word in _words(command)]
        if any(word.startswith(_TRACKER) for word in words):
            return
        name = Path(words[0]).name if words else "a program"
        if name in _HARMLESS_PROGRAMS or callers.any_in(frame, _START_PROGRAMS):
            return
        self._notes.add(Fact.OBSTACLE, f"the program starts another one, {name[:200]}")

    def _open(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        name, _, flags = arguments
        if (path := absolute(name)) is None or callers.is_linecache(frame):
            return
        if isinstance(flags, int) and flags & os.O_EXCL:
            self._contents.tried(path)
        if isinstance(flags, int) and flags & _WRITES:
            self._contents.written(path, keeps=not flags & _REPLACES)
        else:
            is_source = path.endswith(".py") and callers.is_import(frame)
            self._contents.read(path, by_import=is_source)

    def _attribute(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        self._executes(arguments[0].__code__)

    def _list(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        if (path := self._listed(arguments[0], frame)) is not None:
            self._contents.listed(path)

    def _scan(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        if (path := self._listed(arguments[0], frame)) is not None:
            self._contents.scanned(path)

    def _try(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        if callers.is_import(frame):  # it writes compiled modules
            return
        for argument in arguments[:2]:
            is_path = isinstance(argument, (str, bytes, os.PathLike))
            if is_path and (path := absolute(argument)) is not None:
                self._contents.tried(path)

    def _make_folder(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        self._try(arguments, frame)
        if not callers.is_import(frame) and (path := absolute(arguments[0])) is not None:
            self._contents.made_folder(path)

    def _link(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        """Note what gets a further name: to read it by that shows nothing of it."""
        self._try(arguments, frame)
        if (path := absolute(arguments[0])) is not None:
            self._contents.read(path)

    def _listed(self, folder: Any, frame: FrameType) -> str | None:  # noqa: ANN401
        """Return the folder that the program lists for itself."""
        if isinstance(folder, int):
            folder = os.readlink(f"/proc/self/fd/{folder}")
        path = absolute("." if folder is None else folder)
        if path is None:
            return None
        if callers.is_import(frame):
            self._contents.listed_by_import(path)
            return None
        if callers.is_metadata(frame):
            self._contents.listed_by_import(path)
            self._searches_metadata(path)
            return None
        return path

    def _import(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        if arguments[1] and (path := absolute(arguments[1])):
            self._contents.read(path)

    def _load(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        name = arguments[0]
        if name and "/" in os.fsdecode(name) and (path := absolute(name)):
            self._contents.read(path)

    def _profile(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del arguments
        if self._is_profiled and not callers.is_of_recording(frame):
            self._notes.add(Fact.OBSTACLE, "the program uses a profiler of Python calls itself")

    def _socket(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        address = arguments[1]
        if isinstance(address, (str, bytes)):
            text = os.fsdecode(address)
            # Those by which multiprocessing passes tensors, and abstract ones, which leave no file.
            if "/pymp-" in text or not text or text.startswith("\0"):
                return
        self._notes.add(Fact.OBSTACLE, f"the program opens a socket, to {address!r:.100}")

    def _look_up(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        self._notes.add(Fact.OBSTACLE, f"the program asks for the address of {arguments[0]!r:.100}")

    def _start_program(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        # (executable, arguments, …); of os.spawn, (mode, path, arguments, …)
        command = arguments[1] if isinstance(arguments[1], (list, tuple)) else arguments[:1]
        self.start_program(command or arguments[:1], frame)

    def _start_shell(self, arguments: Any, frame: FrameType) -> None:  # noqa: ANN401
        del frame
        self.start_program(["a shell", arguments[0]], None)


def _words(command: object) -> list[Any]:
    if isinstance(command, (list, tuple)):
        return [word for word in command if isinstance(word, (str, bytes, os.PathLike))]
    return [command] if isinstance(command, (str, bytes, os.PathLike)) else []

"""Which functions of the repository are executed, in all threads.

From Python 3.12 on sys.monitoring tells each function once. Before, a profiler tells every call, in
the threads that Python has started; a native thread it does not see.
"""

import _lsprof
import _thread
import ctypes
import dis
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import Owner, Places

TOLD_ONCE = sys.version_info >= (3, 12)

_CO_OPTIMIZED = 0x1
# By the address of an object. Unlike id() it tells no audit event, which is slow to hear.
_identity = object.__hash__

# What shows a program its line numbers, or finds the text of a function by them.
_POSITIONS = {
    "co_firstlineno",
    "co_linetable",
    "co_lines",
    "co_lnotab",
    "co_positions",
    "currentframe",
    "extract_stack",
    "extract_tb",
    "f_lineno",
    "findsource",
    "getcomments",
    "getdoc",
    "getframeinfo",
    "getsource",
    "getsourcelines",
    "lineno",
    "tb_lineno",
    "walk_stack",
    "walk_tb",
}
_DOCSTRING = "__doc__"
_LOADS = {"LOAD_ATTR", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_METHOD", "LOAD_NAME"}
# These copy a docstring into another one, into a help text or into documentation; the standard
# library and torch do the same.
_COPY_DOCSTRINGS = {
    "PIL",
    "_pytest",
    "absl",
    "accelerate",
    "attr",
    "click",
    "datasets",
    "diffusers",
    "einops",
    "filelock",
    "fsspec",
    "google",
    "huggingface_hub",
    "jinja2",
    "joblib",
    "lightning",
    "matplotlib",
    "mpmath",
    "msgspec",
    "networkx",
    "numba",
    "numpy",
    "packaging",
    "pandas",
    "peft",
    "pkg_resources",
    "psutil",
    "pyarrow",
    "pydantic",
    "pynvml",
    "regex",
    "requests",
    "rich",
    "safetensors",
    "scipy",
    "setuptools",
    "sklearn",
    "six",
    "sympy",
    "timm",
    "tokenizers",
    "torch",
    "torchaudio",
    "torchgen",
    "torchmetrics",
    "torchvision",
    "tqdm",
    "transformers",
    "triton",
    "typer",
    "typing_extensions",
    "urllib3",
    "yaml",
}
# But a schema of a class is an outcome that has its docstring.
_PUBLISH_DOCSTRINGS = ("/pydantic/json_schema.py", "/msgspec/_json_schema.py")
_NAME = "ci_perf"
# Those that Python leaves to tools: 0, 1, 2 and 5 are for debuggers, coverage and the like.
_IDS = (4, 3)


def unit_name(code: CodeType) -> str:
    """Name the unit that a code object belongs to, as `program.units.digests` does.

    What is nested in a function belongs to it; lambdas and comprehensions beside functions belong
    to the body of their class or module.
    """
    outer: list[str] = []
    for part in code.co_qualname.split("."):
        if part == "<locals>":
            return ".".join(outer)
        if part.startswith("<"):
            return ".".join(outer) + ":"
        outer.append(part)
    return ".".join(outer) if code.co_flags & _CO_OPTIMIZED else ".".join(outer) + ":"


class Executed:
    """Notes each code object when it is first seen."""

    def __init__(self, notes: Notes, places: Places) -> None:
        self._notes = notes
        self._places = places
        # By identity, and kept, so that no other object gets the same: comparing code is slow.
        self._seen: dict[int, CodeType] = {}

    def note(self, code: CodeType) -> None:
        """Note what is executed, or may be because somebody holds its code."""
        if _identity(code) in self._seen:
            return
        self._seen[_identity(code)] = code
        file = code.co_filename
        if file.startswith("<"):
            return
        owner, name = self._places.classify(file)
        if owner is Owner.REPOSITORY:
            self._notes.add(Fact.UNIT, name, unit_name(code))
            if sight := _sight(code):
                self._notes.add(Fact.SIGHT, f"{name} uses `{sight}`")
        elif owner is Owner.INSTALLED and (package := _package(file)):
            is_published = file.endswith(_PUBLISH_DOCSTRINGS) and _reads_docstring(code)
            may_be_shown = package not in _COPY_DOCSTRINGS and _DOCSTRING in code.co_names
            if is_published or (may_be_shown and _loads_docstring(code)):
                self._notes.add(Fact.SIGHT, f"the package {package} uses `{_DOCSTRING}`")


def _sight(code: CodeType) -> str:
    """Name by what a function can see positions or docstrings; empty when by nothing."""
    names = {*code.co_names} | _constants(code)
    if used := sorted(_POSITIONS & names):
        return used[0]
    if "stack" in names and "inspect" in names:
        return "inspect.stack"
    return _DOCSTRING if _reads_docstring(code) else ""


def _reads_docstring(code: CodeType) -> bool:
    return _DOCSTRING in _constants(code) or (
        _DOCSTRING in code.co_names and _loads_docstring(code)
    )


def _constants(code: CodeType) -> set[str]:
    return {text for constant in code.co_consts for text in _texts(constant)}


def _texts(constant: object) -> set[str]:
    if isinstance(constant, str):
        return {constant}
    if isinstance(constant, (tuple, frozenset)):
        return {item for item in constant if isinstance(item, str)}
    return set()


def _loads_docstring(code: CodeType) -> bool:
    """Whether it reads a docstring; the body of every class that has one stores it."""
    return any(
        step.argval == _DOCSTRING and step.opname in _LOADS for step in dis.get_instructions(code)
    )


def _package(file: str) -> str:
    """Name the installed package of a file; empty for the standard library and for ours."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2].partition("/")[0].removesuffix(".py")
    return ""


class NoMonitoringError(Exception):
    """Other tools use what sys.monitoring has for them."""


def watch_starts(note: Callable[[CodeType], None]) -> Callable[[], bool]:
    """Have `note` called for each function when it first starts, in all threads; return the end.

    Raises NoMonitoringError.
    """
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    free = [number for number in _IDS if monitoring.get_tool(number) is None]
    if not free:
        raise NoMonitoringError("other tools use sys.monitoring")
    tool, starts = free[0], monitoring.events.PY_START

    def started(code: CodeType, offset: int) -> object:
        del offset
        note(code)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, _NAME)
    monitoring.register_callback(tool, starts, started)
    monitoring.set_events(tool, starts)

    def end() -> bool:
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.register_callback(tool, starts, None)
        monitoring.free_tool_id(tool)
        return False  # it has seen all threads

    return end


class Profilers:
    """One profiler in C for each thread: it keeps the code of each call until somebody asks.

    It costs a fifth of what a function of ours costs as a profiler, which hears of every return and
    of every call of a builtin as well. But a forked child may be killed at any time, so there such
    a function notes each call at once.
    """

    def __init__(self, note: Callable[[CodeType], None]) -> None:
        """Watch this thread, and those that it will start."""
        self._note = note
        self._running: dict[int, _lsprof.Profiler] = {}
        self._is_child = False
        self._start = start = _thread.start_new_thread
        self._started: list[None] = []
        self._first = self._newest_thread()

        def start_new_thread(
            function: Callable[..., object],
            arguments: tuple[Any, ...],
            *more: Any,  # noqa: ANN401
        ) -> int:
            def run(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401
                self._begin()
                try:
                    function(*args, **kwargs)
                finally:
                    self._end_thread()

            self._started.append(None)
            return start(run, arguments, *more)

        module: Any = threading  # it has taken the function when it was imported
        _thread.start_new_thread = module._start_new_thread = start_new_thread  # noqa: SLF001
        os.register_at_fork(after_in_child=self._begin_child)
        self._begin()

    def end(self) -> bool:
        """Note what was called in all threads; end it in this one.

        Returns whether native threads have called Python, which no profiler has seen.
        """
        self._end_thread()
        for profiler in [*self._running.values()]:
            self._take(profiler)
        return self._newest_thread() - self._first - 1 > len(self._started)

    def _newest_thread(self) -> int:
        """Start a thread and return its number: Python counts each thread that ever runs in it."""
        api = ctypes.pythonapi
        api.PyThreadState_Get.restype = ctypes.c_void_p
        api.PyThreadState_GetID.restype = ctypes.c_uint64
        api.PyThreadState_GetID.argtypes = [ctypes.c_void_p]
        numbers: list[int] = []
        is_done = _thread.allocate_lock()
        is_done.acquire()

        def look() -> None:
            numbers.append(api.PyThreadState_GetID(api.PyThreadState_Get()))
            is_done.release()

        self._start(look, ())
        is_done.acquire()
        return numbers[0]

    def _begin(self) -> None:
        if self._is_child:
            sys.setprofile(self._called)
            return
        profiler = _lsprof.Profiler(subcalls=False, builtins=False)
        self._running[_thread.get_ident()] = profiler
        profiler.enable()

    def _end_thread(self) -> None:
        profiler = self._running.pop(_thread.get_ident(), None)
        if profiler is not None:
            self._take(profiler)

    def _take(self, profiler: _lsprof.Profiler) -> None:
        profiler.disable()  # or a function that has not returned yet would not count, in any thread
        for entry in profiler.getstats():
            if isinstance(entry.code, CodeType):
                self._note(entry.code)

    def _begin_child(self) -> None:
        self._is_child = True
        self._running.clear()
        self._begin()

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call":
            self._note(frame.f_code)

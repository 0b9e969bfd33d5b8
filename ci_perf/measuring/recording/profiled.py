"""Which functions are executed, told by profilers. Before Python 3.12; see monitored.py."""

import _lsprof
import _thread
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


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
            profiler.disable()
            self._take(profiler)

    def _take(self, profiler: _lsprof.Profiler) -> None:
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

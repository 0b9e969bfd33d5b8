"""The signals that ask this process to end: SIGINT, SIGTERM and SIGHUP.

The process can exit at once, be interrupted by an exception, note a signal and look later, defer
signals while it creates or removes something, or block them while it starts a program. A signal
that the caller ignores (nohup) stays ignored. Python handles signals in its main thread only:
`noted` and `deferred` do nothing in another thread.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# ExitCode.INTERRUPTED: errors.py is not imported for it, because the program has only begun.
_INTERRUPTED = 130

_Function = Callable[[int, FrameType | None], Any]
_Handler = _Function | int | None


def exit_at_once() -> None:
    """Exit at the first signal: for the start of a program, when there is nothing to clean up.

    An exception would show how far the imports got.
    """
    _handle(_exit)


def interrupt() -> None:
    """Raise KeyboardInterrupt at each signal: a CI cancels with SIGTERM, a terminal with SIGHUP."""
    _handle(_interrupt)


class Interrupts:
    """The signals that have been noted so far."""

    def __init__(self) -> None:
        self.came = False
        self._raises = False

    def have_come(self) -> bool:
        """Whether a signal has asked this process to end."""
        return self.came

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has asked this process to end."""
        if self.came:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Within, the first signal raises KeyboardInterrupt at once, also one that came before.

        For code that may take long, does not look for signals, and leaves nothing behind.
        """
        self._raises = True
        try:
            self.check()
            yield
        finally:
            self._raises = False

    def sleep(self, seconds: float) -> None:
        """Sleep, then raise KeyboardInterrupt if a signal came meanwhile."""
        time.sleep(seconds)
        self.check()

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.came = True
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def note_signals() -> Iterator[Interrupts]:
    """Within, signals are noted and raise nothing, so that they cut no cleaning up short."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = _handle(interrupts.note)
    try:
        yield interrupts
    finally:
        _restore(before)


class Deferral:
    """Keeps signals back, and passes them on to the handlers that were there before."""

    def __init__(self) -> None:
        self._defers = True
        self._is_over = False
        self._deferred: list[int] = []
        self._before = {number: signal.getsignal(number) for number in _not_ignored()}

    def have_come(self) -> bool:
        """Whether a signal is being kept back."""
        return bool(self._deferred)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Within, signals reach the earlier handlers, also those that were kept back.

        After the first one, signals are deferred again: the cleaning up that it causes is not
        interrupted by the next.
        """
        self._defers = False
        try:
            deferred, self._deferred = self._deferred, []
            for number in deferred:
                self._pass_on(number, None)
            yield
        finally:
            self._defers = True

    def begin(self) -> None:
        """Handle signals instead of the earlier handlers."""
        _handle(self._receive)

    def end(self) -> None:
        """Restore the earlier handlers, and raise the signals that were kept back."""
        self._is_over = True  # an earlier handler may raise before all of them are restored
        _restore(self._before)
        for number in self._deferred:
            signal.raise_signal(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:
            self._pass_on(number, frame)
        elif self._defers:
            self._deferred.append(number)
        else:
            self._defers = True
            self._pass_on(number, frame)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        before = self._before[signal.Signals(number)]
        if not callable(before):  # the default would end the process without any cleaning up
            raise KeyboardInterrupt
        before(number, frame)


@contextlib.contextmanager
def defer_signals() -> Iterator[Deferral]:
    """Defer signals while a resource is created or removed, except where that is suspended."""
    deferral = Deferral()
    if threading.current_thread() is not threading.main_thread():
        yield deferral
        return
    deferral.begin()
    try:
        yield deferral
    finally:
        deferral.end()


def block() -> set[int]:
    """Block signals in this thread and in programs that it starts; return what to `unblock`."""
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def unblock(before: set[int]) -> None:
    """Undo `block`. A signal that came meanwhile is handled here, and may raise."""
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _not_ignored() -> list[signal.Signals]:
    return [s for s in _ENDING if signal.getsignal(s) not in (signal.SIG_IGN, None)]


def _handle(handler: _Function) -> dict[signal.Signals, _Handler]:
    """Install a handler; return the earlier handlers."""
    return {number: signal.signal(number, handler) for number in _not_ignored()}


def _restore(handlers: dict[signal.Signals, _Handler]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _exit(_number: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt

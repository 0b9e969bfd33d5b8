"""Signals that ask us to end wait while something is made or removed that must not be left behind.

`interrupts` notes signals for code that asks; here they are passed on to whoever listened before.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from ci_perf.system import signals


class Shield:
    """While it is up, signals wait."""

    def __init__(self) -> None:
        self._is_up = True
        self._is_over = False
        self._waiting: list[int] = []
        self._before = {one: signal.getsignal(one) for one in signals.heard()}

    def have_come(self) -> bool:
        """Whether somebody waits for us to end."""
        return bool(self._waiting)

    @contextlib.contextmanager
    def lowered(self) -> Iterator[None]:
        """Within, signals are heard as before, also those that have waited.

        The first that comes puts the shield up again: what is removed because of it is not
        interrupted by the next.
        """
        self._is_up = False
        try:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                self._pass_on(one, None)
            yield
        finally:
            self._is_up = True

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._is_over:
            self._pass_on(number, frame)
        elif self._is_up:
            self._waiting.append(number)
        else:
            self._is_up = True
            self._pass_on(number, frame)

    def listen(self) -> None:
        """Stand before everybody else who listens."""
        for one in self._before:
            signal.signal(one, self.hear)

    def leave(self) -> None:
        """Let the others listen again, also to what has waited."""
        self._is_over = True  # one of them may raise before all are back in their places
        for one, handler in self._before.items():
            signal.signal(one, handler)
        for waited in self._waiting:
            signal.raise_signal(waited)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        before = self._before[signal.Signals(number)]
        if not callable(before):  # nobody listens: the process would end here, and clean up nothing
            raise KeyboardInterrupt
        before(number, frame)


@contextlib.contextmanager
def raised() -> Iterator[Shield]:
    """Within, signals wait, except where the shield is lowered.

    Python hears signals in its main thread only: elsewhere there is nothing to wait.
    """
    shield = Shield()
    if threading.current_thread() is not threading.main_thread():
        yield shield
        return
    shield.listen()
    try:
        yield shield
    finally:
        shield.leave()

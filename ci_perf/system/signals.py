"""Signals that ask us to end: noted while children run, so that no cleaning up is cut short."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupts:
    """What has been heard so far."""

    came: bool = False
    _raises: bool = field(default=False, init=False)

    def have_come(self) -> bool:
        """Whether somebody has asked us to end."""
        return self.came

    def check(self) -> None:
        """Raise KeyboardInterrupt when somebody has asked us to end."""
        if self.came:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Within, the first signal raises KeyboardInterrupt at once, also one that came before.

        For what may take long, asks nobody meanwhile, and leaves nothing behind.
        """
        self._raises = True
        try:
            self.check()
            yield
        finally:
            self._raises = False

    def hear(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.came = True
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises KeyboardInterrupt afterwards, when somebody asked us to end meanwhile."""
        time.sleep(seconds)
        self.check()


def heard() -> list[signal.Signals]:
    """Return the signals that ask us to end, less those that are ignored (nohup)."""
    return [one for one in _ENDING if signal.getsignal(one) not in (signal.SIG_IGN, None)]


@contextlib.contextmanager
def noted() -> Iterator[Interrupts]:
    """Within, such a signal raises nothing, however many come; the code asks when it suits.

    What is ignored (nohup) stays ignored. Python hears signals in its main thread only: elsewhere
    none is noted.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {one: signal.signal(one, interrupts.hear) for one in heard()}
    try:
        yield interrupts
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)

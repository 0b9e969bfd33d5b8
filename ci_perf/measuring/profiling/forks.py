"""Watch this process alone: the workers that it forks must not run what watches it.

A worker of a DataLoader would inherit the dispatch mode or the hook under which it was started,
be slow for as long as it lives, and make the process wait that is timed.
"""

import contextlib
import os
import sys
from collections.abc import Iterator

from ci_perf.measuring import dispatch

_modes: list[object] = []


@contextlib.contextmanager
def calling(call: dispatch.Call) -> Iterator[None]:
    """Within, `call` gets each operator of this process: see `dispatch.calling`."""
    mode = dispatch.calling(call)
    process = os.getpid()
    _modes.append(mode)
    mode.__enter__()
    try:
        yield
    finally:
        if os.getpid() == process:
            mode.__exit__(None, None, None)
            _modes.remove(mode)


def _stop_watching() -> None:
    """Leave the hook and the modes, from the innermost one on; one of the program may lie above."""
    sys.setprofile(None)
    while _modes:
        from torch.utils import _python_dispatch

        if _python_dispatch._get_current_dispatch_mode() is not _modes.pop():  # noqa: SLF001
            break
        _python_dispatch._pop_mode()  # noqa: SLF001


os.register_at_fork(after_in_child=_stop_watching)

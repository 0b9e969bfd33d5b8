"""`ci-perf`, and `python -m ci_perf`: handles signals before it imports anything else."""

import contextlib
import os
import signal
from types import FrameType

# ExitCode.INTERRUPTED, of a module that is not imported yet.
_INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, _leave)
    from ci_perf.cli.main import main as run

    run()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Leave at once: nothing has been begun, and an exception would show how far imports got."""
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()

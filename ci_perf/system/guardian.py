"""A process that outlives ours if that is killed, and ends at once what ours has left.

`python -P -m ci_perf.system.guardian MODULE PLACE...` reads until our end. It hears a word where we
end as we should; else it does what the next run would do: it calls `sweep(PLACE...)` of the module.
"""

import contextlib
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_BYE = b"bye"
# The kernel closes our files one by one, and ends our children after us.
_SWEEPS, _PAUSE_S = 5, 0.3


@contextlib.contextmanager
def guard(environment: Mapping[str, str], module: str, *places: Path) -> Iterator[None]:
    """Have a guardian within, where one can be started."""
    process = None
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ci_perf.system.guardian", module, *map(str, places)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.wait()  # the guardian itself is no child of ours
    try:
        yield
    finally:
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(_BYE)
                process.stdin.close()


def _watch() -> None:
    """Wait for the end of who has started us."""
    if os.fork() or sys.stdin.buffer.read() == _BYE:
        return
    module, *places = sys.argv[1:]
    sweep = importlib.import_module(module).sweep
    for _ in range(_SWEEPS):
        with contextlib.suppress(OSError):
            sweep(*map(Path, places))
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    _watch()

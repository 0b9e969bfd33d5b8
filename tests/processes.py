"""Questions about real processes, asked until the answer comes, however busy the machine is."""

import time
from pathlib import Path

from ci_perf.system import processes


def is_alive(pid):
    """Whether a process runs. A zombie is dead: nobody has fetched its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_children(pid):
    """Return the children of a process, once it has some."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: children.read_text().split())
    return children.read_text().split()


def is_measuring(pid):
    """Whether a worker runs somewhere below a process."""
    return any(b"ci_perf.measure" in _command(process.pid) for process in processes.below(pid))


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(condition):
    """Wait for what must happen."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)

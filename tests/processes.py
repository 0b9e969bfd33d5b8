"""Questions about real processes, asked until the answer comes, however busy the machine is."""

import time
from pathlib import Path


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


def wait_until(condition):
    """Wait for what must happen."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)

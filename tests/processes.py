"""Real processes, and questions about them that are asked until the answer comes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ci_perf.system import processes


def run_python(*arguments, cwd=None, said="", **environment):
    """Run this Python to its end, however it ends; return how it ended and what it said."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        input=said,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def is_alive(pid):
    """Whether a process runs. A zombie is dead: nobody has fetched its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_children(pid):
    """Return the children of a process, whichever of its threads started them, once it has some."""
    wait_until(lambda: _children(pid))
    return _children(pid)


def _children(pid):
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for children in threads for child in children.read_text().split()]


def below(pid, module):
    """Return the ids of the processes below one that run this module of ours."""
    return [child.pid for child in processes.below(pid) if module in _command(child.pid)]


def is_measuring(pid):
    """Whether a worker runs somewhere below a process."""
    return bool(below(pid, "ci_perf.measuring"))


def wait_for_polls(pid, count=5):
    """Wait until a process that polls has slept this many times more."""
    enough = _sleeps(pid) + count
    wait_until(lambda: _sleeps(pid) >= enough)


def _sleeps(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def find_running_in(folder):
    """Return the commands of the processes that run in a folder, or below it."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder) and is_alive(process.name):
                left.append(_command(process.name))
    return left


def wait_until(condition):
    """Wait for what must happen."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)


def kill_while(run, notes):
    """Kill, as no handler sees it, a process that runs this: once each note has been written."""
    parent = os.fork()
    if parent == 0:
        try:
            run()
        finally:
            os._exit(0)
    try:
        wait_until(lambda: all(note.exists() and note.read_text() for note in notes))
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)

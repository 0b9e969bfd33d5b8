"""Programs of processes that are there at once, here or in containers."""

# Asks for turns until the pipe is full, and ends.
JUNK = """
import json, os, sys
from pathlib import Path
folder = Path(json.loads(Path(sys.argv[1], "task.json").read_text())["turns"])
asked = os.open(folder / "asked", os.O_WRONLY | os.O_NONBLOCK)
try:
    while True:
        os.write(asked, b"e?" * 500)
except BlockingIOError:
    os._exit(0)
"""


def noting(keep):
    """Note when each step began and ended, by the clock that all processes of a host share.

    `keep` is a line of Python that keeps what `json.dumps(steps)` says.
    """
    return f"""
import json, time
steps = []
def step():
    begin = time.monotonic_ns()
    time.sleep(0.002)
    steps.append((begin, time.monotonic_ns()))
def teardown():
    {keep}
def build(context):
    return Workload(step=step, teardown=teardown)
"""


def counting(file):
    """Share a number by a file: eight bytes that every process maps."""
    return f"""
import mmap, os, time
handle = os.open({file!r}, os.O_RDWR | os.O_CREAT, 0o666)
os.ftruncate(handle, 8)
shared = mmap.mmap(handle, 8)
def count():
    return int.from_bytes(shared[:], "little")
def work_ahead():
    while True:
        shared[:] = (count() + 1).to_bytes(8, "little")
"""


def fetching(file, *, begin):
    """Wait in each step for a process that works ahead, as those of a data loader do.

    `begin` are lines of Python that have such a process call `work_ahead`.
    """
    return f"""
{counting(file)}
{begin}
def step():
    seen = count()
    while count() == seen:
        pass
"""


def watching(file):
    """See in each step whether somebody works ahead meanwhile."""
    return f"""
{counting(file)}
moved = []
def step():
    before = count()
    time.sleep(0.002)
    moved.append(count() - before)
def teardown():
    assert count() and moved and not any(moved), moved
def build(context):
    return Workload(step=step, teardown=teardown)
"""

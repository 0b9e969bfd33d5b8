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

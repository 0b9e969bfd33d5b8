"""A small real worker that is watched by a monitor, and led by a test from stage to stage."""

import os
import subprocess
import sys

from tests.processes import wait_until

PYTHON = [sys.executable, "-P"]

# Says what it does by making files, and waits for files before it goes on.
WORKER = """
import os, sys, time
from pathlib import Path
from ci_perf.measuring.monitor import Marks
here = Path(sys.argv[1])
def reach(name):
    (here / ("at_" + name)).touch()
    while not (here / ("past_" + name)).exists():
        time.sleep(0.005)
marks = Marks(here)
marks.hello()
reach("start")
marks.begin()
reach("timing")
marks.end()
reach("end")
"""


def evidence_of(watched):
    """Return what the monitor saw; its silence would be a surprise."""
    evidence = watched.evidence()
    assert evidence is not None, watched.problem
    return evidence


class WatchedWorker:
    """A worker under watch, led by the test from stage to stage."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.child = subprocess.Popen(
            [*PYTHON, "-c", WORKER, str(folder)], env={**os.environ, **environment}
        )

    def at(self, stage):
        """Wait until the worker is there."""
        wait_until((self.folder / f"at_{stage}").exists)
        return self

    def past(self, stage):
        """Let the worker go on."""
        self.at(stage)
        (self.folder / f"past_{stage}").touch()
        return self

    def finished(self):
        for stage in ("start", "timing", "end"):
            self.past(stage)
        assert self.child.wait(timeout=60) == 0

"""Runs in containers as a user starts them, and what is left of them."""

import os
import subprocess
import sys

from ci_perf.features.containers.launch import stale
from ci_perf.features.containers.launch.arguments import OWNER_LABEL
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.processes import wait_until
from tests.projects import GOOD, SLOW_STEP, Project


class Stage:
    """A project with a workload that never ends, in a folder with a TMPDIR of its own."""

    def __init__(self, folder, engine, image):
        """Measure in `image`, which `engine` has."""
        self.folder, self.engine, self.image = folder, engine, image
        self.project = Project(folder / "a project")
        self.project.root.mkdir()
        self.scratch = folder / "tmp"
        self.scratch.mkdir()
        self.project.workload("good").workload("slow", GOOD + SLOW_STEP).suite("good", "slow")

    def start(self, *more, **environment):
        """Start a run, in a session of its own."""
        runner = (
            "--runner",
            self.engine.name,
            "--container",
            f"image={self.image}",
            "--device",
            "cpu",
        )
        own = {**self.project.locks, "TMPDIR": str(self.scratch)}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ci_perf", "run", *runner, "--processes", "1", *more],
            cwd=self.project.root,
            env={**os.environ, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def slow(self, *more, **environment):
        """Start a run; return it and its label, once the slow workload is in its container."""
        process = self.start(*more, **environment)
        owner = stale.owner(process.pid)
        read_until(process, "] good: ")
        wait_until(lambda: self.of(owner, "--filter", "status=running"))
        return process, owner

    def of(self, owner, *filters):
        """Return the containers of one ci-perf."""
        label = ("--filter", f"label={OWNER_LABEL}={owner}")
        return self.engine.must("ps", "--all", "--quiet", "--no-trunc", *label, *filters).split()

    def everybody(self):
        """Return all containers of the engine."""
        return set(self.engine.must("ps", "--all", "--quiet", "--no-trunc").split())

    def is_clean(self, owner):
        """Whether neither a container nor a temporary file is left."""
        return not self.of(owner) and not list(self.scratch.iterdir())

    def run(self):
        """Read what was measured."""
        return files.read(self.project.root / "run.json", Run)


def read_until(process, words):
    """Read what a run says until it says this."""
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it ended before it said {words!r}")


def by_name(run):
    """Return the names of what was measured, and of what failed."""
    return [one.workload for one in run.measured], [one.workload for one in run.failed]

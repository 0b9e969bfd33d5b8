"""A real repository whose plan is measured by real units, on whatever engine."""

from dataclasses import dataclass
from pathlib import Path

from ci_perf.features.fleet.work_plan import WorkPlan
from ci_perf.system import files
from tests import repositories
from tests.projects import FAST, GOOD, NAP, NAP_SETTINGS, QUICK, SLOW, Project

# For each `ci-perf run`: what only lengthens a test.
QUICKLY = ("--wait", "1s", "--explain", "0s")
HANGS_WHILE = """
import os, time
from ci_perf.workload import Workload
def step():
    while os.path.exists({path!r}):
        time.sleep(0.1)
    sum(range(1000))
"""


@dataclass
class Planned:
    """A project, and the folder beside it with its plan and the units of a fleet."""

    project: Project
    folder: Path

    @property
    def plan(self):
        return files.read(self.folder / "plan.json", WorkPlan)

    @property
    def waits(self):
        """As long as this file is there, the workload `b` hangs."""
        return self.folder / "waits"

    def start(self, engine, *words, **environment):
        return self.project.start(*self._command(engine, words), **environment)

    def run(self, engine, *words, **environment):
        return self.project.run(*self._command(engine, words), **environment)

    def _command(self, engine, words):
        options = (*words, "--", "--processes", "1", *QUICKLY)
        return ("fleet", "run", "../plan.json", "--engine", engine, "-o", "../fleet", *options)

    def merge(self, *words):
        return self.project.run(
            *("fleet", "merge", "../plan.json", "../fleet", "-o", "../run.json", *words)
        )


def planned(folder, *, hangs=False):
    """Plan two units: the second one hangs as long as it is to."""
    git = repositories.init(folder / "project")
    project, waits = Project(git.root), folder / "waits"
    project.workload("a", GOOD).workload("b", HANGS_WHILE.format(path=str(waits)))
    project.suite("a", "b", settings=QUICK.replace("timeout_s = 20", "timeout_s = 600"))
    git.commit()
    waits.touch() if hangs else None
    return _planned(project, folder)


def regressed(folder):
    """Plan two units against a base that is faster in both."""
    git = repositories.init(folder / "project")
    project = Project(git.root)
    project.workload("a", NAP).workload("b", NAP)
    project.suite("a", "b", settings=NAP_SETTINGS, extra='python_path = ["."]', device="cpu")
    git.commit(product_py=FAST)
    git.ask("switch", "--quiet", "--create", "change")
    git.commit(product_py=SLOW)
    return _planned(project, folder, "--against", "main")


def _planned(project, folder, *words):
    done = project.run("fleet", "plan", "--units", "2", *words, "-o", "../plan.json")
    assert done.code == 0, done.err
    return Planned(project, folder)

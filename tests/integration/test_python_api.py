"""What docs/python.md says runs as it stands, and leaves nothing behind."""

import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest

import ci_perf
from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.model.comparison import Verdict
from ci_perf.session import Listener
from ci_perf.system import processes
from tests import repositories
from tests.processes import run_python
from tests.projects import SLOW_STEP, Project

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a suite of one workload that needs no torch."""
    made = Project(tmp_path / "a project")
    made.root.mkdir()
    made.workload("sums").suite("sums")
    monkeypatch.chdir(made.root)
    monkeypatch.setenv("CI_PERF_LOCK_DIR", str(tmp_path / "locks"))
    return made


def execute(cells):
    """Run pieces of code in one namespace, in a Python of their own; return what they print."""
    done = run_python("-c", "\n".join(cells))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("project")
def test_the_examples_of_the_guide_run():
    text = (DOCS / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    said = execute(blocks)

    assert "sums created" in said
    assert "sums: process 1 of 2" in said
    assert "no suite 'smok'; did you mean 'smoke'?" in said


def test_importing_the_package_imports_nothing_heavy_and_its_functions_stay_functions():
    code = "import sys, ci_perf; print(*sorted(name for name in sys.modules if '.' not in name))"
    also = """
import ci_perf.measuring, ci_perf.judging
assert all(callable(getattr(ci_perf, name)) for name in ci_perf.__all__ if name[0] != "_")
"""

    loaded = set(execute([code, also]).split())

    assert loaded.isdisjoint({"click", "msgspec", "rich", "torch", "pandas", "numpy"})


class Notes(Listener):
    """A listener that notes the frame of a session, and may do something at its first process."""

    def __init__(self, at_start=lambda: None):
        self.heard = []
        self._at_start = at_start

    def began(self):
        self.heard.append("began")

    def started(self, workload, process, of):
        del process, of
        self.heard.append(workload)
        self._at_start()

    def ended(self):
        self.heard.append("ended")


def test_nothing_is_printed_and_paths_count_from_the_root(project, monkeypatch, capfd):
    monkeypatch.chdir(project.root.parent)
    said, notes = [], Notes()

    run = ci_perf.measure(
        root=project.root, output="run.json", wait_s=0, notify=said.append, listener=notes
    )

    assert [measured.workload for measured in run.measured] == ["sums"]
    assert said[-1].splitlines()[0].startswith("1 of 1 workloads measured")
    assert notes.heard == ["began", "sums", "sums", "ended"]
    assert (project.root / "run.json").is_file()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("project")
def test_a_check_without_baselines_is_a_value_and_no_exception():
    checked = ci_perf.check(wait_s=0)

    assert checked.comparison.verdict is Verdict.NEW
    assert checked.comparison.exit_code == 3
    assert ci_perf.compare(checked.run).exit_code == 3


def test_the_base_is_launched_beside_the_head_and_its_checkout_is_gone(project):
    repository = repositories.Repository(project.root)
    repository.ask("init", "--quiet")
    repository.commit()
    repository.commit()

    checked = ci_perf.check(wait_s=0, against="HEAD~1", budget_s=1, all_workloads=True)

    assert checked.run.interleaved is not None
    assert len(repository.worktrees()) == 1


def children():
    """Return the ids of our child processes; other tests may have started some, too."""
    return {
        process.pid for process in processes.below(os.getpid()) if process.parent == os.getpid()
    }


def test_an_interrupt_is_raised_when_the_children_are_gone_and_the_run_is_written(project):
    project.workload("sums", SLOW_STEP + "from ci_perf.workload import Workload\n")

    before = children()

    def interrupt():
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        ci_perf.measure(output="run.json", wait_s=0, listener=Notes(interrupt))

    run = json.loads((project.root / "run.json").read_text())
    assert "interrupted" in {reason["code"] for reason in run["validity"]["reasons"]}
    assert children() <= before


@pytest.mark.usefixtures("project")
def test_a_listener_hears_the_end_also_when_measuring_breaks():
    notes = Notes(at_start=lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        ci_perf.measure(wait_s=0, listener=notes)
    assert notes.heard[-1] == "ended"


def test_failures_are_errors_of_ours_with_the_next_step(project):
    with pytest.raises(UsageError, match="no suite 'smok'; did you mean 'smoke'"):
        ci_perf.measure("smok")
    with pytest.raises(UsageError, match="expected auto, cpu, cuda or cuda:N, found 'gpu'"):
        ci_perf.measure(device="gpu")
    with pytest.raises(CannotWriteError, match=r"nowhere/run\.json"):
        ci_perf.measure(output="nowhere/run.json")
    with pytest.raises(ci_perf.CiPerfError, match="--append and --replace exclude each other"):
        ci_perf.accept(project.recorded("run.json"), append=True, replace=True)

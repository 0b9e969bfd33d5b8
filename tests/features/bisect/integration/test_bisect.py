"""`ci-perf bisect` in a real repository, of which one commit made a workload slower."""

import json
import signal

import pytest

from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

pytestmark = pytest.mark.usefixtures("lone_git")

# In two commits the body of the module is another one, and takes no longer.
ELSEWHERE, SLOWER, LAST = {4, 5}, 7, 12


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Thirteen commits, c0 to c12, each of which changes a comment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repositories.init(tmp_path / "project")
    project = Project(made.root).workload("nap", NAP)
    project.suite("nap", settings=NAP_SETTINGS, extra='python_path = ["."]')
    for number in range(LAST + 1):
        product = SLOW if number >= SLOWER else FAST
        product += "ELSEWHERE = 1\n" if number in ELSEWHERE else ""
        made.commit(product_py=f"{product}# {number}\n")
        made.ask("tag", f"c{number}")
    return project


def test_the_commit_that_made_it_slower_is_found_by_few_sessions(project):
    repository = repositories.Repository(project.root)
    before = repository.ask("status", "--porcelain")

    done = project.run(
        *("bisect", "c0", "main", "nap", "--wait", "0s", "--format", "json", "-o", "answer.json")
    )

    assert done.code == 0, done.err
    answer = json.loads((project.root / "answer.json").read_text())
    culprit = answer["commits"][answer["high"]]
    assert culprit["commit"]["id"] == repository.ask("rev-parse", f"c{SLOWER}")
    assert answer["parent"]["change"]["verdict"] == "regressed"
    # The last commit, and one that is another program; all others run the program of one of these
    # or of the known-good commit, as the culprit's parent does.
    assert answer["sessions"] == 2
    assert not answer["parent"]["launched"]
    assert [at for at, each in enumerate(answer["commits"]) if each["change"]] == [5, LAST]
    (project.root / "answer.json").unlink()
    assert repository.ask("status", "--porcelain") == before
    assert repository.worktrees() == [str(project.root)]


def test_an_interrupt_leaves_no_worktree(project):
    process = project.start("bisect", "c0", "main", "nap", "--wait", "0s")
    for heard in process.stderr:
        if "measuring 1 workload" in heard:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)

    assert process.returncode == 130
    assert repositories.Repository(project.root).worktrees() == [str(project.root)]

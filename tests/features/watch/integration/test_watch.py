"""`ci-perf watch` in a real repository: a commit is found, mended, and the machine is suspected."""

import msgspec
import pytest

from ci_perf.model.watch import Since, Watched
from ci_perf.system import files
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project
from tests.watches import a_creep

pytestmark = pytest.mark.usefixtures("lone_git")

SLOWER, LAST = 2, 3
ANSWER = "../watch.json"


# What the machine adds to each step lies outside of the repository.
ON_MACHINE = NAP.replace("product.SECONDS", "product.SECONDS + float(open(MACHINE).read())")


@pytest.fixture
def machine(tmp_path):
    """Return the file that says how many seconds the machine adds to each step."""
    file = tmp_path / "machine"
    file.write_text("0")
    return file


@pytest.fixture
def project(tmp_path, machine, monkeypatch):
    """Four commits after the baseline, of which one makes two workloads slower."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repositories.init(tmp_path / "project")
    body = f"{ON_MACHINE}MACHINE = {str(machine)!r}\n"
    project = Project(made.root).workload("nap", body).workload("doze", body)
    project.suite("nap", "doze", settings=NAP_SETTINGS, extra='python_path = ["."]')
    (made.root / ".gitignore").write_text("__pycache__/\n")
    made.commit(product_py=FAST)
    project.accept_first("--wait", "0s")
    made.commit()
    for number in range(LAST + 1):
        product = SLOW if number >= SLOWER else FAST
        made.commit(product_py=f"{product}ELSEWHERE = {number}\n")
        made.ask("tag", f"c{number}")
    return project


def watch(project, *more):
    done = project.run("watch", "--wait", "0s", "--explain", "0s", "-o", ANSWER, *more)
    return done, files.read(project.root / ANSWER, Watched)


def test_a_commit_is_found_once_for_all_workloads_and_closed_by_its_revert(project):
    repository = repositories.Repository(project.root)
    before = repository.ask("status", "--porcelain")

    done, found = watch(project)

    assert done.code == 1, done.err
    (culprit,) = found.culprits
    assert culprit.commit == repository.ask("rev-parse", f"c{SLOWER}")
    assert (culprit.state, found.complete) == ("open", True), done.err
    assert {row.workload for row in culprit.rows} == {"nap", "doze"}
    assert all(row.change > 2 for row in culprit.rows)
    assert culprit.author.name == "a"
    assert culprit.commit[:12] in done.out

    (project.root / "product.py").write_text(FAST)
    repository.ask("commit", "-am", f"Revert\n\nThis reverts commit {culprit.commit}.")
    done, mended = watch(project)

    assert done.code == 0, done.err
    assert [each.state for each in mended.culprits] == ["repaired"]
    assert "reverted by" in mended.culprits[0].reason
    assert repository.ask("status", "--porcelain") == before
    assert repository.worktrees() == [str(project.root)]


def test_a_slower_machine_has_no_culprit(project, machine):
    repositories.Repository(project.root).ask("reset", "--hard", f"c{SLOWER - 1}")
    machine.write_text("0.009")

    done, found = watch(project)

    assert done.code == 0, done.err
    assert (found.culprits, found.creeps) == ((), ())
    assert {(each.workload, each.answer) for each in found.suspicions} == {
        ("nap", "machine"),
        ("doze", "machine"),
    }
    assert "the machine changed" in done.out


def test_a_night_without_time_goes_on_and_an_accepted_loss_is_closed(project):
    repository = repositories.Repository(project.root)

    done, spent = watch(project, "--budget", "0.1s")

    assert done.code == 3, done.err
    assert (spent.culprits, spent.complete) == ((), False)

    done, named = watch(project)

    assert [each.commit for each in named.culprits] == [
        repository.ask("rev-parse", f"c{SLOWER}")
    ], done.err

    project.run("run", "--wait", "0s", "-o", "../slow.json")
    until = ("--until", "2999-12-31")
    done = project.run("accept", "../slow.json", "--reason", "A better loss", *until)
    assert done.code == 0, done.err
    repository.commit()
    began = repository.ask("rev-parse", "c0")
    creep = a_creep(workload="nap", since=Since(commit=began, day="2026-10-01"))
    files.write(project.root / ANSWER, msgspec.structs.replace(named, creeps=(creep,)))
    done, accepted = watch(project)

    assert done.code == 0, done.err
    assert [
        (each.state, each.reason, each.until) for each in (*accepted.culprits, *accepted.creeps)
    ] == 2 * [("accepted", "A better loss", "2999-12-31")]

"""`ci-perf backtest` in a real repository, of which one merge made a workload slower."""

import json
import signal

import pytest

from ci_perf.features.backtest.backtested import Backtest
from ci_perf.system import files
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

pytestmark = pytest.mark.usefixtures("lone_git")

LAST, FILE = 6, "backtest.json"
CALM = "ELSEWHERE = 1\n"
PRODUCTS = {
    0: FAST,
    1: f"{FAST}# a comment\n",
    2: SLOW,
    3: SLOW + CALM,
    5: "import nothing_like_it\n" + SLOW + CALM,
    6: SLOW + CALM,
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Six commits after the first; the fourth changes the README. The suite is in no commit."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repositories.init(tmp_path / "project")
    for number in range(LAST + 1):
        text = PRODUCTS.get(number)
        made.commit(**({"product_py": text} if text else {"README_md": "more"}))
    project = Project(made.root).workload("nap", NAP)
    return project.suite("nap", settings=NAP_SETTINGS, extra='python_path = ["."]')


def test_what_moved_is_found_and_an_interrupt_loses_nothing(project):
    repository = repositories.Repository(project.root)
    before = repository.ask("for-each-ref"), repository.ask("status", "--porcelain")
    process = project.start("backtest", "--last", LAST, "--wait", "0s")
    for heard in process.stderr:
        if heard.startswith("merge 3"):
            process.send_signal(signal.SIGINT)
            break
    out, _ = process.communicate(timeout=120)

    assert process.returncode == 130
    assert "the same command goes on" in out
    known = files.read(project.root / FILE, Backtest).merges
    assert [each.outcome.value for each in known[:2]] == ["failed", "failed"]

    done = project.run("backtest", "--last", LAST, "--wait", "0s", "--format", "json")

    assert done.code == 0, done.err
    assert "merge 2 of" not in done.err
    merges = json.loads(done.out)["merges"]
    assert [each["outcome"] for each in merges] == [
        *("failed", "failed", "same_program", "unchanged", "moved", "same_program")
    ]
    assert "nothing_like_it" in merges[1]["note"]
    assert {each["metric"] for each in merges[4]["changes"]} == {"step_time_s"}
    assert merges[4]["changes"][0]["ratio"] > 2
    (project.root / FILE).unlink()
    assert (repository.ask("for-each-ref"), repository.ask("status", "--porcelain")) == before
    assert repository.worktrees() == [str(project.root)]


def test_a_command_needs_no_suite(project):
    script = "import product, time; time.sleep(product.SECONDS * 10)"

    done = project.run(
        *("backtest", "--ref", "HEAD~2", "--last", 2, "--wait", "0s", "--budget", "5s"),
        *("--", "python", "-c", script),
    )

    assert "2 merges: 1 same program" in done.out, done.err

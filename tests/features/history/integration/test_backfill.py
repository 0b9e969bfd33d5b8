"""`ci-perf history --measure` with launches: a history from nothing, which `history` then shows."""

import json
import signal

import pytest

from ci_perf.features.history import backfill
from ci_perf.session import Listener
from tests import repositories
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project

COMMENT = "# {}\n"
COMMITS = (
    *(FAST + COMMENT.format(number) for number in range(3)),
    "raise RuntimeError\n",
    SLOW,
)


pytestmark = pytest.mark.usefixtures("lone_git")


def test_a_history_from_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repositories.init(tmp_path / "project")
    project = Project(made.root).workload("nap", NAP)
    project.suite("nap", settings=NAP_SETTINGS, extra='python_path = ["."]')
    for number, product in enumerate(COMMITS):
        made.commit(product_py=product)
        made.ask("tag", f"c{number}")

    asked = ("--measure", "c0..main", "--wait", "0s", "--force", "--format", "json")
    done = project.run("history", *asked, "-o", "done.json")

    assert done.code == 3, done.err
    document = json.loads((project.root / "done.json").read_text())
    outcomes = [each["outcome"] for each in document["commits"]]
    assert outcomes == ["measured", "same_program", "failed", "measured"]
    assert made.ask("status", "--porcelain", "baselines") == "?? baselines/"
    assert made.worktrees() == [str(project.root)]

    made.ask("add", "baselines")
    made.ask("commit", "--quiet", "--message=Backfill")
    history = json.loads(project.run("history", "--format", "json").out)
    measured = [each["source"]["commit"] for each in history["workloads"][0]["sessions"]]
    assert measured == [made.ask("rev-parse", "c1"), made.ask("rev-parse", "c4")]


class _EndedBySignal(Listener):
    """A signal comes after the last launch of each session."""

    def ended(self):
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_after_the_last_launch_of_a_session_ends_it_once_that_is_kept(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repositories.init(tmp_path / "project")
    Project(made.root).workload("nap", NAP).suite(
        "nap", settings=NAP_SETTINGS, extra='python_path = ["."]'
    )
    for product in (*COMMITS[:2], SLOW):
        made.commit(product_py=product)

    done = backfill.backfill(
        "main~2..main", root=made.root, force=True, wait_s=0.0, listener=_EndedBySignal
    )

    assert [each.outcome for each in done.commits] == ["measured"]
    assert done.is_interrupted

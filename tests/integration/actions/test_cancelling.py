"""A measurement that is cancelled: what a runner sends reaches every process, and nothing stays."""

import fcntl
import signal
from pathlib import Path

import pytest

from ci_perf.model.run import Run
from ci_perf.system import files
from tests.integration.actions.stage import ROOT
from tests.processes import is_alive
from tests.projects import DAEMON, SLOW

SUITE = """
[[suites.smoke.workloads]]
workload = "stubborn"
"""


@pytest.fixture
def cancelled(stage, tmp_path):
    """Measure two workloads, and cancel the job once `note` is there; return how that ended."""

    def run(note, **inputs):
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        job = stage.job(
            stage.pull_request(),
            slowness=10,
            TMPDIR=str(scratch),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )
        return job, job.run_action(ROOT, cancel_when=note, **inputs)

    return run


def add_a_stubborn_one(stage):
    folder = stage.git.root / "workloads"
    nap = (folder / "nap.py").read_text()
    build = nap[nap.index("def build") :]
    head = '"""Never ends."""\nfrom ci_perf.workload import Workload\n'
    (folder / "stubborn.py").write_text(head + DAEMON + build)
    with (folder / "suite.toml").open("a") as suite:
        suite.write(SUITE)
    stage.git.commit()


def are_free(locks):
    """Whether the next job need not wait: every lock that there is can be taken."""
    paths = list(locks.glob("*.lock"))
    for path in paths:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return bool(paths)


def test_one_signal_ends_every_process_and_what_was_measured_is_kept(stage, cancelled, tmp_path):
    add_a_stubborn_one(stage)
    note = stage.git.root / "daemon"

    job, done = cancelled(note.exists, against="none")

    measuring, results = done.step("measure"), Path(done.outputs["results"])
    # The first signal is enough: a second one comes after 7.5 s, the end of everything 2.5 s later.
    assert (measuring.code, measuring.signals) == (130, (signal.SIGINT,))
    assert job.status == "cancelled"
    assert not [pid for pid in note.read_text().split() if is_alive(pid)]
    assert list((tmp_path / "scratch").iterdir()) == []
    assert [one.workload for one in files.read(results / "run.json", Run).measured] == ["nap"]
    assert not (results / "comparison.json").exists()
    assert "came to no verdict" in job.summaries[0]
    assert are_free(Path(job.machine["CI_PERF_LOCK_DIR"]))


def test_a_base_that_is_checked_out_meanwhile_is_gone(stage, cancelled, tmp_path):
    stage.git.commit(product_py=SLOW)
    worktrees = stage.git.root / ".git/worktrees"

    _, done = cancelled(lambda: worktrees.exists() and any(worktrees.iterdir()))

    assert (done.step("measure").code, done.step("measure").signals) == (130, (signal.SIGINT,))
    assert stage.git.worktrees() == [str(stage.git.root)]
    assert list((tmp_path / "scratch").iterdir()) == []

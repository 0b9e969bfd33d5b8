"""`ci-perf prove` on real commits and launches: an honest gain, a cheat, and what is refused."""

import json

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import QUICK, Project

BURN = """
from ci_perf.workload import Workload
import product
results = [0]
def step():
    results[0] = product.add_up()
def build(context):
    return Workload(step=step, output=lambda: float(results[0] + context.seed))
"""
PRODUCT = """
def add_up():
    for _ in range({times}):
        total = sum(range(30_000))
    return total
"""
# Says that a block took half of its time.
CLOCK = """
import dataclasses
from ci_perf.measuring.device import Device
real = Device.time_block
def shrink(self, step, count):
    block = real(self, step, count)
    return dataclasses.replace(block, step_s=block.step_s / 2, cpu_s=block.cpu_s / 2)
Device.time_block = shrink
"""
ASKED = ("prove", "--faster", "burn=20%", "--wait", "0s", "--format", "json")
REASON = ("--because", "half of the sums were thrown away")
OPEN_MEMORY = "[limits]\nhost_rss_peak_bytes = { gate = false }\nstep_time_s = { limit = 0.2 }\n"


@pytest.fixture
def git(tmp_path):
    """A repository whose main adds up four times, on a branch where nothing has changed yet."""
    git = repositories.init(tmp_path / "project")
    project = Project(git.root).workload("burn", BURN, build="")
    project.suite("burn", settings=QUICK + OPEN_MEMORY, device="cpu")
    git.commit(**{"product.py": PRODUCT.format(times=4)})
    git.ask("switch", "--quiet", "--create", "branch")
    return git


def asked(git, product, *more):
    """Ask for a proof of a branch with this product; return how it ended, and the receipt."""
    git.commit(**{"product.py": product})
    done = Project(git.root).run(*ASKED, *more)
    return done, json.loads(done.out) if done.out else {}


def test_half_of_the_work_is_proven_with_its_reason(git):
    done, receipt = asked(git, PRODUCT.format(times=2), *REASON)

    assert done.code == ExitCode.OK, done.err + done.out
    assert receipt["claims"][0]["low"] > 0.2
    names = [check["name"] for check in receipt["checks"]]
    assert names[:3] == ["gate", "workload", "inputs"]
    assert names[-2:] == ["seed", "clock"]
    assert receipt["because"] == REASON[1]
    assert receipt["claims"][0]["certainty"] > 0.98
    assert "\n3 pairs done\n" in done.err
    assert len(done.out) <= 2048
    assert git.worktrees() == [str(git.root)]


def test_a_base_that_fails_is_named(git):
    git.commit(**{"product.py": "raise RuntimeError('broken')"})
    git.ask("branch", "--force", "main")

    done, receipt = asked(git, PRODUCT.format(times=2), *REASON)

    assert done.code == ExitCode.REGRESSED, done.err
    assert receipt["checks"][-1]["detail"].startswith("burn fails on the base: ")
    assert receipt["fingerprint"] == ""


def test_less_work_that_nobody_explains_is_no_proof(git):
    done, receipt = asked(git, PRODUCT.format(times=2))

    assert done.code == ExitCode.REGRESSED, done.err
    last = receipt["checks"][-1]
    assert (last["name"], last["holds"]) == ("work", False)
    assert "--because" in last["detail"]


def test_blocks_that_say_half_of_their_time_are_caught_by_the_clock_outside(git):
    done, receipt = asked(git, PRODUCT.format(times=4) + CLOCK, *REASON)

    assert done.code == ExitCode.REGRESSED, done.err + done.out
    last = receipt["checks"][-1]
    assert (last["name"], last["detail"]) == ("clock", "burn replaces Device.time_block")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--faster", "none=5%"], "expected one of burn, found none"),
        (["--faster", "burn=200%"], "--faster"),
        ([], "expected a claim, found none"),
        (["--less-memory", "burn=5 ms"], "train_step=64MiB"),
        (["--faster", "burn=5%", "--because", "x" * 101], "at most 100 characters"),
        (["--faster", "burn=5%", "--against", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_proven_is_refused_before_anything_is_launched(git, arguments, said):
    done = Project(git.root).run("prove", "--wait", "0s", *arguments)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_workload_without_a_result_is_refused_before_any_pair(git):
    Project(git.root).workload("burn", BURN.replace(", output=", ", teardown="), build="")
    git.commit()
    done, _ = asked(git, PRODUCT.format(times=2))

    assert (done.code, done.out) == (2, "")
    assert "give its Workload output= on the base first, then rebase" in done.err
    assert "alternately" not in done.err


def test_changed_files_are_refused_because_the_receipt_names_a_commit(git):
    (git.root / "product.py").write_text(PRODUCT.format(times=1))

    done = Project(git.root).run(*ASKED)

    assert done.code == 2
    assert "expected a commit, found changed files; next: git commit" in done.err

"""A disk that is full at any write of `run` and `check`: told, and nothing is half written."""

import json
import subprocess

import pytest

from tests import repositories
from tests.projects import Project

SETTINGS = """
[protocol]
processes = 1
warmup_min_steps = 1
warmup_min_s = 0.0
warmup_window = 1
timed_min_blocks = 3
timed_min_s = 0.0
launch_spread = 1.0
monitor_hz = 0.0
"""
WORKLOAD = '''"""Sleep."""
import time
from ci_perf.workload import Workload
def step():
    time.sleep(0.001)
'''
RUN = ("run", "--output", "run.json")
CHECK = ("check", "--against", "HEAD~", "--comparison", "comparison.json", "--report", "report.md")


@pytest.fixture
def disk(tmp_path):
    """Mount file systems of a given size, as root may."""
    mounted = []

    def mount(kib):
        folder = tmp_path / f"{kib} KiB"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", folder],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip("only root can mount a small file system")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def project(tmp_path):
    """A repository on a disk that has room."""
    repository = repositories.init(tmp_path / "project")
    project = Project(repository.root).workload("sleep", WORKLOAD)
    project.suite("sleep", settings=SETTINGS, device="cpu")
    repository.commit()
    repository.commit(README_md="a change\n")
    return project


def on(disk, project, command, *, temporary=None):
    """Run a command that writes everything to this disk, temporary files elsewhere if told."""
    temporary = temporary or disk / "temporary"
    temporary.mkdir()
    return project.run(
        *(f"{disk}/{word}" if "." in word else word for word in command),
        CI_PERF_LOCK_DIR=str(disk / "locks"),
        TMPDIR=str(temporary),
        CI_PERF_CHECK_OUTPUT=str(disk / "run.json"),
    )


@pytest.mark.parametrize(("command", "sizes"), [(RUN, (8, 12, 16)), (CHECK, (12, 24))])
def test_a_full_disk_is_told_and_leaves_no_half_file(disk, project, command, sizes):
    codes = []
    for kib in sizes:
        small = disk(kib)
        done = on(small, project, command)

        codes.append(done.code)
        said = [line for line in done.err.splitlines() if not line.startswith("  | ")]
        assert done.code in {0, 3}, done.err
        assert not [line for line in said if "Traceback" in line or "bug" in line], done.err
        for written in small.glob("*.json"):
            json.loads(written.read_text())
        assert {path.name for path in small.iterdir()} <= {
            *("locks", "temporary", "run.json", "comparison.json", "report.md")
        }
        assert list((small / "temporary").iterdir()) == []
    assert 3 in codes


def test_what_was_measured_is_reported_although_the_run_cannot_be_kept(disk, project, tmp_path):
    small = disk(8)

    check = (*CHECK[:3], "--budget", "1s")
    done = on(small, project, check, temporary=tmp_path / "temporary")

    assert done.code == 3
    assert "run.json: cannot be written: No space left on device" in done.err
    assert "step time" in done.out
    assert not (small / "run.json").exists()

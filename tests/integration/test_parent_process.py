"""What measured code can learn from the process that launches it."""

import ctypes
import os
import subprocess
import sys

import pytest

from ci_perf.model.run import Run
from ci_perf.system import files
from tests.projects import GOOD, Project

SECRETS = {"GITHUB_TOKEN": "a-secret-token", "GITHUB_ENV": "/a-secret-path"}
READ_PARENT = """
import os
from pathlib import Path
def build(context):
    parent = Path("/proc", str(os.getppid()))
    for name in ("environ", "maps"):
        try:
            found = (parent / name).read_bytes()
        except PermissionError:
            continue
        raise ValueError(f"{name} of the parent: secrets {b'secret' in found}, {len(found)} bytes")
    return Workload(step=step)
"""
_PR_CAPBSET_DROP = 24


def lose_privileges():
    """Have the next program run without capabilities, as that of any user but root."""
    if os.geteuid() == 0:
        for capability in range(64):
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")
def test_measured_code_cannot_read_the_environment_or_memory_of_its_parent(tmp_path):
    project = Project(tmp_path / "project")
    project.root.mkdir()
    project.workload("curious", GOOD, build=READ_PARENT).suite("curious")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ci_perf", "run", "--processes", "1"],
        cwd=project.root,
        env={**os.environ, **project.locks, **SECRETS},
        preexec_fn=lose_privileges,
        capture_output=True,
        text=True,
        check=False,
    )
    run = files.read(project.root / "run.json", Run)

    assert [one.reason for one in run.failed] == [], done.stderr
    assert [one.workload for one in run.measured] == ["curious"]

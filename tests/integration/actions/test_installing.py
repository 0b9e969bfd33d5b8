"""The Action installs itself on a hosted runner: a real environment, a real index, real hashes."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.integration.actions.stage import PULL, REPORT

OFFLINE = re.compile(
    "Could not fetch|Failed to establish|Temporary failure|No matching distribution|ProxyError"
)


def path_without(name):
    """PATH without the folders in which a command is."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(one for one in folders if not (Path(one) / name).exists())


def test_a_report_needs_a_python_and_takes_nothing_from_the_workspace(stage, tmp_path):
    """What a job has downloaded lies there. It may be anything, also a file `pip.py`."""
    hosted = tmp_path / "hosted"
    hosted.mkdir()
    shutil.copy(stage.git.root / "comparison.json", hosted)
    for module in ("click", "ci_perf", "ensurepip", "json", "pip", "sitecustomize", "sys", "venv"):
        (hosted / f"{module}.py").write_text("open('taken', 'w')\n")
    python = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    given = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    one = stage.job(
        stage.pull_request(), workspace=hosted, token=stage.github.token, ci_perf=None,
        PATH=path_without("ci-perf"), **given,
    )  # fmt: skip

    done = one.run_action(REPORT, python=python)

    if done.step("install").code and OFFLINE.search(done.step("install").log):
        pytest.skip("the package index cannot be reached")
    assert done.step("report").code == 0, done.step("install").log + done.step("report").log
    assert not (hosted / "taken").exists()
    assert len(stage.github.comments(PULL)) == 1
    installed = {path.name for path in one.temp.glob("ci-perf/lib/python*/site-packages/*")}
    assert {"ci_perf", "github"} <= installed
    assert not {"torch", "numpy", "pandas"} & installed

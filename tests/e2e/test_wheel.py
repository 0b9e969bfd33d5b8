"""The wheel, installed in an empty place, brings its suite and its example along."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from this checkout, with the tools that are installed here."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Install the wheel into a new environment; torch and the like are lent by this one."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True
    )
    site = next(folder.glob("lib/python*/site-packages"))
    # Not a .pth of ours: that would make this checkout importable as well.
    lent = tmp_path_factory.mktemp("lent")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "ci_perf" not in entry.name:
            (lent / entry.name).symlink_to(entry)
    (site / "lent.pth").write_text(f"{lent}\n")
    return folder / "bin/ci-perf"


def test_the_wheel_holds_the_suite_the_example_and_the_templates(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    for name in (
        "ci_perf/_shipped/examples/demo.py",
        "ci_perf/_shipped/examples/tiny_vision/workloads/suite.toml",
        "ci_perf/_shipped/examples/workflows/perf.yml",
        "ci_perf/_shipped/examples/workflows/perf-baseline.yml",
        "ci_perf/gate/templates/suite.toml",
        "ci_perf/report/templates/sentences.jinja",
        "ci_perf/py.typed",
    ):
        assert name in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


def test_the_wheel_holds_every_workload_to_the_byte(wheel):
    """That each of them builds and steps is shown by test_suite_workloads.py."""
    archive = zipfile.ZipFile(wheel)
    ours = {file.name: file.read_bytes() for file in (ROOT / "workloads").iterdir() if file.suffix}

    assert {"suite.toml", "matmul.py", "_cifar10.py"} <= ours.keys()
    for name, content in ours.items():
        assert archive.read(f"ci_perf/_shipped/workloads/{name}") == content


def test_the_builtin_suite_is_checked_in_an_empty_folder(installed, tmp_path):
    """Measure, accept and measure again, as the first user of the wheel would.

    Two workloads of the suite: both import neighbours, one has data.
    """

    def ci_perf(*arguments):
        return subprocess.run(
            [installed, *arguments],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )

    builtin = ("--suite", "builtin:smoke", "--device", "cpu", "--processes", "1")

    first = ci_perf("check", "matmul.size=256", "mlp_mnist_train", *builtin)
    assert first.returncode == ExitCode.NO_ANSWER, first.stderr  # nothing to compare with yet
    run = files.read(tmp_path / "run.json", Run)
    assert run.failed == ()
    assert {found.workload for found in run.measured} == {"matmul.size=256", "mlp_mnist_train"}
    assert ci_perf("accept", "run.json").returncode == ExitCode.OK

    second = ci_perf("check", "matmul.size=256", *builtin, "--comparison", "comparison.json")
    rows = json.loads((tmp_path / "comparison.json").read_text())["rows"]
    assert {row["workload"] for row in rows} == {"matmul.size=256"}
    # One process says nothing of the spread, so no time can be called changed.
    times = [row for row in rows if row.get("metric") == "step_time_s"]
    assert times
    assert not {row["verdict"] for row in times} & {"regressed", "improved"}
    # No answer where the machine happens to be far slower than a minute ago.
    assert second.returncode in {ExitCode.OK, ExitCode.NO_ANSWER}, second.stderr

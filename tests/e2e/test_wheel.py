"""The wheel, installed in an empty place, brings its suite and its example along."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files
from ci_perf.version import __version__
from tests import index
from tests.processes import wait_until

ROOT = Path(__file__).parents[2]
ACTION = f"octo/ci_perf@{'1234567890' * 4}"
# What is imported only beside a trainer that is there.
TRAINERS = {"transformers", "ci_perf.features.loops.lightning"}
# Prints what a module imports at its start that is not installed.
EVERY_MODULE = """
import importlib, pathlib, pkgutil, sys, ci_perf
assert pathlib.Path(ci_perf.__file__).is_relative_to(sys.prefix), ci_perf.__file__
for module in pkgutil.walk_packages(ci_perf.__path__, "ci_perf."):
    if module.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            print(error.name or module.name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from this checkout, with the tools that are installed here."""
    return build(tmp_path_factory.mktemp("dist"), "--wheel", ROOT)


def build(out, kind, source):
    subprocess.run(
        [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", out, source],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"), None)


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    """Install the wheel alone: pip resolves what its metadata names."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    index.install(folder / "bin/python", wheel)
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(core):
    """Add the extras that the README names, as our messages say to."""
    index.install(core / "python", "ci-perf[measure,pytest]")
    return core


def type_in(folder, programs, *command):
    """Return what a command of this environment alone has done."""
    return subprocess.run(
        [programs / command[0], *command[1:]],
        cwd=folder,
        env=alone(programs),
        capture_output=True,
        text=True,
        check=False,
    )


def alone(programs):
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # The lock is apart, so that other tests may measure meanwhile.
    ours = {"CI_PERF_LOCK_DIR": f"{programs}/locks", "PATH": f"{programs}:{os.environ['PATH']}"}
    return kept | ours


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
    assert not [name for name in names if "examples/repository" in name]


def test_the_readme_on_a_package_index_leads_to_the_files_of_the_tag(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
    readme = archive.read(metadata).decode().split("\n\n", 1)[1]

    targets = set(re.findall(r"\]\(([^)\s]+)\)", readme))
    address = f"https://github.com/OWNER/ci_perf/{{}}/v{__version__}/{{}}"
    assert {address.format("raw", "docs/page.png"), address.format("blob", "LICENSE")} < targets
    assert not [target for target in targets if not target.startswith(("https://", "#"))]


def test_the_sdist_builds_the_same_wheel(wheel, tmp_path):
    build(tmp_path, "--sdist", ROOT)
    (packed,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path, filter="data")

    again = build(tmp_path, "--wheel", tmp_path / packed.name.removesuffix(".tar.gz"))

    assert read_all(again) == read_all(wheel)


def read_all(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_workload_to_the_byte(wheel):
    """That each of them builds and steps is shown by test_suite_workloads.py."""
    archive = zipfile.ZipFile(wheel)
    ours = {file.name: file.read_bytes() for file in (ROOT / "workloads").iterdir() if file.suffix}

    assert {"suite.toml", "matmul.py", "_cifar10.py"} <= ours.keys()
    for name, content in ours.items():
        assert archive.read(f"ci_perf/_shipped/workloads/{name}") == content


def test_the_core_alone_tries_a_command_and_writes_the_first_files(core, tmp_path):
    loaded = type_in(tmp_path, core, "python", "-c", EVERY_MODULE)
    assert loaded.returncode == 0, loaded.stderr
    assert set(loaded.stdout.split()) == {"greenlet", "pytest", *TRAINERS}
    (tmp_path / "train.py").write_text("sum(i * i for i in range(100_000))\n")

    trial = ("try", "--wait", "0s", "--budget", "8s", "--", "python", "train.py")
    tried = type_in(tmp_path, core, "ci-perf", *trial)
    # No answer where other programs leave the machine too little time.
    assert tried.returncode in {ExitCode.OK, ExitCode.NO_ANSWER}, tried.stderr
    assert "slowed down on purpose by ci-perf try" in tried.stdout
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    written = type_in(tmp_path, core, "ci-perf", "init", "--agents", "--action", ACTION)
    assert written.returncode == 0, written.stderr
    assert written.stdout.count("wrote") == 5
    assert type_in(tmp_path, core, "ci-perf", "list").stdout.startswith("train ")

    demo = type_in(tmp_path, core, "ci-perf", "demo")
    assert demo.returncode == ExitCode.NO_ANSWER
    assert "pip install 'ci-perf[measure]'" in demo.stderr


def test_the_demo_measures_where_the_wheel_is_installed(installed, tmp_path):
    """Until its baseline is accepted; test_demo.py watches the rest."""
    loaded = type_in(tmp_path, installed, "python", "-c", EVERY_MODULE)
    assert set(loaded.stdout.split()) == TRAINERS, loaded.stderr
    (said := tmp_path / "said").touch()
    with said.open("w") as stderr:
        demo = subprocess.Popen(
            [installed / "ci-perf", "demo"],
            cwd=tmp_path,
            env=alone(installed) | {"TMPDIR": str(tmp_path)},
            stderr=stderr,
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda: demo.poll() is not None or "$ ci-perf accept" in said.read_text())
        demo.send_signal(signal.SIGINT)

        assert demo.wait(timeout=300) == 130, said.read_text()
    assert "$ ci-perf accept" in said.read_text()


def test_the_builtin_suite_is_checked_in_an_empty_folder(installed, tmp_path):
    """Measure, accept and measure again, as the first user of the wheel would.

    Two workloads of the suite: both import neighbours, one has data.
    """

    def ci_perf(*arguments):
        return type_in(tmp_path, installed, "ci-perf", *arguments)

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

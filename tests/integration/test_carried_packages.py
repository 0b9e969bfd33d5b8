"""`ci-perf doctor --deep` from a checkout, in an environment that has torch and nothing else.

What `make wheels` downloads is copied from this environment: the list is the Makefile's own.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
# What runs the tests that need a GPU; it is not installed with ci_perf.
OF_TESTS = {"pytest", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist", "hypothesis"}


def carried():
    (line,) = re.findall(r"^CARRIED := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return line.split()


def linked(folder, packages):
    """Link packages, and all that they require, from this environment into a folder."""
    folder.mkdir(parents=True)
    waiting, seen = list(packages), set()
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        installed = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in installed.files or () if ".." not in file.parts}:
            link, target = folder / top, installed.locate_file(top)
            if top != "__pycache__" and not link.exists():
                link.symlink_to(target)
        needed = map(Requirement, installed.requires or ())
        waiting += [
            one.name for one in needed if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    return folder


def bare_environment(folder):
    """Make an environment without pip, and return its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def test_the_wheels_are_what_the_package_and_its_gpu_tests_need_beside_torch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {Requirement(text).name for text in project["dependencies"]}

    assert set(carried()) == required | {"nvidia-ml-py"} | OF_TESTS


def test_a_bare_python_with_torch_is_examined_from_a_checkout(tmp_path):
    python = bare_environment(tmp_path / "bare")
    of_torch = linked(tmp_path / "torch", ["torch"])
    checkout = tmp_path / "checkout"
    wheels = linked(checkout / "build" / "wheels", carried())

    done = subprocess.run(
        [python, "-m", "ci_perf", "doctor", "--deep", "--json"],
        cwd=checkout,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, wheels, of_torch))),
            "CI_PERF_LOCK_DIR": str(tmp_path / "locks"),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["can_measure"][0] == "cpu"
    assert "passed" in {check["outcome"] for check in found["deep"]}

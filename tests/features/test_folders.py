"""Each feature is a folder: without it the gate works, and only its own commands are gone."""

import os
import re
import shutil
from pathlib import Path

import pytest

import ci_perf
from ci_perf import hooks
from tests.projects import Project

PACKAGE = Path(ci_perf.__file__).parent
TESTS = Path(__file__).parents[1]


def list_commands(project, **environment):
    return set(re.findall(r"^  (\w+)  ", project.run("--help", **environment).out, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(hooks.find_features()))
def test_without_a_feature_a_check_runs_and_only_its_commands_are_gone(name, tmp_path):
    shutil.copytree(
        PACKAGE,
        tmp_path / "without/ci_perf",
        ignore=lambda folder, _: [name, "__pycache__"] if Path(folder).name == "features" else [],
    )
    environment = {"PYTHONPATH": f"{tmp_path / 'without'}{os.pathsep}{TESTS.parent}"}
    project = Project(tmp_path / "project")
    project.root.mkdir()
    project.workload("good").suite("good")

    checked = project.run("check", "--processes", "1", **environment)

    assert checked.code == 3, checked.err  # there is no baseline yet
    assert "expected a baseline" in checked.out or "no baseline" in checked.out, checked.out
    gone = list_commands(project) - list_commands(project, **environment)
    assert gone == set(hooks.find_features()[name].commands) & list_commands(project)


def test_tests_of_the_core_need_no_feature():
    of_core = [*(TESTS / "unit").rglob("*.py"), *(TESTS / "integration").rglob("*.py")]
    imports = r"^(?:from|import) (?:ci_perf|tests)\.features\."
    found = [path.name for path in of_core if re.search(imports, path.read_text(), re.MULTILINE)]

    assert found == []

"""The suite `self`: its commands run, with the code of the side that is measured."""

import shutil
from pathlib import Path

import pytest

import ci_perf_commands
from ci_perf.workload import Context

ROOT = Path(__file__).parents[2]


def built(task):
    context = Context(device="cpu", parameters={"task": task}, seed=0, data_dir="")
    return ci_perf_commands.build(context)


@pytest.fixture
def scratch(tmp_path, use_tempdir):
    """Where workloads make their folders."""
    use_tempdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("task", "written"), [("judge", "report.md"), ("history", "run.json"), ("pair", "run.json")]
)
def test_a_command_does_its_work_and_leaves_nothing(scratch, monkeypatch, task, written):
    monkeypatch.chdir(ROOT)
    workload = built(task)

    workload.step()
    (repository,) = scratch.glob("*/repository")
    assert (repository / written).stat().st_size > 1000
    workload.teardown()
    assert list(scratch.iterdir()) == []


@pytest.mark.usefixtures("scratch")
def test_the_command_runs_the_code_of_the_current_folder(tmp_path_factory, monkeypatch):
    broken = tmp_path_factory.mktemp("broken")
    shutil.copytree(ROOT / "ci_perf", broken / "ci_perf")
    (broken / "ci_perf/__main__.py").write_text("raise SystemExit('the code of this folder')")
    monkeypatch.chdir(broken)

    with pytest.raises(RuntimeError, match="found 1: the code of this folder"):
        built("help").step()

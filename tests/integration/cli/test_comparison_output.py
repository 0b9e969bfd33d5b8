"""`check --comparison-output`: the verdicts as JSON beside the report, for a job that publishes."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Comparison
from ci_perf.system import files
from tests.projects import Project


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return Project(root).workload("good").suite("good")


def test_the_verdicts_are_kept_beside_the_report(project):
    done = project.run("check", "--comparison-output", "c.json", "-o", "report.md")

    found = files.read(project.root / "c.json", Comparison)
    assert found.exit_code == done.code == ExitCode.NO_ANSWER  # there is no baseline yet
    assert (project.root / "report.md").read_text().startswith("###")


@pytest.mark.parametrize("other", ["--run-output", "-o"])
def test_a_file_that_is_written_already_is_refused_before_the_work(project, other):
    done = project.run("check", "--comparison-output", "./x.json", other, "x.json")

    assert done.code == ExitCode.USAGE
    assert "--comparison-output x.json: is written already" in done.err
    assert not (project.root / "x.json").exists()

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
    assert "--comparison-output x.json: would overwrite x.json" in done.err
    assert not (project.root / "x.json").exists()


def test_the_page_of_a_check_is_the_page_of_its_files(project):
    project.run("check", "--page", "page.html", "--comparison-output", "c.json", "-o", "report.md")

    later = project.run("export", "c.json", "--format", "html", "--run", "run.json")

    assert (project.root / "page.html").read_text() == later.out
    assert "launches, in their order" in later.out


@pytest.mark.parametrize("target", ["workloads/suite.toml", "baselines/x.html", "run.json"])
def test_a_page_overwrites_nothing_that_the_check_needs(project, target):
    suite = (project.root / "workloads/suite.toml").read_text()

    done = project.run("check", "--page", target)

    assert done.code == ExitCode.USAGE
    assert f"--page {target}: would overwrite" in done.err
    assert (project.root / "workloads/suite.toml").read_text() == suite


def test_a_page_without_its_files_is_refused(project):
    done = project.run("export", "none.json", "--format", "html")

    assert done.code == ExitCode.USAGE
    assert "none.json" in done.err

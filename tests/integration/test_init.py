"""`ci-perf init` gives a repository its first suite, workload and workflow, and breaks nothing."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ci_perf import suite
from ci_perf.gate import first_files
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.model.suite import SuiteFile

ROOT = Path(__file__).parents[2]
SUITE, EXAMPLE, WORKFLOW, BASELINE_WORKFLOW = first_files.TARGETS.values()


def ci_perf(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ci_perf", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=300,
    )


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def test_an_empty_repository_gets_every_file_and_the_next_steps(repository):
    done = ci_perf(repository, "init")

    assert done.returncode == 0, done.stderr
    assert all((repository / target).is_file() for target in first_files.TARGETS.values())
    assert done.stdout.splitlines() == [
        f"wrote  {path}" for path in (SUITE, EXAMPLE, WORKFLOW, BASELINE_WORKFLOW)
    ]
    assert "ci-perf run --suite smoke" in done.stderr
    assert "warning" not in done.stderr


def test_a_project_with_packages_in_src_imports_them_from_there(repository):
    (repository / "src/model").mkdir(parents=True)
    (repository / "src/model/__init__.py").touch()

    done = ci_perf(repository, "init", "--device", "cpu")

    assert done.returncode == 0, done.stderr
    assert tomllib.loads((repository / SUITE).read_text())["python_path"] == ["src"]
    assert ci_perf(repository, "list", "--suite", "smoke").returncode == 0


def test_what_commands_leave_behind_is_to_be_ignored_by_git(repository):
    said = ci_perf(repository, "init").stderr.split(".gitignore:")[1].split(" 3. ")[0].split()

    readme = (ROOT / "README.md").read_text().split("printf '")[1].split("'")[0]
    assert said == readme.replace("\\n", "\n").split()
    assert {"run.json", "report.md", "baseline.patch", "calibration-run.json"} <= set(said)


def test_the_workflows_take_the_action_from_where_it_is_said(repository):
    action = f"octo/ci_perf@{'1234567890' * 4}"

    done = ci_perf(repository, "init", "--action", action)

    assert done.returncode == 0, done.stderr
    for workflow in (WORKFLOW, BASELINE_WORKFLOW):
        written = (repository / workflow).read_text()
        jobs = YAML(typ="safe").load(written)["jobs"].values()
        used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
        assert {use for use in used if "ci_perf" in use} == {action}
        assert "OWNER" not in written


@pytest.mark.parametrize("action", ["octo/ci_perf", "octo/ci_perf@main", "octo@" + "1" * 40])
def test_an_action_that_is_not_pinned_is_refused_before_anything_is_written(repository, action):
    done = ci_perf(repository, "init", "--action", action)

    assert done.returncode == 2
    assert "expected OWNER/REPOSITORY@COMMIT with all 40 digits" in done.stderr
    assert not (repository / "workloads").exists()


def test_the_files_for_a_cpu_know_the_suite_for_cpus_alone(repository):
    assert ci_perf(repository, "init", "--device", "cpu").returncode == 0

    suite = tomllib.loads((repository / "workloads/suite.toml").read_text())
    assert list(suite["suites"]) == ["smoke"]
    for workflow in (WORKFLOW, BASELINE_WORKFLOW):
        job = YAML(typ="safe").load((repository / workflow).read_text())["jobs"]["measure"]
        (given,) = [step["with"] for step in job["steps"] if "ci_perf@" in step["uses"]]
        assert job["runs-on"] == ["self-hosted", "linux", "x64"]
        assert (given["suite"], given["device"]) == ("smoke", "cpu")
        assert "GPU" not in (repository / workflow).read_text()


def test_an_action_that_comes_too_late_for_the_workflows_is_told(repository):
    ci_perf(repository, "init")
    action = f"octo/ci_perf@{'1234567890' * 4}"

    said = ci_perf(repository, "init", "--action", action).stderr

    assert said.count(f"in it: put {action} there") == 2


def test_a_file_that_exists_is_named_and_left(repository):
    (repository / SUITE).parent.mkdir()
    (repository / SUITE).write_text("# mine\n")

    done = ci_perf(repository, "init")

    assert done.returncode == 0, done.stderr
    assert f"kept   {SUITE} (it was there)" in done.stdout
    assert (repository / SUITE).read_text() == "# mine\n"
    assert (repository / WORKFLOW).is_file()


def test_a_link_that_leads_nowhere_is_not_followed(repository, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    (repository / SUITE).parent.mkdir()
    (repository / SUITE).symlink_to(elsewhere)

    assert f"kept   {SUITE}" in ci_perf(repository, "init").stdout
    assert not elsewhere.exists()


def test_a_second_time_writes_nothing_and_says_so(repository):
    ci_perf(repository, "init")

    done = ci_perf(repository, "init")

    assert done.returncode == 0
    assert "wrote" not in done.stdout
    assert "everything is there" in done.stdout


def test_another_folder_can_be_named(tmp_path, repository):
    folder = tmp_path / "a project"
    folder.mkdir()

    done = ci_perf(repository, "init", "--directory", str(folder))

    assert (folder / SUITE).is_file()
    assert f"GitHub reads workflows only from {repository / '.github/workflows'}" in done.stderr


def test_outside_a_git_repository_there_is_a_warning(tmp_path):
    done = ci_perf(tmp_path, "init")

    assert done.returncode == 0
    assert "not in a git repository" in done.stderr


def test_a_folder_that_does_not_exist_is_wrong_use(tmp_path):
    assert ci_perf(tmp_path, "init", "--directory", "nowhere").returncode == 2


def test_a_file_where_a_folder_must_be_is_an_error_that_names_it(repository):
    (repository / "workloads").write_text("")

    done = ci_perf(repository, "init")

    assert done.returncode == 3
    assert "error: workloads: cannot be made" in done.stderr


def test_the_suite_is_valid_and_overrides_only_what_exists(repository):
    ci_perf(repository, "init")
    data = tomllib.loads((repository / SUITE).read_text())

    assert set(codec.convert(data, SuiteFile, name="suite.toml").suites) == {"smoke", "standard"}
    planned = suite.plan(repository / "workloads", "standard", root=repository)
    assert [w.id for w in planned.workloads] == ["example.batch=64", "example.batch=1024"]
    assert planned.workloads[0].description.startswith("One training step")


def test_the_example_can_be_measured_as_it_is(repository):
    ci_perf(repository, "init")

    done = ci_perf(repository, "run", "--device", "cpu", "--processes", "1", "-o", "run.json")

    assert done.returncode == 0, done.stderr
    run = codec.decode((repository / "run.json").read_text(), Run, name="run.json")
    assert [measured.item_unit for measured in run.measured] == ["image"]


def test_the_example_is_clean_code_where_it_lands(repository):
    ci_perf(repository, "init")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E,W,D1,I"]

    done = subprocess.run(
        [*ruff, "--output-format", "json", EXAMPLE],
        capture_output=True,
        check=False,
        cwd=repository,
    )

    assert json.loads(done.stdout) == []

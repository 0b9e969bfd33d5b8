"""`ci-perf init` gives a repository its first workload and workflows, and breaks nothing."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest
from ruamel.yaml import YAML

from ci_perf import suite
from ci_perf.gate.first_files import EXAMPLE, IGNORED, RESULTS, SKILL, SUITE, WORKFLOWS
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from tests.processes import run_python
from tests.projects import Project

ROOT = Path(__file__).parents[2]
ACTION = f"octo/ci_perf@{'1234567890' * 4}"
FILES = (EXAMPLE, SUITE, *WORKFLOWS, IGNORED)


def ci_perf(folder, *arguments):
    return Project(folder).run(*arguments)


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


def inputs(repository, path=WORKFLOWS[0]):
    (job,) = YAML(typ="safe").load((repository / path).read_text())["jobs"].values()
    return job["with"]


def test_a_repository_gets_few_lines_in_which_nothing_is_left_to_replace(repository):
    (repository / "requirements.txt").write_text("einops\n")
    done = ci_perf(repository, "init", "--action", ACTION)

    assert done.code == 0, done.err
    assert done.out.splitlines() == [f"wrote  {path}" for path in FILES]
    assert "warning" not in done.err
    text = "".join((repository / path).read_text() for path in FILES)
    assert text.count("\n") <= 60
    assert not re.search("EDIT|OWNER|0{40}", text)
    name, _, commit = ACTION.partition("@")
    for path, called in zip(WORKFLOWS, ("check", "baseline"), strict=True):
        uses = f"uses: {name}/.github/workflows/{called}.yml@{commit}\n"
        assert uses in (repository / path).read_text()
    assert inputs(repository)["install"] == "--requirement=requirements.txt"


def test_a_skill_tells_agents_commands_and_keys_that_there_are(repository):
    assert not ci_perf(repository, "init").out.count(str(SKILL))
    done = ci_perf(repository, "init", "--agents")

    assert f"wrote  {SKILL}" in done.out.splitlines()
    skill = (repository / SKILL).read_text()
    assert skill.startswith("---\nname: ci-perf\ndescription: ")
    assert skill.count("\n") <= 80
    (name,) = re.findall(r"^ci-perf (check .*) > comparison.json$", skill, re.MULTILINE)
    here = "example --device cpu --wait 0s"
    asked = name.replace("NAME --against main", f"{here} --processes 1").split()
    checked = ci_perf(repository, *asked)
    comparison = msgspec.json.decode(checked.out, type=Comparison)
    assert (checked.code, comparison.exit_code) == (3, 3), checked.err
    explained = ci_perf(repository, "explain", *here.split(), "--budget", "10s", "--format", "json")
    assert [each["workload"] for each in json.loads(explained.out)["workloads"]] == ["example"]
    schemas = "".join(
        (ROOT / f"docs/schema/{kind}.schema.json").read_text()
        for kind in ("comparison", "explanation")
    )
    keys = {"rows", "verdict", "ratio", "interval", "limit", "gate", "code", "note", "validity"}
    keys |= {"causes", "place", "line", "delta_s", "evidence", "explanation"}
    keys |= {"profile", "functions", "own_s", "operators", "calls", "call_s", "caller", "limits"}
    for key in keys:
        assert re.search(rf"\b{key}\b", skill)
        assert f'"{key}": {{' in schemas


def test_the_steps_are_those_of_the_readme_in_their_order(repository):
    said = ci_perf(repository, "init", "--action", ACTION).err
    readme = (ROOT / "README.md").read_text().split("## On each pull request")[1]

    for text in (said, readme):
        order = [
            text.index(word)
            for word in ("workloads/example.py", "perf-baseline", "Open a pull request")
        ]
        assert order == sorted(order), text


def test_without_an_action_or_a_repository_no_workflow_is_written_that_would_fail(tmp_path):
    done = ci_perf(tmp_path, "init")

    assert done.code == 0
    assert not (tmp_path / ".github").exists()
    assert 'ci-perf accept run.json --reason "First baseline"' in done.err
    assert "not in a git repository" in done.err


@pytest.mark.parametrize(
    ("project", "install"),
    [
        ('dependencies = ["einops>=0.7", "torch; python_version > \'3\'"]', True),
        ("", False),
        (None, False),
    ],
)
def test_what_the_project_needs_is_installed_on_the_runner(repository, project, install):
    if project is not None:
        (repository / "pyproject.toml").write_text(f"[project]\n{project}\n")
    ci_perf(repository, "init", "--action", ACTION, "--device", "cpu")

    given = [inputs(repository, path) for path in WORKFLOWS]
    needed = "einops>=0.7\ntorch; python_version > '3'\n"
    assert [one.get("install") for one in given] == [needed if install else None] * 2
    assert [one["device"] for one in given] == ["cpu"] * 2


@pytest.mark.parametrize("before", ["venv/\n/run.json", ""])
def test_results_are_ignored_and_what_was_ignored_before_still_is(repository, before):
    (repository / IGNORED).write_text(before)
    ci_perf(repository, "init")

    lines = (repository / IGNORED).read_text().splitlines()
    assert set(lines) == {*RESULTS, *before.splitlines()}
    assert len(lines) == len(set(lines))


def test_a_project_with_packages_in_src_imports_them_from_there(repository):
    (repository / "src/model").mkdir(parents=True)
    (repository / "src/model/__init__.py").touch()

    done = ci_perf(repository, "init", "--device", "cpu")

    assert done.code == 0, done.err
    assert tomllib.loads((repository / SUITE).read_text())["python_path"] == ["src"]
    assert ci_perf(repository, "list", "--suite", "smoke").code == 0


def test_workflows_take_ci_perf_by_a_tag_of_a_version(repository):
    done = ci_perf(repository, "init", "--action", "octo/ci_perf@v0.1.0")

    assert done.code == 0, done.err
    for path, called in zip(WORKFLOWS, ("check", "baseline"), strict=True):
        uses = f"uses: octo/ci_perf/.github/workflows/{called}.yml@v0.1.0\n"
        assert uses in (repository / path).read_text()


@pytest.mark.parametrize("action", ["octo/ci_perf@main", "octo/ci_perf@v1", "octo@" + "1" * 40])
def test_an_action_that_is_not_pinned_is_refused_before_anything_is_written(repository, action):
    done = ci_perf(repository, "init", "--action", action)

    assert done.code == 2
    assert "expected OWNER/REPOSITORY@COMMIT with all 40 digits" in done.err
    assert not (repository / "workloads").exists()


def test_a_pyproject_that_is_no_toml_or_a_place_where_no_file_can_be_is_refused_by_name(
    repository,
):
    (repository / "pyproject.toml").write_text("[project\n")
    assert "pyproject.toml: expected TOML" in ci_perf(repository, "init", "--action", ACTION).err
    (repository / "workloads").write_text("")

    done = ci_perf(repository, "init")

    assert done.code == 3
    assert "error: workloads: cannot be made" in done.err


def test_files_that_exist_are_named_and_left_and_a_link_is_not_followed(
    repository, tmp_path_factory
):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    (repository / SUITE).parent.mkdir()
    (repository / SUITE).write_text("# mine\n")
    (repository / EXAMPLE).symlink_to(elsewhere)

    first, second = (ci_perf(repository, "init") for _ in range(2))

    assert f"kept   {SUITE} (it was there)" in first.out
    assert (repository / SUITE).read_text() == "# mine\n"
    assert not elsewhere.exists()
    assert "wrote" not in second.out
    assert "everything is there" in second.out


def test_another_folder_can_be_named(tmp_path, repository):
    folder = tmp_path / "a project"
    folder.mkdir()

    done = ci_perf(repository, "init", "--directory", str(folder), "--action", ACTION)

    assert (folder / SUITE).is_file()
    assert f"GitHub reads workflows only from {repository / '.github/workflows'}" in done.err


def test_the_example_can_be_measured_as_it_is_and_is_clean_code(repository):
    ci_perf(repository, "init")
    done = ci_perf(repository, "run", "--device", "cpu", "--processes", "1", "-o", "run.json")

    assert done.code == 0, done.err
    run = codec.decode((repository / "run.json").read_text(), Run, name="run.json")
    assert [measured.item_unit for measured in run.measured] == ["image"]
    ruff = ("-m", "ruff", "check", "--isolated", "--select", "F,E,W,D1,I", "--line-length", "100")
    assert run_python(*ruff, EXAMPLE, cwd=repository).stdout == "All checks passed!\n"


def test_what_can_be_measured_as_it_is_is_named_and_commands_make_the_suite(tmp_path):
    project = Project(tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/test_speed.py").write_text("def test_a(benchmark, n): pass\n")
    (tmp_path / "benchmarks/test_other.py").write_text("def test_b(): pass\n")
    (tmp_path / "train.py").touch()
    (tmp_path / "asv.conf.json").write_text('{\n  "results_dir": ".asv/results"\n}')

    said = project.run("init", "--action", ACTION).err

    assert "ci-perf check --against main --pytest benchmarks/test_speed.py\n" in said
    assert "ci-perf check --against main -- python train.py\n" in said
    assert "1. Make what workloads/suite.toml has found as short as it can be" in said
    assert not (tmp_path / EXAMPLE).exists()
    assert inputs(tmp_path)["device"] == "cpu"
    assert inputs(tmp_path)["install"] == "pytest\ngreenlet\n"
    assert 'reads = "asv:.asv/results"\n' in (tmp_path / SUITE).read_text()
    (entries,) = suite.load(tmp_path / "workloads").suites.values()
    assert [tests.paths for tests in entries.pytest] == [("benchmarks/test_speed.py",)]
    assert [command.name for command in entries.commands] == ["train", "asv"]

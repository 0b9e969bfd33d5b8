"""`check --against main --pytest PATH`: test files that nobody wrote for ci-perf, unchanged."""

import json

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import Project

TESTS = """
import sqlite3
import pytest
import pace

@pytest.fixture(scope="module")
def connection():
    with sqlite3.connect(":memory:") as made:
        yield made
    made.close()

@pytest.mark.parametrize("factor", [1, 3])
def test_sum(benchmark, factor, connection):
    result = benchmark(lambda: connection.execute("select 1").fetchall() and pace.wait(factor))
    assert result == factor

@pytest.mark.benchmark
def test_marked():
    pace.calm()

def test_of_something_else():
    pass
"""
PACE = """
import time

def wait(factor):
    until = time.perf_counter() + S * factor
    while time.perf_counter() < until:
        pass
    return factor

def calm():
    sum(range(20_000))
"""


@pytest.fixture
def repository(tmp_path):
    git = repositories.init(tmp_path / "project")
    (git.root / "benchmarks").mkdir()
    (git.root / "src").mkdir()
    (git.root / "benchmarks/test_pace.py").write_text(TESTS)
    write_pace(git, 0.002)
    git.ask("switch", "--quiet", "--create", "branch")
    return git


def write_pace(git, seconds):
    (git.root / "src/pace.py").write_text(f"{PACE}\nS = {seconds}\n")
    git.ask("add", "--all")
    git.commit()


def checked(git, *options, paths=("benchmarks",), **environment):
    """Check benchmarks against main; return how it ended, and its rows by workload and metric."""
    sources = [word for path in paths for word in ("--pytest", path)]
    done = Project(git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--comparison", "../comparison.json"),
        *("-o", "../run.json", "--explain", "0s", *options, *sources),
        **environment,
    )
    file = git.root.parent / "comparison.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return done, {(row["workload"], row.get("metric", "")): row for row in rows}


def test_a_slower_test_is_the_only_one_that_is_blamed(repository):
    write_pace(repository, 0.003)

    done, rows = checked(repository)

    assert done.code == ExitCode.REGRESSED, done.err
    assert (
        "note: 1 without a benchmark: benchmarks/test_pace.py::test_of_something_else" in done.err
    )
    blamed = {name for (name, metric), row in rows.items() if row["verdict"] == "regressed"}
    assert blamed == {"test_pace.test_sum.1", "test_pace.test_sum.3"}
    step = rows["test_pace.test_sum.3", "step_time_s"]
    assert (step["base"], step["head"]) == (
        pytest.approx(0.006, rel=0.2),
        pytest.approx(0.009, rel=0.2),
    )
    assert repository.ask("status", "--porcelain") == ""


def test_extra_info_may_have_a_metric_of_its_own(repository):
    own = "def test_own(benchmark):\n    benchmark(abs, -1)\n"
    own += "    benchmark.extra_info.update({'count.misses': pace.S * 1000, 'note': 'any'})\n"
    with (repository.root / "benchmarks/test_pace.py").open("a") as file:
        file.write(own)
    repository.commit()
    repository.ask("branch", "--force", "main")
    write_pace(repository, 0.003)

    done, rows = checked(repository, paths=["benchmarks/test_pace.py::test_own"])

    assert done.code == ExitCode.REGRESSED, done.err
    row = rows["test_pace.test_own", "count.misses"]
    assert (row["verdict"], row["base"], row["head"]) == ("regressed", 2.0, 3.0)


def test_what_fails_in_the_head_is_told_with_its_assertion(repository):
    with (repository.root / "benchmarks/test_pace.py").open("a") as file:
        file.write("def test_wrong(benchmark):\n    assert benchmark(abs, -1) == 2\n")
    repository.commit()

    done, rows = checked(repository, paths=["benchmarks/test_pace.py::test_wrong"])

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert rows["test_pace.test_wrong", ""]["verdict"] == "failed"
    assert "assert 1 == 2" in done.err


def test_a_test_that_only_the_head_has_is_new(repository):
    with (repository.root / "benchmarks/test_pace.py").open("a") as file:
        file.write("def test_added(benchmark):\n    benchmark(abs, -1)\n")
    repository.commit()

    done, rows = checked(repository, paths=["benchmarks/test_pace.py::test_added"])

    row = rows["test_pace.test_added", ""]
    assert row["verdict"] == "new", done.out
    assert "found no such test" in row["note"]


SUITE = """
python_path = ["src"]
[suites.smoke]
device = "cpu"
[[suites.smoke.pytest]]
paths = ["benchmarks"]
keyword = "test_sum or test_old"
protocol = { processes = 1 }
"""


@pytest.fixture
def project(repository):
    """A repository with a suite, and a test that its branch has deleted."""
    (repository.root / "workloads").mkdir()
    (repository.root / "workloads/suite.toml").write_text(SUITE)
    old = repository.root / "benchmarks/test_old.py"
    old.write_text("def test_old(benchmark):\n    benchmark(abs, -1)\n")
    repository.ask("add", "--all")
    repository.commit()
    repository.ask("branch", "--force", "main")
    old.unlink()
    repository.ask("add", "--all")
    repository.commit()
    return repository


def test_a_table_of_the_suite_collects_the_same_on_both_sides(project):
    write_pace(project, 0.003)

    done, rows = checked(project, paths=[], CI_PERF_CHECK_ALL="0")

    assert done.code == ExitCode.REGRESSED, done.err
    blamed = {name for (name, metric), row in rows.items() if row["verdict"] == "regressed"}
    assert blamed == {"test_pace.test_sum.1", "test_pace.test_sum.3"}
    assert "in the base, and not measured in the head: test_old.test_old" in done.err
    run = json.loads((project.root.parent / "run.json").read_text())
    assert {each["detail"] for each in run["touched"]} == {
        "its launches are forked, which no record covers"
    }
    assert run["programs"] == []


def test_tests_of_a_suite_are_listed_run_and_accepted(project):
    here = Project(project.root)

    listed = here.run("list")
    ran = here.run("run", "--wait", "0s", "-o", "../run.json")
    accepted = here.run("accept", "../run.json")

    assert [line.split()[0] for line in listed.out.splitlines()] == [
        "test_pace.test_sum.1",
        "test_pace.test_sum.3",
    ]
    assert (ran.code, accepted.code) == (ExitCode.OK, ExitCode.OK), accepted.err
    names = {file.stem for file in (project.root / "baselines").rglob("test_*.json")}
    assert names >= {"test_pace.test_sum.1", "test_pace.test_sum.3"}


def test_tests_are_not_collected_on_the_host_for_a_run_in_containers(project):
    done = Project(project.root).run("run", "--runner", "docker", "--container", "image=x")

    assert done.code == ExitCode.USAGE
    assert "expected --runner local, found docker: tests are collected on this host" in done.err


def test_a_command_that_collects_no_tests_says_so(project):
    done = Project(project.root).run("calibrate")

    assert done.code == ExitCode.USAGE
    assert "found tests of pytest" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pytest", "benchmarks"), "--pytest: expected --against REF"),
        (("--against", "main", "--pytest", "nowhere"), "expected a path below"),
        (("--against", "main", "--pytest", "/etc"), "expected a path below"),
        (("--against", "main", "--pytest", "src", "--runner", "docker"), "expected --runner local"),
        (("--against", "main", "--pytest", "src", "--", "true"), "expected one of --pytest"),
    ],
)
def test_wrong_use_is_told(repository, arguments, said):
    done = Project(repository.root).run("check", *arguments)

    assert done.code == ExitCode.USAGE
    assert said in done.err

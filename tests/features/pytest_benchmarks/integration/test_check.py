"""`check --against main --pytest PATH`: test files that nobody wrote for ci-perf, unchanged."""

import json

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.features.pytest_benchmarks.test_collected import ASYNC, COROUTINES
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
    time.sleep(S * factor)
    return factor

def calm():
    time.sleep(0.002)
"""


# Two plugins that are installed beside ours import for seconds.
SETTINGS = "[pytest]\naddopts = -p no:anyio -p no:hypothesispytest\n"
# What a branch adds: a metric of its own, a test that fails, and one that the base does not have.
OWN = """
def test_own(benchmark):
    benchmark(abs, -1)
    benchmark.extra_info.update({'count.misses': pace.S * 1000, 'note': 'any'})
"""
ADDED = """
def test_wrong(benchmark):
    assert benchmark(abs, -1) == 2

def test_added(benchmark):
    benchmark(abs, -1)
"""


def a_repository(root, tests=TESTS):
    """Make a project with these benchmarks on main, and a branch that is checked out."""
    git = repositories.init(root)
    (git.root / "benchmarks").mkdir()
    (git.root / "src").mkdir()
    (git.root / "benchmarks/test_pace.py").write_text(tests)
    (git.root / "pytest.ini").write_text(SETTINGS)
    write_pace(git, 0.002)
    git.ask("switch", "--quiet", "--create", "branch")
    return git


@pytest.fixture
def repository(tmp_path):
    return a_repository(tmp_path / "project")


def write_pace(git, seconds):
    (git.root / "src/pace.py").write_text(f"{PACE}\nS = {seconds}\n")
    git.ask("add", "--all")
    git.commit()


def checked(git, *options, paths=("benchmarks",), **environment):
    """Check benchmarks against main; return how it ended, and its rows by workload and metric."""
    sources = [word for path in paths for word in ("--pytest", path)]
    done = Project(git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--comparison", "../comparison.json"),
        *("-o", "../run.json", *options, *sources),
        **environment,
    )
    file = git.root.parent / "comparison.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return done, {(row["workload"], row.get("metric", "")): row for row in rows}


SUITE = """
python_path = ["src"]
[suites.smoke]
device = "cpu"
canaries = false
[[suites.smoke.pytest]]
paths = ["benchmarks"]
[suites.smoke.pytest.protocol]
processes = 1
warmup_min_s = 0.01
timed_min_s = 0.05
block_min_s = 0.002
statistic = "min"
monitor_hz = 0
[suites.smoke.limits]
step_time_s = { limit = 0.2 }
step_cpu_s = { gate = false }
host_rss_peak_bytes = { gate = false }
"""


def a_project(root):
    """Make a repository with a suite, and a test that its branch has deleted."""
    git = a_repository(root, TESTS + OWN)
    (git.root / "workloads").mkdir()
    (git.root / "workloads/suite.toml").write_text(SUITE)
    old = git.root / "benchmarks/test_old.py"
    old.write_text("def test_old(benchmark):\n    benchmark(abs, -1)\n")
    git.commit()
    git.ask("branch", "--force", "main")
    old.unlink()
    git.commit()
    return git


@pytest.fixture
def project(tmp_path):
    return a_project(tmp_path / "project")


@pytest.fixture(scope="module")
def slower(tmp_path_factory):
    """A branch that is slower and has more tests, how its check ended, and the rows."""
    git = a_project(tmp_path_factory.mktemp("slower") / "project")
    (git.root / "benchmarks/test_pace.py").write_text(TESTS + OWN + ADDED)
    write_pace(git, 0.003)
    return git, *checked(git, "--budget", "2m", paths=[], CI_PERF_CHECK_ALL="0")


def test_slower_tests_are_the_only_ones_that_are_blamed(slower):
    git, done, rows = slower

    assert done.code == ExitCode.REGRESSED, done.err
    assert (
        "note: 1 without a benchmark: benchmarks/test_pace.py::test_of_something_else" in done.err
    )
    blamed = {name for (name, metric), row in rows.items() if row["verdict"] == "regressed"}
    assert blamed == {"test_pace.test_sum.1", "test_pace.test_sum.3", "test_pace.test_own"}
    step = rows["test_pace.test_sum.3", "step_time_s"]
    assert step["base"] >= 0.006
    assert step["head"] >= 0.009
    assert git.ask("status", "--porcelain", "--", ":(exclude)*__pycache__*") == ""


def test_extra_info_may_have_a_metric_of_its_own(slower):
    *_, rows = slower

    row = rows["test_pace.test_own", "count.misses"]
    assert (row["verdict"], row["base"], row["head"]) == ("regressed", 2.0, 3.0)


def test_what_fails_in_the_head_is_told_with_its_assertion(slower):
    _, done, rows = slower

    assert rows["test_pace.test_wrong", ""]["verdict"] == "failed"
    assert "assert 1 == 2" in done.err


def test_a_test_that_one_side_lacks_is_new_or_named(slower):
    _, done, rows = slower

    row = rows["test_pace.test_added", ""]
    assert row["verdict"] == "new"
    assert row["note"] == ""
    assert "workload removed: `test_old.test_old`" in done.out


def test_launches_of_tests_are_forked_and_no_record_covers_them(slower):
    git, *_ = slower

    run = json.loads((git.root.parent / "run.json").read_text())
    assert {each["detail"] for each in run["touched"]} == {
        "its launches are forked, which no record covers"
    }
    assert run["programs"] == []


@pytest.mark.story
def test_one_test_is_checked_without_any_suite(repository):
    write_pace(repository, 0.003)

    paths = ["benchmarks/test_pace.py::test_sum[1]"]

    done, rows = checked(repository, "--budget", "1m", paths=paths)

    assert done.code == ExitCode.REGRESSED, done.err
    assert {name for name, _ in rows} == {"test_pace.test_sum.1"}
    assert not json.loads((repository.root.parent / "run.json").read_text()).get("canaries")


def test_fail_fast_ends_with_the_first_proven_row_and_says_that_nothing_was_profiled(repository):
    write_pace(repository, 0.008)
    paths = ["benchmarks/test_pace.py::test_sum"]

    done, rows = checked(repository, "--fail-fast", paths=paths, CI_PERF_CHECK_EXPLAIN="")

    assert done.code == ExitCode.REGRESSED, done.err
    assert "--fail-fast profiles nothing; next: --explain 1m" in done.out
    run = json.loads((repository.root.parent / "run.json").read_text())
    (paired,) = run["paired"]
    assert [len(each["pairs"]) for each in run["profiled"]] == [0]
    assert [each["workload"] for each in run["profiled"]] == [paired["workload"]]
    assert len(run["interleaved"]["unlaunched"]) == 1
    assert len({name for name, _ in rows}) == 2


def test_a_test_of_the_base_is_not_new_when_the_budget_ends(repository):
    write_pace(repository, 0.01)

    done, rows = checked(repository, "--budget", "0.001s", "--fail-on", "never")

    assert done.code == ExitCode.NO_ANSWER, done.err
    left = [name for name, metric in rows if not metric]
    assert len(left) == 2  # a pair of one test came before
    assert {rows[name, ""]["code"] for name in left} == {"too_few_pairs"}
    assert f"not compared, because the check ended: `{left[0]}`, `{left[1]}`" in done.out
    assert "Only on the head" not in done.out


def test_a_metric_that_the_head_no_longer_sets_is_missing(tmp_path):
    git = a_repository(tmp_path / "project", "import pace" + OWN)
    (git.root / "benchmarks/test_pace.py").write_text("def test_own(benchmark): benchmark(abs, -1)")
    git.commit()

    done, rows = checked(git, "--budget", "1s", "--fail-on", "never")

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert rows["test_pace.test_own", "count.misses"]["code"] == "missing"
    assert "missing: `test_pace.test_own` `misses`" in done.out


def test_tests_of_a_suite_are_listed_run_and_accepted(project):
    here = Project(project.root)

    listed = here.run("list")
    ran = here.run("run", "--wait", "0s", "-o", "../run.json")
    accepted = here.run("accept", "../run.json")

    listed_names = [line.split()[0] for line in listed.out.splitlines()]
    assert listed_names[:2] == ["test_pace.test_sum.1", "test_pace.test_sum.3"]
    assert (ran.code, accepted.code) == (ExitCode.OK, ExitCode.OK), accepted.err
    names = {file.stem for file in (project.root / "baselines").rglob("test_*.json")}
    assert names >= {"test_pace.test_sum.1", "test_pace.test_sum.3"}


def test_a_coroutine_is_measured_as_a_whole(project):
    (project.root / "conftest.py").write_text(ASYNC)
    (project.root / "benchmarks/test_pace.py").write_text(COROUTINES)

    ran = Project(project.root).run(
        *("run", "test_pace.test_async", "--wait", "0s", "-o", "../run.json")
    )

    assert ran.code == ExitCode.OK, ran.err
    (measured,) = json.loads((project.root.parent / "run.json").read_text())["measured"]
    (process,) = measured["processes"]
    assert min(process["timed"]["block_s"]) >= 0.005


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


# Imported by each Python that starts.
NOTES_PROBES = """
import sys
if any(word.endswith("environment_probe") for word in sys.orig_argv):
    with open({note!r}, "a") as file:
        file.write("1")
"""


def test_the_machine_is_described_once(repository):
    hook, note = repository.root.parent / "hook", repository.root.parent / "note"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(NOTES_PROBES.format(note=str(note)))
    write_pace(repository, 0.003)

    checked(repository, "--processes", 1, "--budget", "0s", PYTHONPATH=str(hook))

    assert note.read_text() == "1"

"""`check --against main -- COMMAND`: a program that nobody wrote for ci-perf, as it is."""

import json
import os
import sys
from pathlib import Path

import pytest

import ci_perf
from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import Project

# Prints ten times, each half the time that it sleeps.
PROGRAM = """
import sys, time
import pace
for number in range(10):
    time.sleep(pace.S)
    print(f"iter {number}: time {500 * pace.S:.3f}ms", flush=True)
"""
METRIC = ("--metric", "step_ms=iter .*time ([0-9.]+)ms", "--skip", "2")


@pytest.fixture
def repository(tmp_path):
    git = repositories.init(tmp_path / "project")
    (git.root / "scripts").mkdir()
    (git.root / "scripts/program.py").write_text(PROGRAM)
    git.commit(program_py=PROGRAM, pace_py="S = 0.005\n")
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit()
    return git


def checked(git, *options, command=(sys.executable, "program.py"), **environment):
    """Check a command against main; return how it ended, and its rows by metric."""
    done = Project(git.root).run(
        *("check", "--against", "main", "--wait", "0s", "--comparison", "../comparison.json"),
        *("-o", "../run.json", *options, "--", *command),
        **environment,
    )
    file = git.root.parent / "comparison.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return done, {row.get("metric", "numerics"): row for row in rows}


@pytest.mark.story
def test_a_slower_command_is_proven_without_suite_and_baseline(repository, tmp_path):
    """Each side imports its own package, also where an editable install names that of the head.

    The script lies below the root, and the package at the root.
    """
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "pace.pth").write_text(f"{repository.root}\n")
    (installed / "sitecustomize.py").write_text(f"import site; site.addsitedir({str(installed)!r})")
    repository.commit(pace_py="S = 0.010\n")
    paths = f"{installed}{os.pathsep}{Path(ci_perf.__file__).parents[1]}"

    done, rows = checked(
        repository, command=(sys.executable, "scripts/program.py"), PYTHONPATH=paths
    )

    assert done.code == ExitCode.REGRESSED, done.err
    assert set(rows) == {*("step_time_s", "step_cpu_s", "step_p95_s", "host_rss_peak_bytes")}
    assert rows["step_time_s"]["base"] > 0.05  # the whole command, with the start of Python
    assert "Regressed: `command`. Fix it, or say in the pull request" in done.out
    assert "ci-perf accept" not in done.out
    assert not json.loads((tmp_path / "run.json").read_text()).get("canaries")
    assert repository.ask("status", "--porcelain", "--", ":(exclude)*__pycache__*") == ""


def test_a_command_that_stayed_as_it_was_is_green(repository):
    done, rows = checked(repository, *METRIC)

    assert done.code == ExitCode.OK, done.err
    assert rows["step_time_s"]["verdict"] == "unchanged"
    assert rows["step_time_s"]["base"] == pytest.approx(0.0025)
    assert "No action needed" in done.out


def test_another_number_of_printed_times_is_not_comparable(repository):
    """A logger that changes its unit where a step is slow: one line of ten is left."""
    slow = PROGRAM.replace(
        'time {500 * pace.S:.3f}ms"', 'took 50ms" if number else "iter 0: time 2.500ms"'
    )
    repository.commit(program_py=slow)

    done, rows = checked(repository, "--metric", "step_ms=iter .*time ([0-9.]+)ms")

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert rows[""]["code"] == "not_comparable"
    above, _, _ = done.out.partition("<details>")
    assert "times that --metric finds in a run: 10 → 1; let both sides do" in above


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((sys.executable, "-c", "import sys; print('why'); sys.exit(4)"), "exit code 0, found 4"),
        (
            ("no-such program", "--now"),
            "'no-such program' --now: cannot start 'no-such program': No such file",
        ),
        ((sys.executable, "-c", "print('iter 0: time 1ms')"), "more than 2 lines with"),
    ],
)
def test_a_command_that_fails_says_why(repository, command, said):
    done, rows = checked(repository, *METRIC, command=command)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert rows[""]["verdict"] == "failed"
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--", "true"), "-- COMMAND: expected --against REF"),
        (("--against", "main", "--"), "--: expected a command behind it"),
        (("--against", "main", "mlp", "--", "true"), "expected no workloads, found 'mlp'"),
        (("--against", "main", "--device", "cuda", "--", "true"), "expected --device cpu"),
        (("--against", "main", "--runner", "docker", "--", "true"), "expected --runner local"),
        (("--against", "main", "--skip", "3"), "expected a command, found none"),
        (("--against", "main", "--metric", "x", "--", "true"), "--metric: expected NAME_s=REGEX"),
    ],
)
def test_wrong_use_is_told(repository, arguments, said):
    done = Project(repository.root).run("check", *arguments)

    assert done.code == ExitCode.USAGE
    assert said in done.err


def test_a_path_that_is_the_heads_on_both_sides_is_refused(repository):
    done, rows = checked(repository, command=(sys.executable, f"{repository.root}/program.py"))

    assert done.code == ExitCode.USAGE
    assert "both run the head's files" in done.err
    assert rows == {}


def test_the_steps_of_a_loop_are_the_steps_of_the_command(repository):
    program = """
import time, ci_perf, pace
for number in ci_perf.steps(range(1000), warmup=2, steps=10, items=4):
    time.sleep(pace.S)
    ci_perf.record(loss=1 / (1 + number))
"""
    repository.ask("switch", "--quiet", "main")
    repository.commit(program_py=program)
    repository.ask("switch", "--quiet", "-C", "branch")
    repository.commit(pace_py="S = 0.010\n")

    done, rows = checked(repository)

    assert done.code == ExitCode.REGRESSED, done.err
    assert rows["step_time_s"]["head"] == pytest.approx(0.01, rel=0.2)
    assert rows["numerics"]["verdict"] == "unchanged"
    assert "items/s" in done.out


def test_a_loop_that_ends_too_early_is_no_measurement(repository):
    program = "import ci_perf\nfor number in ci_perf.steps(range(5)): pass"
    repository.commit(program_py=program)

    done, rows = checked(repository)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert rows[""]["verdict"] == "failed"
    assert "expected 70 steps of its loop, found 5" in done.err


def test_only_the_first_launch_runs_the_command_once_more(tmp_path):
    """Its files are in the caches of the machine after it."""
    project = Project(tmp_path)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads/suite.toml").write_text(
        f"""
schema_version = 1
[suites.x]
device = "cpu"
canaries = false
protocol = {{ processes = 2 }}
[[suites.x.commands]]
name = "appends"
protocol = {{ timed_max_s = 0.01 }}
command = "{sys.executable} -c 'open(\\"runs\\", \\"a\\").write(\\"x\\")'"
"""
    )

    done = project.run("run", "--suite", "x", "--wait", "0s", "-o", "../run.json")

    assert done.code == ExitCode.OK, done.err
    assert (tmp_path / "runs").read_text() == "xxx"

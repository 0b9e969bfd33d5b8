"""`list`, `run` and `check`, with real child processes."""

import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from ci_perf.cli import main
from ci_perf.errors import ExitCode
from ci_perf.model.comparison import Code, Comparison
from ci_perf.model.run import Run
from ci_perf.model.validity import Status
from ci_perf.system import files, linux
from tests.processes import wait_for_children, wait_until
from tests.projects import GOOD, QUICK, SLOW_STEP


def test_list_imports_no_workload_and_foreign_text_commands_neither_terminal_nor_ci(project):
    body = r'"""\x1b[31mred \r::error::boo ##[group]"""' + "\nraise SystemExit(9)\n"
    project.workload("bomb", body).workload("good").suite("bomb", "good")

    done = project.run("list")

    bomb, good = done.out.splitlines()
    assert done.code == ExitCode.OK
    assert good == "good    A good one."
    assert bomb.startswith("bomb    ")
    assert bomb.isprintable()
    assert "##[" not in bomb


def test_run_measures_what_it_can_and_names_what_it_cannot(project):
    project.workload("bad", "print('::error::gotcha')\nraise ValueError('boom')\n")
    project.workload("hog", f"{GOOD}def step():\n    bytearray(64 * 2**30)\n")
    limited = f"{QUICK}memory_limit_bytes = {4 * 2**30}\n"
    project.workload("good").workload("other")
    project.suite("bad", "hog", "good", "other", settings=limited)

    done = project.run("run", "bad", "hog", "good", "--processes", 1, "-o", "out.json")

    run = files.read(project.root / "out.json", Run)
    assert done.code == ExitCode.NO_ANSWER
    assert run.selection == ("bad", "hog", "good")
    assert [(m.workload, len(m.processes)) for m in run.measured] == [("good", 1)]
    heading, good = (line.split() for line in done.out.strip().splitlines())
    assert heading[:3] == ["workload", "step", "time"]
    assert good[0] == "good"
    assert "MiB" in good
    assert [f.reason for f in run.failed] == ["ValueError: boom", "MemoryError"]
    assert run.failed[1].exhausted
    assert run.failed[1].exhausted.kind == "limit"
    assert "next: a process reached `memory_limit_bytes` of suite.toml" in done.err
    assert "bad: failed in phase import" in done.err
    assert "  | : :error::gotcha" in done.err
    assert not any(line.startswith("::") for line in done.err.splitlines())


def test_a_device_that_is_not_here_is_named_with_the_next_step(project):
    project.workload("good").suite("good")

    done = project.run("run", "--device", "cuda:7")

    assert done.code == ExitCode.NO_ANSWER
    assert "--device cuda:7" in done.err
    steps = ("`ci-perf doctor` says why", "expected an index below", "or measure with --device cpu")
    assert any(step in done.err for step in steps)


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_ends_the_children_and_keeps_what_is_finished(project, with_signal):
    project.workload("good").workload("slow", GOOD + SLOW_STEP).suite("good", "slow")
    process = project.start("run", "--processes", 1)
    assert process.stderr
    assert process.stderr.readline() == "measuring 2 workloads in 2 processes\n"
    for line in process.stderr:
        if "good" in line:
            break
    children = wait_for_children(process.pid)

    process.send_signal(with_signal)
    _, err = process.communicate(timeout=60)

    run = files.read(project.root / "run.json", Run)
    assert process.returncode == ExitCode.INTERRUPTED
    assert [m.workload for m in run.measured] == ["good"]
    assert [f.workload for f in run.failed] == ["slow"]
    assert run.validity.status is Status.INVALID
    assert "interrupted" in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert project.run("accept", "run.json").code == ExitCode.NO_ANSWER


def test_a_terminal_shows_a_bar_and_ends_well(project):
    project.workload("bad", "raise ValueError('[red]boom[/red]')\n")
    project.workload("good").suite("bad", "good")

    code, shown = project.run_on_terminal("run", stream="stderr", TERM="xterm-256color")

    assert code == ExitCode.NO_ANSWER
    assert b"good 1/2" in shown
    assert b"ValueError: [red]boom[/red]" in shown
    assert b"1 of 2 workloads measured" in shown


def test_two_runs_at_once_never_overlap(project):
    """Each step notes when it begins and ends; the system's clock is the same for both runs."""
    steps = (
        "import time\n"
        "def step():\n"
        "    with open('steps', 'a') as file:\n"
        "        start = time.monotonic()\n"
        "        time.sleep(0.001)\n"
        "        file.write(f'{context_run} {start} {time.monotonic()}\\n')\n"
        "import os\ncontext_run = os.environ['WHICH']\n"
    )
    project.workload("w", GOOD + steps).suite("w")

    owner = project.start("run", "--processes", 6, "-o", "a.json", WHICH="a")
    wait_for_children(owner.pid)
    wait_until((project.root.parent / "locks/cpu.lock").exists)
    both = (owner, project.start("run", "--wait", "1s", "-o", "b.json", WHICH="b"))
    told = both[1].stderr.readline()
    ended = [process.communicate(timeout=120) and process.returncode for process in both]

    assert re.match(f"waiting for cpu, which run .* process {owner.pid} ", told)
    assert ended == [ExitCode.OK, ExitCode.OK]
    noted = [line.split() for line in (project.root / "steps").read_text().splitlines()]
    spans = {
        which: [float(t) for run, *times in noted if run == which for t in times] for which in "ab"
    }
    first, second = sorted(spans.values(), key=min)
    assert max(first) < min(second)


def test_a_device_that_stays_busy_is_given_up_with_its_owner(project):
    project.workload("slow", GOOD + SLOW_STEP).suite("slow")
    owner = project.start("run", "-o", "first.json")
    wait_for_children(owner.pid)
    wait_until((project.root.parent / "locks/cpu.lock").exists)

    done = project.run("run", "--wait", "0s")
    owner.send_signal(signal.SIGINT)
    owner.communicate(timeout=60)

    assert done.code == ExitCode.NO_ANSWER
    assert "held by run" in done.err
    assert f"process {owner.pid}" in done.err


def test_an_unwritable_target_says_so_before_it_costs_an_hour(project):
    project.workload("good").suite("good")

    done = project.run("run", "-o", "no/such/folder/run.json")

    assert done.code == ExitCode.NO_ANSWER
    assert "no/such/folder/run.json: cannot be written: there is no such folder" in done.err
    assert "next: mkdir -p " in done.err
    assert "good:" not in done.err


def test_run_has_setup_make_ready_what_a_workload_imports(project):
    """As `check --against` does for both sides: what has to be installed is said in one place."""
    installs = 'setup = { command = "mkdir -p .deps && touch .deps/dependency.py" }\n'
    project.workload("good", f"import dependency\n{GOOD}")
    project.suite("good", settings=f'python_path = [".deps"]\n{installs}{QUICK}')

    done = project.run("run")

    assert done.code == ExitCode.OK, done.err
    assert "setup of the head: mkdir -p .deps" in done.err


def test_a_busy_machine_is_waited_for_and_then_measured(project, monkeypatch):
    """In this process, in which the machine can be as busy as a test wants."""
    # No option makes a machine busy, and this test is about the options.
    monkeypatch.setattr(linux, "cpu_pressure", lambda *_: 0.9)
    monkeypatch.setenv("CI_PERF_LOCK_DIR", project.locks["CI_PERF_LOCK_DIR"])
    monkeypatch.chdir(project.root)
    project.workload("good").suite("good")

    done = CliRunner().invoke(main.cli, ["check", "--wait", "1s"], standalone_mode=False)

    assert "waiting for a quiet machine" in done.stderr
    assert "is not quiet after 1 s, and is measured all the same" in done.stderr
    reasons = files.read(project.root / "run.json", Run).validity.reasons
    assert "host_pressure" in [reason.code for reason in reasons]


def test_check_measures_judges_and_reports_also_a_workload_that_has_vanished(project):
    project.workload("good").workload("gone").suite("good", "gone")

    first = project.run("check", "--processes", 2)
    accepted = project.run("accept", "run.json")
    project.suite("good")
    outputs = ("--report", "report.md", "--comparison", "c.json", "-o", "second.json")
    second = project.run("check", "--processes", 2, *outputs)

    assert first.code == ExitCode.NO_ANSWER  # nothing to compare with
    assert "Measured for the first time" in first.out
    assert accepted.code == ExitCode.OK
    assert second.code in {ExitCode.REGRESSED, ExitCode.NO_ANSWER}  # by the noise
    assert second.out == ""
    assert (project.root / "report.md").read_text().startswith("### ")
    comparison = files.read(project.root / "c.json", Comparison)
    assert comparison.exit_code == second.code
    assert [row.workload for row in comparison.rows if row.code is Code.MISSING] == ["gone"]
    page = project.run("export", "c.json", "--format", "html", "--run", "second.json")
    assert "launches, in their order" in page.out


@pytest.mark.parametrize(
    "outputs",
    [
        ("--report", "run.json"),
        ("--comparison", "./run.json"),
        ("--comparison", "x", "--report", "x"),
        ("--report", "workloads/suite.toml"),
        ("--comparison", "baselines/x.json"),
    ],
)
def test_check_overwrites_nothing_that_it_needs(project, outputs):
    project.workload("good").suite("good")

    done = project.run("check", *outputs)

    assert done.code == ExitCode.USAGE
    assert f"{outputs[0]} {Path(outputs[1])}: would overwrite" in done.err
    assert not (project.root / "run.json").exists()


def test_a_suite_says_where_it_belongs_and_an_option_says_otherwise(project):
    project.workload("a").suite("a", device="cuda")
    there = project.run("run", CUDA_VISIBLE_DEVICES="")
    here = project.run("run", "--device", "cpu")

    assert there.code == ExitCode.NO_ANSWER
    assert "--device cuda: expected" in there.err
    assert here.code == ExitCode.OK

"""The command line as its users meet it: real processes, real files, exit codes."""

import contextlib
import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from ci_perf import files
from ci_perf.cli.main import COMMANDS, cli
from ci_perf.errors import ExitCode
from ci_perf.model.run import Run, Status
from tests.projects import GOOD, Project
from tests.runs import a_failed, a_measured, a_run

STEADY = (1e-3, 1.001e-3, 0.999e-3)
SLOW = tuple(2 * s for s in STEADY)
SLOW_STEP = "import time\ndef step():\n    time.sleep(600)\n"


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "a project")


@pytest.fixture(autouse=True)
def _folder(project):
    project.root.mkdir()


def recorded(project, name, *workloads, **more):
    """Put a run file into the project, as if it had been measured."""
    path = project.root / name
    files.write(path, a_run(*workloads, **more))
    return path


# --- the front door


def command_of(name):
    return cli.get_command(click.Context(cli), name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_the_list_says_what_it_does(project, name):
    done = project.run(name, "--help")

    assert done.code == ExitCode.OK
    assert " ".join(command_of(name).help.split()).startswith(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_its_environment_variable(name):
    """click builds CI_PERF_<COMMAND>_<OPTION> from the name of the parameter."""
    for parameter in command_of(name).params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            longest = max(parameter.opts, key=len).removeprefix("--").replace("-", "_")
            assert parameter.name == longest


def test_an_option_from_the_environment_counts(project):
    project.workload("good").suite("good")

    assert "matmul.size=256" in project.run("list", CI_PERF_LIST_SUITE="builtin:smoke").out
    assert json.loads(project.run("list", CI_PERF_LIST_JSON="1").out)["suite"] == "smoke"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run", "--processes", "0"],
        ["run", "--device", "tpu"],
        ["run", "--device", "cuda:x"],
        ["compare"],
        ["compare", "a", "b", "c"],
        ["compare", "missing.json"],
        ["accept", "missing.json"],
        ["accept", "run.json", "--append", "--replace"],
        ["accept", "run.json", "--replace", "--reason", " "],
        ["list"],
        ["list", "--suite", "builtin:nonsense"],
        ["check", "--suite", "nonsense"],
        ["schema"],
        ["schema", "nonsense"],
    ],
)
def test_wrong_use_is_exit_code_2_and_a_sentence(project, arguments):
    done = project.run(*arguments)

    assert done.code == ExitCode.USAGE
    assert "rror" in done.err
    assert "Traceback" not in done.err
    assert not done.out


def test_an_uncaught_exception_is_3_and_never_blames_the_pull_request(project):
    crash = (
        "import sys, ci_perf.git as git\n"
        "def boom(root): raise RuntimeError('ours')\n"
        "git.source = boom\n"
        "sys.argv = ['ci-perf', 'run']\n"
        "from ci_perf.cli.main import main\nmain()\n"
    )
    project.workload("good").suite("good")

    done = subprocess.run(
        [sys.executable, "-c", crash], cwd=project.root, capture_output=True, text=True, check=False
    )

    assert done.returncode == ExitCode.NO_ANSWER
    assert "bug in ci-perf, not in your change" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["list"], ["compare", "a.json", "b.json"], ["accept", "a.json"]]
)
def test_what_needs_no_torch_does_not_import_it(project, arguments):
    project.workload("good").suite("good")
    recorded(project, "a.json", a_measured("good", *STEADY))
    recorded(project, "b.json", a_measured("good", *STEADY))
    probe = (
        "import sys\n"
        "from ci_perf.cli import main as front\n"
        f"sys.argv = ['ci-perf', *{arguments!r}]\n"
        "try:\n    front.main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'transformers', 'pandas', 'pyarrow', 'github', 'numpy', 'scipy'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=project.root, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.fixture
def judged(project):
    """A pair of runs of which the second is slower."""
    recorded(project, "a.json", a_measured("w", *STEADY))
    recorded(project, "b.json", a_measured("w", *SLOW))
    return project


def in_shell(project, line):
    """Run a line of bash in which `ci-perf` is the command."""
    define = f'ci-perf() {{ "{sys.executable}" -m ci_perf "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"{define}\n{line}"],
        cwd=project.root,
        env={**os.environ, **project.locks},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ci-perf compare a.json a.json >&-", ExitCode.OK),
        ("ci-perf compare a.json b.json >&-", ExitCode.REGRESSED),
        ("ci-perf compare a.json b.json -o report.md >&- 2>&-", ExitCode.REGRESSED),
        ("ci-perf compare a.json b.json <&- >&- 2>&-", ExitCode.REGRESSED),
        ("ci-perf compare a.json a.json 2>&-", ExitCode.OK),
        ("ci-perf compare a.json a.json 2>/dev/full", ExitCode.OK),
        ("ci-perf compare a.json a.json >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf compare a.json b.json >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf compare missing.json 2>/dev/full", ExitCode.USAGE),
        ("ci-perf compare missing.json 2>&-", ExitCode.USAGE),
        ("ci-perf run --bogus 2>/dev/full", ExitCode.USAGE),
        ("ci-perf --help >&-", ExitCode.OK),
        ("ci-perf --help >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf schema run | true; exit ${PIPESTATUS[0]}", ExitCode.OK),
        ("ci-perf compare a.json b.json | true; exit ${PIPESTATUS[0]}", ExitCode.REGRESSED),
        ("PYTHONIOENCODING=ascii ci-perf compare a.json a.json", ExitCode.OK),
    ],
)
def test_no_state_of_the_streams_changes_the_verdict(judged, line, code):
    done = in_shell(judged, line)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_a_full_stdout_says_what_was_lost(judged):
    assert (
        "stdout: cannot be written: No space left"
        in in_shell(judged, "ci-perf compare a.json b.json >/dev/full").stderr
    )


@pytest.mark.parametrize("ending", ["2>/dev/full", "2>&-", "2>&1 >/dev/null | head -1"])
def test_nobody_listening_costs_no_measurement(project, ending):
    project.workload("good").suite("good")

    in_shell(project, f"ci-perf run {ending}")

    assert [m.workload for m in files.read(project.root / "run.json", Run).measured] == ["good"]


def test_nohup_is_obeyed(project):
    project.workload("good").suite("good")
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "ci_perf", "run"],
        cwd=project.root,
        env={**os.environ, **project.locks},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for_children(process.pid)

    process.send_signal(signal.SIGHUP)

    assert process.wait(timeout=60) == ExitCode.OK


def test_what_foreign_files_say_commands_neither_terminal_nor_ci(project):
    reason = "\x1b[31m::error::x ##[error]y \u202e"
    recorded(project, "run.json", a_failed("w", reason))

    done = project.run("accept", "run.json")

    assert done.code == ExitCode.NO_ANSWER
    assert not set("\x1b\u202e") & set(done.err)
    assert "##[" not in done.err
    assert not any(line.lstrip().startswith("::") for line in done.err.splitlines())


# --- list


def test_list_shows_workloads_without_importing_them(project):
    body = '"""Explodes when imported."""\nraise SystemExit(9)\n'
    project.workload("bomb", body).workload("good").suite("bomb", "good")

    done = project.run("list")

    assert done.code == ExitCode.OK
    assert done.out.splitlines() == ["bomb    Explodes when imported.", "good    A good one."]


def test_list_is_json_for_programs(project):
    found = json.loads(project.run("list", "--suite", "builtin:standard", "--json").out)

    assert found["suite"] == "builtin:standard"
    assert {"id", "parameters", "description", "protocol"} <= found["workloads"][0].keys()


# --- run


def test_run_measures_what_it_can_and_names_what_it_cannot(project):
    project.workload("bad", "print('::error::gotcha')\nraise ValueError('boom')\n")
    project.workload("good").suite("bad", "good")

    done = project.run("run", "--device", "cpu")

    run = files.read(project.root / "run.json", Run)
    assert done.code == ExitCode.NO_ANSWER
    assert [m.workload for m in run.measured] == ["good"]
    assert len(run.measured[0].processes) == 2
    assert [f.reason for f in run.failed] == ["ValueError: boom"]
    assert "bad: failed in phase import" in done.err
    assert "  | : :error::gotcha" in done.err
    assert not any(line.startswith("::") for line in done.err.splitlines())


def test_run_takes_a_selection_and_a_number_of_processes(project):
    project.workload("one").workload("two").suite("one", "two")

    done = project.run("run", "two", "--processes", 1, "-o", "out.json")

    run = files.read(project.root / "out.json", Run)
    assert done.code == ExitCode.OK
    assert run.selection == ("two",)
    assert [len(m.processes) for m in run.measured] == [1]


def test_a_device_that_is_not_here_is_named_with_the_next_step(project):
    project.workload("good").suite("good")

    done = project.run("run", "--device", "cuda:7")

    assert done.code == ExitCode.NO_ANSWER
    assert "--device cuda:7" in done.err
    assert "`ci-perf doctor` says why" in done.err or "expected an index below" in done.err


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_children_and_keeps_what_is_finished(project, with_signal):
    project.workload("good").workload("slow", GOOD + SLOW_STEP).suite("good", "slow")
    process = project.start("run", "--processes", 1)
    assert process.stderr
    for line in process.stderr:
        if "good" in line:
            break
    children = _wait_for_children(process.pid)

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


def _wait_for_children(pid):
    """The worker of the slow workload, once it runs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        if found := children.split():
            return found
        time.sleep(0.02)
    raise AssertionError("no child was started")


def test_a_terminal_shows_a_bar_and_ends_well(project):
    project.workload("bad", "raise ValueError('[red]boom[/red]')\n")
    project.workload("good").suite("bad", "good")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ci_perf", "run"],
        cwd=project.root,
        env={**os.environ, **project.locks, "TERM": "xterm-256color", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is gone: all has been read
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)

    assert process.wait(timeout=60) == ExitCode.NO_ANSWER
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

    both = [project.start("run", "-o", f"{which}.json", WHICH=which) for which in "ab"]
    told = [process.communicate(timeout=120)[1] for process in both]

    assert [process.returncode for process in both] == [ExitCode.OK, ExitCode.OK]
    assert sum("waiting for cpu: held by run " in err for err in told) == 1
    noted = [line.split() for line in (project.root / "steps").read_text().splitlines()]
    spans = {
        which: [float(t) for run, *times in noted if run == which for t in times] for which in "ab"
    }
    first, second = sorted(spans.values(), key=min)
    assert max(first) < min(second)


def test_a_device_that_stays_busy_is_given_up_with_its_owner(project):
    project.workload("slow", GOOD + SLOW_STEP).suite("slow")
    owner = project.start("run", "-o", "first.json")
    _wait_for_children(owner.pid)
    _wait_until((project.root.parent / "locks/cpu.lock").exists)

    done = project.run("run", "--lock-timeout", "0.1")
    owner.send_signal(signal.SIGINT)
    owner.communicate(timeout=60)

    assert done.code == ExitCode.NO_ANSWER
    assert "held by run" in done.err
    assert f"process {owner.pid}" in done.err


def _wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_unwritable_target_says_so_before_it_costs_an_hour(project):
    project.workload("good").suite("good")

    done = project.run("run", "-o", "no/such/folder/run.json")

    assert done.code == ExitCode.NO_ANSWER
    assert "no/such/folder/run.json: cannot be written" in done.err
    assert "good:" not in done.err


# --- compare


@pytest.mark.parametrize(
    ("head", "code"),
    [(STEADY, ExitCode.OK), (SLOW, ExitCode.REGRESSED)],
)
def test_compare_ends_with_the_verdict(project, head, code):
    recorded(project, "a.json", a_measured("w", *STEADY))
    recorded(project, "b.json", a_measured("w", *head))

    done = project.run("compare", "a.json", "b.json")

    assert done.code == code
    assert done.out.startswith("### ")
    assert "`w`" in done.out


def test_compare_with_a_crash_has_no_answer(project):
    recorded(project, "a.json", a_measured("w", *STEADY))
    recorded(project, "b.json", a_failed("w", "CUDA error"))

    done = project.run("compare", "a.json", "b.json")

    assert done.code == ExitCode.NO_ANSWER
    assert "CUDA error" in done.out


def test_compare_writes_every_form_also_to_a_file(project):
    import pandas as pd

    recorded(project, "a.json", a_measured("w", *STEADY))
    recorded(project, "b.json", a_measured("w", *SLOW))

    def compared(form, *more):
        return project.run("compare", "a.json", "b.json", "--format", form, *more)

    assert json.loads(compared("json").out)["verdict"] == "regressed"
    rows = list(csv.DictReader(io.StringIO(compared("csv").out)))
    assert rows[0]["verdict"] == "regressed"
    assert "1 regression" in compared("terminal").out
    assert compared("parquet").code == ExitCode.USAGE
    assert compared("parquet", "-o", "c.parquet").code == ExitCode.REGRESSED
    assert len(pd.read_parquet(project.root / "c.parquet")) == len(rows)
    done = compared("markdown", "-o", "report.md")
    assert (done.code, done.out) == (ExitCode.REGRESSED, "")
    assert (project.root / "report.md").read_text() == compared("markdown").out


def test_compare_uses_the_limits_of_the_suite(project):
    project.workload("w").suite("w", extra="limits = {step_time_s = {relative = 2.0}}\n")
    recorded(project, "a.json", a_measured("w", *STEADY))
    recorded(project, "b.json", a_measured("w", *SLOW))

    assert project.run("compare", "a.json", "b.json").code == ExitCode.OK


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found nothing"),
        ('{"type": "run"', "truncated"),
        ('{"type": "comparison", "schema_version": 1}', "$.type"),
        ('{"schema_version": 7}', "newer ci-perf"),
    ],
)
def test_a_bad_run_file_is_exit_code_2_with_path_and_place(project, content, message):
    recorded(project, "a.json", a_measured("w", *STEADY))
    (project.root / "bad.json").write_text(content)

    done = project.run("compare", "a.json", "bad.json")

    assert done.code == ExitCode.USAGE
    assert done.err.splitlines()[-1].startswith("error: bad.json: ")
    assert message in done.err


# --- accept


def test_accept_writes_files_that_the_next_compare_agrees_with(project):
    recorded(project, "run.json", a_measured("w", *STEADY))

    assert project.run("compare", "run.json").code == ExitCode.NO_ANSWER
    done = project.run("accept", "run.json")
    again = project.run("accept", "run.json")

    assert done.code == again.code == ExitCode.OK
    assert "created" in done.out
    assert "step time: 1.00 ms" in done.out
    assert "kept" in again.out
    assert project.run("compare", "run.json").code == ExitCode.OK


def test_accept_refuses_what_must_not_become_a_baseline(project):
    recorded(project, "run.json", a_measured("w", *STEADY), id="1")
    recorded(project, "slow.json", a_measured("w", *SLOW), id="2")
    recorded(project, "failed.json", a_failed("w"))
    project.run("accept", "run.json")
    before = [p.read_bytes() for p in project.root.rglob("baselines/**/*.json")]

    worse = project.run("accept", "slow.json")

    assert worse.code == ExitCode.NO_ANSWER
    assert '--reason "…"' in worse.err
    assert project.run("accept", "failed.json").code == ExitCode.NO_ANSWER
    assert [p.read_bytes() for p in project.root.rglob("baselines/**/*.json")] == before

    done = project.run("accept", "slow.json", "--reason", "exact attention")
    assert done.code == ExitCode.OK
    assert "step time: 1.00 ms → 2.00 ms (+100 %)" in done.out


# --- check


def test_check_measures_judges_and_reports(project):
    project.workload("good").suite("good")

    first = project.run("check", "--processes", 2)
    accepted = project.run("accept", "run.json")
    second = project.run("check", "--processes", 2, "-o", "report.md")

    assert first.code == ExitCode.NO_ANSWER  # nothing to compare with
    assert "no baseline yet" in first.out
    assert accepted.code == ExitCode.OK
    assert second.code in {ExitCode.OK, ExitCode.REGRESSED}  # a noisy machine may say either
    assert second.out == ""
    assert (project.root / "report.md").read_text().startswith("### ")


def test_check_does_not_stay_green_when_a_workload_vanishes(project):
    project.workload("good").workload("gone").suite("good", "gone")
    project.run("check")
    project.run("accept", "run.json")
    project.suite("good")

    done = project.run("check", "--format", "json")

    missing = [r for r in json.loads(done.out)["rows"] if r["verdict"] == "missing"]
    assert [row["workload"] for row in missing] == ["gone"]
    assert done.code in {ExitCode.NO_ANSWER, ExitCode.REGRESSED}


@pytest.mark.parametrize("target", ["b.json", "./a.json", "baselines/x.json", "link.json"])
def test_a_report_never_overwrites_what_it_is_made_of(judged, target):
    (judged.root / "link.json").symlink_to("a.json")
    before = (judged.root / "a.json").read_bytes(), (judged.root / "b.json").read_bytes()

    done = judged.run("compare", "a.json", "b.json", "-o", target)

    assert done.code == ExitCode.USAGE
    assert "would overwrite" in done.err
    assert ((judged.root / "a.json").read_bytes(), (judged.root / "b.json").read_bytes()) == before


def test_check_keeps_run_and_report_apart(project):
    project.workload("good").suite("good")

    done = project.run("check", "-o", "run.json")

    assert done.code == ExitCode.USAGE
    assert not (project.root / "run.json").exists()


def test_a_folder_that_is_gone_is_named(project):
    done = in_shell(project, "mkdir gone; cd gone; rmdir ../gone; ci-perf list")

    assert done.returncode == ExitCode.USAGE
    assert "the current folder is gone" in done.stderr


# --- schema


def test_schema_prints_one_and_writes_all(project):
    done = project.run("schema", "run")

    assert json.loads(done.out)["title"] == "ci-perf run"
    assert project.run("schema", "--directory", "out/schema").code == ExitCode.OK
    assert len(list((project.root / "out/schema").iterdir())) == 4

"""What a closed, full or abandoned stream, or foreign text, does to a command: nothing."""

import os
import signal
import subprocess
import sys

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.processes import wait_for_children
from tests.runs import a_failed


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ci-perf compare a.json a.json >&-", ExitCode.OK),
        ("ci-perf compare a.json b.json >&-", ExitCode.REGRESSED),
        ("ci-perf compare a.json b.json <&- >&- 2>&-", ExitCode.REGRESSED),
        ("ci-perf compare a.json a.json 2>/dev/full", ExitCode.OK),
        ("ci-perf compare a.json a.json >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf compare a.json b.json >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf compare missing.json 2>&-", ExitCode.USAGE),
        ("ci-perf run --bogus 2>/dev/full", ExitCode.USAGE),
        ("ci-perf --help >/dev/full", ExitCode.NO_ANSWER),
        ("ci-perf compare a.json b.json | true; exit ${PIPESTATUS[0]}", ExitCode.REGRESSED),
        ("PYTHONIOENCODING=ascii ci-perf compare a.json a.json", ExitCode.OK),
    ],
)
def test_no_state_of_the_streams_changes_the_verdict(judged, line, code):
    done = judged.shell(line)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
    is_full = ">/dev/full" in line and "2>" not in line
    assert ("stdout: cannot be written: No space left" in done.stderr) == is_full


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_a_report_that_cannot_be_written_never_logs_the_exit_code_of_the_verdict(judged, form):
    """A limit of the size of files stands in for a full disk: the same error, on write."""
    line = f"ulimit -f 0; ci-perf compare a.json a.json --format {form} -o report"
    done = judged.shell(line)

    assert done.returncode == ExitCode.NO_ANSWER
    assert "report: cannot be written: File too large" in done.stderr
    assert "exit code: 0" not in done.stderr


@pytest.mark.parametrize("ending", ["2>&-", "2>&1 >/dev/null | head -1"])
def test_nobody_listening_costs_no_measurement(project, ending):
    project.workload("good").suite("good")

    project.shell(f"ci-perf run {ending}")

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
    wait_for_children(process.pid)

    process.send_signal(signal.SIGHUP)

    assert process.wait(timeout=60) == ExitCode.OK


def test_what_foreign_files_say_commands_neither_terminal_nor_ci(project):
    reason = "\x1b[31m::error::x ##[error]y \u202e"
    project.recorded("run.json", a_failed("w", reason))

    done = project.run("accept", "run.json")

    assert done.code == ExitCode.NO_ANSWER
    assert not set("\x1b\u202e") & set(done.err)
    assert "##[" not in done.err
    assert not any(line.lstrip().startswith("::") for line in done.err.splitlines())

"""What tests/conftest.py promises: interrupts reach children, and none is left."""

import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import wait_until
from tests.projects import GOOD, SLOW_STEP

ROOT = Path(__file__).parents[2]
INNER = """
import subprocess, sys
from pathlib import Path

def test_an_interrupt_reaches_a_child():
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == "True\\n"

def test_fails_and_leaves_a_process():
    child = subprocess.Popen(["sleep", "611"], start_new_session=True)
    Path(__file__).with_name("pid").write_text(str(child.pid))
    assert False
"""


def test_background_jobs_of_a_shell_are_tested_like_others(tmp_path):
    (tmp_path / "test_inner.py").write_text(INNER)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]

    done = subprocess.run(
        ["sh", "-c", f"trap '' INT; exec {shlex.join(pytest)}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )

    assert "1 failed, 1 passed" in done.stdout
    wait_until(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists())


def test_a_command_that_hangs_in_a_fork_is_ended_by_its_alarm(project, monkeypatch):
    """The handler of pytest-timeout would raise there, which not every wait hears."""
    at_once = signal.alarm
    monkeypatch.setattr(signal, "alarm", lambda _: at_once(1))
    project.workload("slow", GOOD + SLOW_STEP).suite("slow")

    assert project.run("run").code == -signal.SIGALRM

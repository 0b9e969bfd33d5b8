"""Small real projects on disk: a suite of workloads that need no torch, and the command line."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import click

from ci_perf.cli.main import cli, main
from ci_perf.gate import check  # noqa: F401  forks need not import it
from ci_perf.system import files
from tests.runs import a_run

QUICK = """
[protocol]
processes = 2
timeout_s = 20
warmup_min_s = 0.01
warmup_max_s = 0.05
timed_min_blocks = 3
timed_min_s = 0.02
timed_max_s = 0.1
block_min_s = 0.002
monitor_hz = 0
"""
SLOW_STEP = "import time\ndef step():\n    time.sleep(600)\n"
STEP = "def step():\n    sum(range(1000))\n"
GOOD = f'"""A good one."""\nfrom ci_perf.workload import Workload\n{STEP}'
BUILD = "def build(context):\n    return Workload(step=step)\n"

# A daemon in a session of its own, and a step that never ends; a file has both ids.
DAEMON = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "611"], start_new_session=True)
with open("daemon.new", "w") as note:
    note.write(f"{os.getpid()} {child.pid}")
os.rename("daemon.new", "daemon")
def step():
    time.sleep(600)
"""

# A step that takes as long as the product says: time that no busy machine makes shorter.
NAP = '''
"""Sleeps as long as the product says."""
import time
from ci_perf.workload import Workload
import product
def step():
    time.sleep(product.SECONDS)
'''
NAP_SETTINGS = """
[protocol]
processes = 2
timeout_s = 60
warmup_min_steps = 2
warmup_window = 2
warmup_min_s = 0.01
warmup_max_s = 0.05
timed_min_blocks = 3
timed_min_s = 0.02
timed_max_s = 0.1
block_min_s = 0.002
statistic = "min"
fingerprint_steps = 0
memory_steps = 1
phase_steps = 1
monitor_hz = 0
[limits]
step_time_s = { limit = 0.5 }
host_rss_peak_bytes = { gate = false }
"""
# What the product says, before and after.
# Of two lengths: Python takes what it has compiled of a file of the same second and size.
FAST, SLOW = "SECONDS = 0.003\n", "SECONDS = 0.0120\n"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def run_in_fork(root, arguments, environment):
    """Run a command in a fork of this process, which has imported it; return how it ended."""
    cli.get_command(click.Context(cli), arguments[0])  # imported once, for all forks
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with warnings.catch_warnings(action="ignore"):  # Python 3.12 warns of xdist's threads
            child = os.fork()
        if child == 0:
            code = 70
            try:
                code = _run_forked(root, arguments, environment, out, err)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


def _run_forked(root, arguments, environment, out, err):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout handles it in its own process
    signal.alarm(300)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    tempfile.tempdir = None  # TMPDIR may be another one
    os.chdir(root)
    os.environ.update(environment)
    for number, file in enumerate((open(os.devnull), out, err)):  # noqa: PTH123, SIM115  fork ends
        os.dup2(file.fileno(), number)
    sys.argv = ["ci-perf", *arguments]
    sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
    try:
        main()
    except SystemExit as end:
        return end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@dataclass(frozen=True)
class Project:
    """A folder with `workloads/`, in which commands are run as a user runs them."""

    root: Path

    def workload(self, name, body=GOOD, build=BUILD):
        """Write workloads/NAME.py."""
        path = self.root / "workloads" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(body) + build)
        return self

    def suite(self, *names, settings=QUICK, extra="", canaries=False, device="auto"):
        """Write workloads/suite.toml with these workloads, in this order."""
        head = f'[suites.smoke]\ncanaries = {str(canaries).lower()}\ndevice = "{device}"\n'
        entries = [f'[[suites.smoke.workloads]]\nworkload = "{name}"\n' for name in names]
        suites = [head, *entries] if entries else ["[suites]"]
        text = "\n".join([extra, settings, *suites])
        (self.root / "workloads").mkdir(exist_ok=True)
        (self.root / "workloads/suite.toml").write_text(text)
        return self

    def recorded(self, name, *workloads, **more):
        """Write a run file, as if it had been measured."""
        path = self.root / name
        files.write(path, a_run(*workloads, **more))
        return path

    def shell(self, line):
        """Run a line of bash in which `ci-perf` is the command."""
        define = f'ci-perf() {{ "{sys.executable}" -m ci_perf "$@"; }}'
        return subprocess.run(
            ["bash", "-c", f"{define}\n{line}"],
            cwd=self.root,
            env={**os.environ, **self.locks},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    @property
    def locks(self):
        """Tests run side by side, and must not wait for each other."""
        return {"CI_PERF_LOCK_DIR": str(self.root.parent / "locks")}

    def start(self, *arguments, **environment):
        """Start a command without waiting for it."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ci_perf", *map(str, arguments)],
            cwd=self.root,
            env={**os.environ, **self.locks, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, **environment):
        """Run a command to its end: in a fork, as a new Python imports for 0.7 s.

        Other modules have to be found by a new Python.
        """
        if "PYTHONPATH" not in environment:
            return run_in_fork(self.root, [*map(str, arguments)], {**self.locks, **environment})
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out, err)

    def accept_first(self, *workloads):
        """Measure what is checked out, and accept it as the first baseline."""
        for command in (
            ("run", *workloads, "-o", "../base.json"),
            ("accept", "../base.json", "--reason", "First baseline"),
        ):
            done = self.run(*command)
            assert done.code == 0, done.err

    def check_against_main(self, *more):
        """Return how it ended, and what it wrote of the run and of the comparison."""
        done = self.run(
            *("check", "--against", "main", "--comparison", "../comparison.json"),
            *("-o", "../run.json", *more),
        )
        written = (self.root.parent / name for name in ("run.json", "comparison.json"))
        return done, *(json.loads(it.read_text()) if it.exists() else {} for it in written)

    def run_on_terminal(self, *arguments, stream, **environment):
        """Run ci-perf with a terminal as its `stream`; return the exit code, and what it shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "ci_perf", *arguments],
            cwd=self.root,
            env={**os.environ, **self.locks, "COLUMNS": "100", **environment},
            stdin=subprocess.DEVNULL,
            stdout=theirs if stream == "stdout" else subprocess.DEVNULL,
            stderr=theirs if stream == "stderr" else subprocess.DEVNULL,
        )
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is gone: all has been read
            while chunk := os.read(ours, 4096):
                shown += chunk
        os.close(ours)
        return process.wait(timeout=60), shown

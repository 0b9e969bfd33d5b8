"""A small project being judged, from baseline to red mark. Measures nothing itself.

It types what a person would type, `git` and `ci-perf`, in a scratch repository: a baseline, a pull
request, a verdict, chapter by chapter.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import CannotWriteError, CiPerfError, ExitCode, UsageError
from ci_perf.model.comparison import Comparison
from ci_perf.system import files

SUITE = ("--suite", "smoke", "--device", "cpu")
MAIN, BRANCH = "main", "pull-request"
# A minute for each of the four workloads, and one more.
_AGAINST = ("--against", MAIN, "--budget", "5m")
RUN, REPORT, COMPARISON = "run.json", "report.md", "comparison.json"
_BASELINES = ("--baselines", "baselines")

# Who commits is said here, so that the demo needs no git configuration.
PROGRAMS = {
    "ci-perf": (sys.executable, "-m", "ci_perf"),
    "git": ("git", "-c", "user.name=Robin", "-c", "user.email=robin@tiny-vision.example"),
}
# Settings of the person or of a CI job that would make the demo play differently.
_FOREIGN = (
    "GIT_",
    "GITHUB_",
    "CI_PERF_ACCEPT_",
    "CI_PERF_CHECK_",
    "CI_PERF_COMPARE_",
    "CI_PERF_RUN_",
)
# Their own choice: how long to wait for a quiet machine changes no number.
_WAITS = {"CI_PERF_CHECK_WAIT", "CI_PERF_RUN_WAIT"}
_OURS = {
    # The baseline of the demo is gone with it: it may have been measured on a busy machine.
    "CI_PERF_ACCEPT_FORCE": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
# What a child prints is progress to us: stdout belongs to the report alone.
_STDERR = 2


def neutral(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out of an environment what would change how git or ci-perf behave."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _WAITS or not name.startswith(_FOREIGN)
    }
    return kept | _OURS


@dataclass(frozen=True, kw_only=True)
class Shell:
    """A shell in `folder`; `show` hears each command before it runs."""

    folder: Path
    show: Callable[[str], None]
    environment: Mapping[str, str]
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: PROGRAMS)
    # An interrupted `ci-perf` ends its own children first, and writes what is finished.
    grace_s: float = 20.0

    def run(self, program: str, *arguments: str) -> int:
        """Run one command to its end and return its exit code. Raises KeyboardInterrupt."""
        self.show(shlex.join((program, *arguments)))
        child = subprocess.Popen(
            [*self.programs[program], *arguments],
            cwd=self.folder,
            env=self.environment,
            start_new_session=True,  # Ctrl-C reaches us alone: we pass it on, once
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,
        )
        try:
            code = child.wait()
        except BaseException:
            _end(child, self.grace_s)
            raise
        if code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        return code

    def must(self, program: str, *arguments: str) -> None:
        """Run one command that has to succeed. Raises CiPerfError."""
        code = self.run(program, *arguments)
        if code != 0:
            raise CiPerfError(
                f"demo: `{shlex.join((program, *arguments))}`: expected exit code 0, found {code}; "
                "it says why above. `ci-perf demo --keep DIR` keeps the repository to look into"
            )


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    """Ask politely, wait, then end the whole group: no child outlives the demo."""
    child.send_signal(signal.SIGTERM)
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What came out: the report for people, the data behind it, the exit code of the job."""

    report: str
    comparison: Comparison
    exit_code: int


def require(
    *,
    which: Callable[[str], object | None],
    find_module: Callable[[str], object | None],
    in_containers: bool = False,
) -> None:
    """Look for what the demo cannot do without. Raises CiPerfError.

    What measures `in_containers` brings its own torch.
    """
    if which("git") is None:
        raise CiPerfError(
            "demo: expected git on the PATH, found none; install git and try again: the demo "
            "makes a repository of its own"
        )
    if not in_containers and find_module("torch") is None:
        raise CiPerfError(
            "demo: expected torch beside ci-perf, found none: the demo really measures; "
            "`pip install '.[measure]'` in a checkout of ci_perf brings it, or measure in "
            "containers that have it: `ci-perf demo --runner docker --image NAME@sha256:DIGEST`"
        )


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """Give a new folder: `keep`, or one that is removed however the demo ends.

    Raises UsageError when `keep` holds something already, CannotWriteError when it cannot be made.
    """
    if keep is not None:
        yield _made(keep)
        return
    with tempfile.TemporaryDirectory(prefix="ci-perf-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def play(
    example: Path, shell: Shell, chapter: Callable[[str], None], *, runner: tuple[str, ...] = ()
) -> Judged:
    """Play all chapters in the shell's folder. Raises CiPerfError when a command fails.

    `runner` says where is measured, in words of the command line; here, without any.
    """
    chapter("1/5 A small image project, in a repository of its own")
    _begin(example, shell)
    chapter("2/5 Measure it as it is, and commit the numbers as the baseline")
    _record(shell, runner)
    chapter("3/5 A pull request: three commits, as anybody might have written them")
    _change(shell)
    chapter("4/5 What the CI job does: measure again, and launch main beside what looks different")
    exit_code = _check(shell, runner)
    chapter("5/5 Did it find what was planted, and nothing else?")
    return Judged(
        report=files.read_text(shell.folder / REPORT),
        comparison=_compare(shell),
        exit_code=exit_code,
    )


def copy_example(example: Path, target: Path) -> None:
    """Copy the example project, without what Python left in it."""
    shutil.copytree(
        example, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )


def _begin(example: Path, shell: Shell) -> None:
    copy_example(example, shell.folder)
    # No templates: a person's hooks have no place here.
    shell.must("git", "init", "--quiet", "--template=", f"--initial-branch={MAIN}")
    shell.must("git", "add", ".")
    shell.must("git", "commit", "--quiet", "-m", "Begin tiny_vision")


def _record(shell: Shell, runner: tuple[str, ...]) -> None:
    shell.must("ci-perf", "run", *SUITE, *runner, "-o", RUN)
    shell.must("ci-perf", "accept", RUN, *_BASELINES, "--reason", "First baseline")
    shell.must("git", "add", "baselines")
    shell.must("git", "commit", "--quiet", "-m", "Accept the first baseline")


def _change(shell: Shell) -> None:
    patches = sorted(shell.folder.glob("changes/*.patch"))
    shell.must("git", "switch", "--quiet", "-c", BRANCH)
    shell.must("git", "am", *(str(patch.relative_to(shell.folder)) for patch in patches))
    shell.must("git", "diff", "--stat", f"{MAIN}...{BRANCH}")


def _check(shell: Shell, runner: tuple[str, ...]) -> int:
    """Judge the pull request; a red mark is an answer, and so is "no answer" with a report."""
    where = (*_BASELINES, *_AGAINST, *runner, "--run-output", RUN)
    code = shell.run("ci-perf", "check", *SUITE, *where, "-o", REPORT)
    if not (shell.folder / REPORT).is_file():
        raise CiPerfError(
            f"demo: `ci-perf check`: expected a report, found none and exit code {code}; it says "
            "why above"
        )
    return code


def _compare(shell: Shell) -> Comparison:
    """Ask for the same verdict again, as data."""
    shell.run("ci-perf", "compare", *_BASELINES, RUN, "--format", "json", "-o", COMPARISON)
    return files.read(shell.folder / COMPARISON, Comparison)


def _made(keep: Path) -> Path:
    if keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise UsageError(
            f"--keep {keep}: expected a folder that is empty or does not exist yet, found "
            "something there; choose another, or remove it"
        )
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"--keep {keep}: cannot be made: {error.strerror}") from None
    return keep.resolve()

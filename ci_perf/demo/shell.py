"""Types commands as a person would: shows each one, runs it, ends it when we are interrupted."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import CiPerfError, ExitCode

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
    kept = {name: value for name, value in environment.items() if not name.startswith(_FOREIGN)}
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

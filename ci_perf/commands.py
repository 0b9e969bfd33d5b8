"""Ask another program something, and hear its whole answer: Ctrl-C does not cut it short."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a program ended, and what it said; ``code`` is negative for a signal."""

    code: int
    out: str
    err: str


def ask(
    command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Answer:
    """Run a program to its end. Raises OSError: none such; TimeoutError: no end in time."""
    with _started(command, os.environ if environment is None else environment) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return Answer(code=process.returncode, out=out.strip(), err=err.strip())


@contextlib.contextmanager
def _started(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in a session of its own, and leave it ended. Raises OSError.

    Ctrl-C goes to our whole group, to which a child belongs until it has a session: one that came
    just then would end a `git worktree remove` before it has begun. So the program starts with
    these signals blocked, and stays so; we end it by another.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",  # a branch may be called in any encoding
            start_new_session=True,
        )
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    with process:
        try:
            # A signal that came during the start raises here, where the program is ended for it.
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield process
        except BaseException:
            process.kill()
            raise

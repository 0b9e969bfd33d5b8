"""The suite's own command that makes one side ready to be measured: it builds, it installs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ci_perf.errors import CiPerfError
from ci_perf.launch import child, scratch
from ci_perf.launch import environment as environments
from ci_perf.launch.child import Cookie, Ended

Side = Literal["base", "head"]

# By which the command knows for whom it works.
SIDE = "CI_PERF_SIDE"


def run(
    command: str,
    *,
    root: Path,
    side: Side,
    timeout_s: float,
    interrupted: Callable[[], bool],
) -> None:
    """Run a line of shell in `root`, once, in the environment of a child that is measured.

    What it starts ends with it. Raises CiPerfError for a failure, with its last output, and
    KeyboardInterrupt.
    """
    try:
        with scratch.folder() as folder:
            ended = child.run(
                ["/bin/sh", "-c", command],
                cwd=str(root),
                environment={**environments.of_child(os.environ, _processors()), SIDE: side},
                cookie=Cookie(variable=scratch.COOKIE, value=folder.path.name),
                timeout_s=timeout_s,
                interrupted=interrupted,
            )
    except OSError as error:
        raise CiPerfError(
            f"setup of the {side} in {root}: cannot be started: {error.strerror}"
        ) from None
    if ended.timed_out or ended.code != 0:
        raise CiPerfError(
            f"setup of the {side} in {root}: expected `{command}` to end with code 0 within "
            f"{timeout_s:g} s, found {_found(ended)}; it is `setup` in suite.toml",
            output=ended.tail,
        )


def _found(ended: Ended) -> str:
    if ended.timed_out:
        return "it still at work"
    if ended.code < 0:
        return f"it killed by signal {-ended.code}"
    return f"code {ended.code}"


def _processors() -> int:
    """Return how many processors may build; nothing is measured meanwhile."""
    return len(os.sched_getaffinity(0))

"""Run the suite's `setup` command, which builds or installs one side before it is measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ci_perf.errors import CiPerfError
from ci_perf.launch import Launcher
from ci_perf.system.child import Ended

Side = Literal["base", "head"]

# Tells the command which side it prepares.
SIDE = "CI_PERF_SIDE"


def run(
    command: str,
    launcher: Launcher,
    *,
    root: Path,
    side: Side,
    timeout_s: float,
    interrupted: Callable[[], bool],
) -> None:
    """Run a line of shell in `root` once, as the measured code will run.

    Its processes end with it. Raises CiPerfError for a failure, with its last output, and
    KeyboardInterrupt.
    """
    try:
        ended = launcher.shell(
            command,
            root=root,
            variables={SIDE: side},
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
            f"{timeout_s:g} s, found {_outcome(ended)}; it is `setup` in suite.toml",
            output=ended.tail,
        )


def _outcome(ended: Ended) -> str:
    if ended.timed_out:
        return "it still at work"
    if ended.code < 0:
        return f"it killed by signal {-ended.code}"
    return f"code {ended.code}"

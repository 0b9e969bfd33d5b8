"""How a container stopped: never begun, out of memory, or by the worker's own doing. Pure."""

import re
from dataclasses import dataclass

from ci_perf.launch.containers import failures
from ci_perf.model.container import EngineName

# As shells and engines tell the end by a signal: 137 is SIGKILL.
_SIGNALLED = 128
_KILLED = _SIGNALLED + 9

# What the engines' init, or without one runc, says when it cannot start the program; nothing else
# has spoken then. It ends with 1, 126 or 127, as a workload may.
_INIT = re.compile(
    r"(\[FATAL tini \(\d+\)\] |ERROR \(catatonit:\d+\): failed to |exec \S+: exec format error)"
    r"[^\n]*(\n(ERROR \(catatonit:\d+\): )[^\n]*)?\s*"
)

# What Python says before the first line of ours runs, where the image does not fit: before 3.11 it
# does not know -P; else something that every worker imports is not there.
_TOO_OLD = re.compile(r"unknown option:? -P\nusage: ", re.IGNORECASE)
_LACKING = re.compile(
    r"Traceback [^\n]*\n  File \"<frozen runpy>\".*"
    r"\nModuleNotFoundError: No module named '(?P<package>[\w.]+)'\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How a container stopped: the State of `inspect`, and what was seen from outside.

    ``began`` is false in State.Status "created": Podman, which could not start one, then tells the
    code 0 and no error. ``tail`` is what `start --attach` has written. ``kernel_killed`` says
    whether the kernel of the host has ended a process for want of memory meanwhile.
    """

    began: bool
    code: int
    oom_killed: bool
    error: str
    tail: str
    kernel_killed: bool
    ended_by_us: bool


def never_began(engine: EngineName, stopped: Stopped) -> str | None:
    """Say why the worker was never started, and what to do; `None` if it was."""
    if stopped.began and not stopped.error and not _INIT.fullmatch(stopped.tail):
        return _unfit(stopped.tail)
    return failures.explained(engine, "start", stopped.error or stopped.tail)


def out_of_memory(engine: EngineName, stopped: Stopped) -> str | None:
    """Say that memory ran out, to be put behind how it ended; `None` if it did not.

    Podman with runc does not tell; then a process that was killed, and not by us, while the
    kernel killed somebody for want of memory, most likely is this one.
    """
    if stopped.oom_killed:
        return "; the container's memory ran out (`memory` in [container], or the host's)"
    if engine == "podman" and _was_killed(stopped) and stopped.kernel_killed:
        return (
            "; the container's memory ran out, most likely (`memory` in [container], or the "
            "host's): the kernel has killed somebody for it meanwhile"
        )
    return None


def signal_code(code: int) -> int:
    """Return the code as a child process has it: minus the signal, where it was one."""
    return _SIGNALLED - code if _SIGNALLED < code < _SIGNALLED + 65 else code


def _unfit(tail: str) -> str | None:
    """Say what the image lacks, if it is that."""
    if _TOO_OLD.match(tail):
        return (
            "the image: expected Python 3.11 or newer as `python3`, found an older one; use "
            "another image (docs/containers.md)"
        )
    if lacking := _LACKING.fullmatch(tail):
        return (
            f"the image: expected the package {lacking['package']} for its `python3`, found none; "
            "install what workers import: torch, msgspec, numpy, nvidia-ml-py (docs/containers.md)"
        )
    return None


def _was_killed(stopped: Stopped) -> bool:
    return stopped.code == _KILLED and not stopped.ended_by_us

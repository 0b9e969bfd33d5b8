"""One container from create to rm: how it ended, and nothing of it is left behind."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from ci_perf.errors import EngineError
from ci_perf.features.containers.launch import engine_errors, stale
from ci_perf.features.containers.launch.arguments import NAME_VARIABLE
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.launch import exit_status
from ci_perf.launch.exit_status import MemoryKills
from ci_perf.launch.run_task import Finished
from ci_perf.launch.turn_scheduler import Slot
from ci_perf.model.container import EngineName
from ci_perf.system import child, processes
from ci_perf.system.child import Child, Cookie, Ended

# The engine's program and its children bear this variable, as every child of ours does.
_COOKIE = "CI_PERF_CONTAINER"

# Its process id here, and in its own namespace: "NSpid:\t4711\t1".
_INIT = re.compile(r"^NSpid:\t.*\t1$", re.MULTILINE)

# What `inspect` says of a container that has ended, or never began.
_OVER = frozenset({"created", "configured", "initialized", "exited", "stopped", "dead"})
_TRIES = 10
_MOMENT_S = 0.1

# As shells and engines tell the end by a signal: 137 is SIGKILL.
_SIGNALLED = 128
_KILLED = _SIGNALLED + 9

# What the engines' init, or without one runc, says when it cannot start the program; nothing else
# has spoken then. It ends with 1, 126 or 127, as a workload may.
_INIT_FAILURE = re.compile(
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


class ContainerState(msgspec.Struct, frozen=True):
    """How a container stopped: the State of `inspect`, as far as we ask.

    Of one that it could not start, podman tells the code 0 and no error, and that it is "created".
    """

    status: str = msgspec.field(name="Status")
    exit_code: int = msgspec.field(name="ExitCode")
    oom_killed: bool = msgspec.field(name="OOMKilled", default=False)
    error: str = msgspec.field(name="Error", default="")


def run(
    engine: Engine,
    name: str,
    create: Sequence[str],
    *,
    timeout_s: float,
    interrupted: Callable[[], bool],
    slot: Slot | None = None,
) -> Finished:
    """Run a container called `name`, which `create` makes, to its end or its time limit.

    Raises EngineError if it did not begin or cannot be removed; KeyboardInterrupt.
    """
    count = exit_status.kill_count_of_host()
    try:
        engine.must(*create)
        ended = child.run(
            engine.command("start", "--attach", name),
            cwd="/",
            environment=engine.environment,
            cookie=Cookie(variable=_COOKIE, value=name),
            timeout_s=timeout_s,
            interrupted=interrupted,
            slot=None if slot is None else _ContainerSlot(slot, ContainerProcesses(engine, name)),
        )
        state = _ask_state(engine, name, ended)
        has_killed = count is not None and count.read().has_risen
    finally:
        stale.remove(engine, name)
    if refused := never_began(engine.name, state, ended.tail):
        raise EngineError(refused, output=ended.tail)
    words = out_of_memory(engine.name, state, ended, has_killed=has_killed)
    return Finished(
        ended=replace(ended, code=signal_code(state.exit_code)),
        kills=MemoryKills(has_risen=bool(words), words=words),
    )


@dataclass(slots=True)
class ContainerProcesses:
    """The processes of a container that runs, as the host numbers them."""

    engine: Engine
    name: str
    _init: int = field(default=0, init=False)
    _worker: int = field(default=0, init=False)

    def signal(self, what: signal.Signals) -> None:
        """See turn_scheduler.Resident: to all but the init, which does no work. Raises OSError."""
        first = self._first()
        if first and not processes.signal_below(first, what, _send):
            raise OSError(
                f"container {self.name}: expected its processes to stop, found that they start "
                "others all the time"
            )

    def pid(self) -> int:
        """See turn_scheduler.Resident."""
        if not self._is_init(self._init):
            self._worker = 0
        if not self._worker and (first := self._first()):
            # Before its first turn the init has started nothing else.
            started = [each.pid for each in processes.below(first) if each.parent == first]
            self._worker = min(started, default=0)
        return self._worker

    def _first(self) -> int:
        """Return the process id of its init; 0 once it has ended. Raises OSError if it is not seen.

        The id that the engine tells has a meaning for the engine only: its daemon may be in another
        namespace of process ids, and here the same id may be that of another process.
        """
        if not self._is_init(self._init):
            bearers = processes.find_carrying(NAME_VARIABLE, self.name)
            self._init = next(filter(self._is_init, bearers), 0)
        if not self._init and self._is_running():
            raise OSError(
                f"container {self.name}: expected to see its processes from here, to have them "
                "wait for their turn, found none; run ci-perf on the host of the containers, not "
                "in one of them"
            )
        return self._init

    def _is_init(self, pid: int) -> bool:
        """Whether a process is the first of its namespace, and belongs to this container."""
        with contextlib.suppress(OSError):
            marks = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            status = Path(f"/proc/{pid}/status").read_text()
            return f"{NAME_VARIABLE}={self.name}".encode() in marks and bool(_INIT.search(status))
        return False

    def _is_running(self) -> bool:
        try:
            asked = self.engine.ask("inspect", "--format", "{{.State.Running}}", self.name)
        except EngineError as error:
            raise OSError(str(error)) from None
        return asked.out == "true"


@dataclass(frozen=True, slots=True)
class _ContainerSlot:
    """A slot whose turns a container takes, and not the child that waits for it."""

    slot: Slot
    processes: ContainerProcesses

    def started(self, _child: Child) -> None:
        self.slot.assign(self.processes)

    def clock(self) -> float:
        return self.slot.clock()


def _send(pid: int, what: signal.Signals) -> None:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return
    except PermissionError:
        raise OSError(
            f"process {pid} of a container: no permission to stop it, because it belongs to "
            "another user; the engine maps users to other numbers (userns-remap)"
        ) from None


def _ask_state(engine: Engine, name: str, ended: Ended) -> ContainerState:
    """Ask how a container stopped. Raises EngineError."""
    tries = 0
    while True:
        said = engine.must("inspect", "--format", "{{json .State}}", name)
        try:
            state = msgspec.json.decode(said, type=ContainerState)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise EngineError(
                f"`{engine.name} inspect {name}`: expected its state as JSON, found {error}"
            ) from None
        if state.status in _OVER or ended.timed_out:
            return state
        if tries == _TRIES:
            raise EngineError(
                f"container {name}: expected to have ended, found it {state.status}: the program "
                f"that waited for it (`{engine.name} start`) has ended before"
            )
        tries += 1
        time.sleep(_MOMENT_S)  # `start` may return before the engine has noted the end


def never_began(engine: EngineName, state: ContainerState, tail: str) -> str:
    """Say why the worker was never started, and what to do; "" if it was.

    `tail` is what `start --attach` has written.
    """
    has_begun = state.status != "created" and not state.error
    if has_begun and not _INIT_FAILURE.fullmatch(tail):
        return _unfit(tail)
    return engine_errors.explain(engine, "start", state.error or tail)


def _unfit(tail: str) -> str:
    """Say what the image lacks; "" for nothing."""
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
    return ""


def out_of_memory(
    engine: EngineName, state: ContainerState, ended: Ended, *, has_killed: bool
) -> str:
    """Say that memory ran out, to be put behind how it ended; "" if it did not.

    Podman with runc does not say so. If the container was killed, and not by us, while the kernel
    killed a process for want of memory (`has_killed`), that most likely was one of the container.
    """
    if state.oom_killed:
        return "; the container's memory ran out (`memory` in [container], or the host's)"
    was_killed = state.exit_code == _KILLED and not ended.timed_out
    if engine == "podman" and was_killed and has_killed:
        return (
            "; the container's memory ran out, most likely (`memory` in [container], or the "
            "host's): the kernel has killed somebody for it meanwhile"
        )
    return ""


def signal_code(code: int) -> int:
    """Return the code as a child process has it: minus the signal, where it was one."""
    return _SIGNALLED - code if _SIGNALLED < code < _SIGNALLED + 65 else code

"""Remove containers that a killed ci-perf has left: the next start knows them by their labels.

A container names its owner: a process, the start of that process, and the boot and the namespace
of process ids in which these are valid. Containers of another namespace are left alone: from here
nobody can tell whether their owner lives.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ci_perf.features.containers.launch.arguments import OWNER_LABEL
from ci_perf.features.containers.launch.engine import Engine

_PROC = Path("/proc")

_TRIES = 10
_MOMENT_S = 0.2

# A container and its owner, by the template of `ps`: the engines have different words for a label.
_WHOSE = {
    "docker": f'{{{{.ID}}}} {{{{.Names}}}} {{{{.Label "{OWNER_LABEL}"}}}}',
    "podman": f'{{{{.ID}}}} {{{{.Names}}}} {{{{index .Labels "{OWNER_LABEL}"}}}}',
}
# An image may bear our labels and pass them on to its containers, but it cannot name them.
_NAME = re.compile(r"ci-perf-[0-9a-z]+-[0-9]+")


def owner(pid: int | None = None, proc: Path = _PROC) -> str:
    """Name a process of this host, ours by default, so that no later one has the same name."""
    pid = os.getpid() if pid is None else pid
    return f"{_boot(proc)}.{_namespace(proc)}.{pid}.{_start(pid, proc)}"


def sweep(engine: Engine, say: Callable[[str], None], proc: Path = _PROC) -> None:
    """Remove the containers whose owner is gone. Raises EngineError: no answer."""
    ours = ("--filter", f"label={OWNER_LABEL}", "--format", _WHOSE[engine.name])
    listed = engine.must("ps", "--all", "--no-trunc", *ours)
    for line in listed.splitlines():
        identity, name, whose = [*line.strip().strip("'\"").split(maxsplit=2), "", ""][:3]
        if _NAME.fullmatch(name) and is_gone(whose, proc):
            say(f"removing container {identity[:12]}, which a ci-perf that was killed has left")
            remove(engine, identity)


def remove(engine: Engine, name: str) -> None:
    """Remove a container, running or not, with what only it uses. Raises EngineError.

    A container that is just being started can be neither ended nor removed; a moment later it can.
    """
    for _ in range(_TRIES):
        answer = engine.ask("rm", "--force", "--volumes", name)
        if answer.code == 0 or "no such container" in answer.err.lower():
            return
        time.sleep(_MOMENT_S)
    engine.must("rm", "--force", "--volumes", name)


def is_gone(whose: str, proc: Path = _PROC) -> bool:
    """Whether the owner of this name is known to be gone."""
    boot, _, rest = whose.partition(".")
    namespace, _, rest = rest.partition(".")
    pid, _, start = rest.partition(".")
    if not (pid.isdecimal() and start.isdecimal()):
        return False
    if boot != _boot(proc):
        return True
    if namespace != _namespace(proc):
        return False
    try:
        return _start(int(pid), proc) != int(start)
    except OSError:  # it is gone, or /proc hides it from us
        try:
            os.kill(int(pid), 0)
        except OSError as error:
            return isinstance(error, ProcessLookupError)
        return False


def _boot(proc: Path) -> str:
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def _namespace(proc: Path) -> str:
    """Return the number of our namespace of process ids: "pid:[4026531836]"."""
    return str((proc / "self/ns/pid").readlink()).strip("pid:[]")


def _start(pid: int, proc: Path) -> int:
    """Return when a process started, in ticks since the boot. Raises OSError: it is not seen."""
    stat = (proc / str(pid) / "stat").read_text()
    # "pid (name) state parent ...": the name may hold anything; the start is the 22nd.
    state, *rest = stat.rpartition(")")[2].split()
    return 0 if state == "Z" else int(rest[18])  # a zombie is gone: nobody has fetched its code yet

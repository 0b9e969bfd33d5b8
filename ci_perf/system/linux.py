"""What only Linux has: requests to its kernel, and what it says under /proc. Elsewhere: nothing."""

import contextlib
import ctypes
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

# linux/prctl.h
_SET_PDEATHSIG = 1
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

# Longer than the name of any processor or image; a report has to show it.
_MAX_CHARS = 200


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent dies, however that dies.

    `parent` is the id of the parent: the kernel does not notice one that has died already.
    """
    if _prctl(_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def forbid_inspection() -> None:
    """Keep processes of the same user from reading this one: environment, memory, open files.

    `/proc/PID/environ` keeps what a process was started with, whatever its children are not given.
    A program that this process executes can be read again. Root can read everything (prctl(2)).
    """
    _prctl(_SET_DUMPABLE, 0)


@contextlib.contextmanager
def adopt_orphans() -> Iterator[None]:
    """Within, a descendant whose parent dies becomes our child instead of the system's."""
    before = ctypes.c_int(0)
    _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before))
    _prctl(_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_SET_CHILD_SUBREAPER, before.value)


def _prctl(option: int, argument: object) -> bool:
    """Whether the kernel has accepted the request."""
    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (AttributeError, OSError):  # not Linux
        return False


def rss_peak_bytes(proc: Path = PROC) -> int:
    """Return the largest resident set of this process so far.

    VmHWM counts this program only; getrusage's ru_maxrss, used where /proc is absent, also
    remembers the parent's size from before exec.
    """
    text = read_or_nothing(proc / "self/status")
    if match := re.search(r"^VmHWM:\s+(\d+) kB", text, re.MULTILINE):
        return int(match[1]) * 1024
    return rss_bytes(resource.getrusage(resource.RUSAGE_SELF))


def rss_bytes(usage: resource.struct_rusage) -> int:
    """Return the largest resident set of one process of these."""
    return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024


def address_space_peak_bytes(proc: Path = PROC) -> int | None:
    """Return the largest address space of this process so far; `None` if unknown."""
    text = read_or_nothing(proc / "self/status")
    match = re.search(r"^VmPeak:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def read_or_nothing(path: Path) -> str:
    """Return what the kernel says in a file; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def find_control_groups(
    controller: str, process: Path, cgroups: Path
) -> Iterator[tuple[Path, str, bool]]:
    """Yield where groups with a controller are mounted, the path of ours, and if it is version 2.

    `process` is a folder of /proc: "0::/path" is version 2 there, "4:cpu,memory:/path" version 1.
    """
    for line in read_or_nothing(process / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield cgroups, path, True
        elif controller in controllers.split(","):
            yield cgroups / controller, path, False


def cpu_pressure(proc: Path = PROC) -> float | None:
    """Return the share of the last 10 s in which some task waited for a CPU; `None` if unknown."""
    return _pressure(proc, "cpu")


def memory_pressure(proc: Path = PROC) -> float | None:
    """Return the share of the last 10 s in which some task waited for memory, likewise."""
    return _pressure(proc, "memory")


def _pressure(proc: Path, resource: str) -> float | None:
    match = re.search(r"some avg10=([\d.]+)", read_or_nothing(proc / "pressure" / resource))
    return float(match[1]) / 100 if match else None


def name_hash() -> str:
    """Return a hash that tells hosts apart without publishing their names.

    CI_PERF_NODE names the host where its own name says nothing, such as in a pod.
    """
    import hashlib  # late: `ci-perf --help` needs none

    name = os.environ.get("CI_PERF_NODE") or os.uname().nodename
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:12]


def short(text: str) -> str:
    """Fit what the host or a program says into a document: some 200 characters of Unicode."""
    whole = text.encode(errors="replace").decode()
    return whole if len(whole) <= _MAX_CHARS else whole[: _MAX_CHARS - 1] + "…"


def name_signal(code: int) -> str:
    """Return the name of the signal that ended a process with a negative exit code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def cpu_model(proc: Path = PROC) -> str:
    """Return the model name that the kernel gives."""
    import platform

    text = read_or_nothing(proc / "cpuinfo")
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return short(match[1].strip() if match else platform.processor() or platform.machine())


def memory_total_bytes(proc: Path = PROC) -> int:
    """Return the memory of the host, 0 when the kernel does not say."""
    text = read_or_nothing(proc / "meminfo")
    match = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0

"""What Linux says under /proc: memory of this process, pressure, processor, host memory."""

import hashlib
import re
import resource
import socket
import sys
from pathlib import Path

PROC = Path("/proc")

# Longer than the name of any processor or image; a report has to show it.
_MAX_CHARS = 200


def rss_peak_bytes(proc: Path = PROC) -> int:
    """Return the largest resident set of this process so far.

    VmHWM counts this program only; getrusage's ru_maxrss, used where /proc is absent, also
    remembers the parent's size from before exec.
    """
    try:
        match = re.search(r"^VmHWM:\s+(\d+) kB", (proc / "self/status").read_text(), re.MULTILINE)
    except OSError:
        match = None
    if match:
        return int(match[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def address_space_peak_bytes(proc: Path = PROC) -> int | None:
    """Return the largest address space of this process so far; `None` if unknown."""
    try:
        match = re.search(r"^VmPeak:\s+(\d+) kB", (proc / "self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def cpu_pressure(proc: Path = PROC) -> float | None:
    """Return the share of the last 10 s in which some task waited for a CPU; `None` if unknown."""
    return _pressure(proc, "cpu")


def memory_pressure(proc: Path = PROC) -> float | None:
    """Return the share of the last 10 s in which some task waited for memory, likewise."""
    return _pressure(proc, "memory")


def _pressure(proc: Path, resource: str) -> float | None:
    try:
        match = re.search(r"some avg10=([\d.]+)", (proc / "pressure" / resource).read_text())
    except OSError:
        return None
    return float(match[1]) / 100 if match else None


def name_hash() -> str:
    """Return a hash that tells hosts apart without publishing their names."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


def short(text: str) -> str:
    """Fit what the host says into a document: some 200 characters of Unicode."""
    whole = text.encode(errors="replace").decode()
    return whole if len(whole) <= _MAX_CHARS else whole[: _MAX_CHARS - 1] + "…"


def cpu_model(proc: Path = PROC) -> str:
    """Return the model name that the kernel gives."""
    import platform

    try:
        text = (proc / "cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return short(match[1].strip() if match else platform.processor() or platform.machine())


def memory_total_bytes(proc: Path = PROC) -> int:
    """Return the memory of the host, 0 when the kernel does not say."""
    try:
        match = re.search(r"^MemTotal:\s+(\d+) kB", (proc / "meminfo").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) * 1024 if match else 0

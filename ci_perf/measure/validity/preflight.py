"""Whether this host can be trusted, asked before we load it ourselves."""

import shutil
import tempfile
from pathlib import Path

from ci_perf.measure import host
from ci_perf.model.run import Reason, Status, Validity

# With more than this share of time lost to other programs before we start, times are doubtful.
BUSY = 0.20
# A worker's files and torch's caches need some room.
MIN_FREE_BYTES = 200 * 2**20

INTERRUPTED = Reason(
    code="interrupted",
    status=Status.INVALID,
    detail="the run was interrupted before every process was measured",
)


def check(*, proc: Path = host.PROC, scratch: Path | None = None) -> tuple[Reason, ...]:
    """Return what speaks against this host; nothing when it is quiet and has room."""
    scratch = scratch or Path(tempfile.gettempdir())
    return (*_pressure(proc), *_disk(scratch, shutil.disk_usage(scratch).free))


def validity(reasons: tuple[Reason, ...]) -> Validity:
    """Let the worst reason decide."""
    order = list(Status)
    worst = max((reason.status for reason in reasons), key=order.index, default=Status.VALID)
    return Validity(status=worst, reasons=reasons)


def _pressure(proc: Path) -> tuple[Reason, ...]:
    pressure = host.cpu_pressure(proc)
    if pressure is None or pressure <= BUSY:
        return ()
    detail = f"tasks waited for a CPU {pressure:.0%} of the 10 s before the run"
    return (Reason(code="host_pressure", status=Status.DEGRADED, detail=detail),)


def _disk(scratch: Path, free: int) -> tuple[Reason, ...]:
    if free >= MIN_FREE_BYTES:
        return ()
    detail = f"{scratch}: expected {MIN_FREE_BYTES >> 20} MiB free, found {free >> 20} MiB"
    return (Reason(code="low_disk", status=Status.INVALID, detail=detail),)

"""What a person reads when measuring has ended."""

from pathlib import Path

from ci_perf.baselines import accept
from ci_perf.measuring import distrust
from ci_perf.model.run import Run
from ci_perf.model.validity import Reason, Status

_CONTAINER_LACKS = (
    "; a container lacks network, variables of the host, and the right to write but in /tmp, "
    "/cache, /checkpoints"
)


def is_interrupted(run: Run) -> bool:
    """Whether a person or a CI ended this run early."""
    return distrust.INTERRUPTED in run.validity.reasons


def text(run: Run, run_file: Path | None) -> str:
    """Say how measuring went, and what speaks against the machine."""
    done, total = len(run.measured), len(run.measured) + len(run.failed)
    lines = [f"{done} of {total} workloads measured in {run.duration_s:.0f} s"] if total else []
    if run.same:
        names = "workload runs" if len(run.same) == 1 else "workloads run"
        lines.append(f"{len(run.same)} {names} the same program on both sides: not launched")
    lines += _against(run.validity.reasons)
    if pressure := accept.heavy_pressure(run):
        lines.append(f"`ci-perf accept` would refuse these numbers as a baseline: {pressure}")
    if run.failed and not is_interrupted(run):
        image = run.environment.image
        runner = f" --runner {image.engine}" if image else ""
        lines.append(
            f"next: see the reasons above; `ci-perf doctor{runner}` says what a machine lacks"
            + (_CONTAINER_LACKS if image else "")
        )
    if run_file is not None:
        lines.append(f"run: {run_file}")
    return "\n".join(lines)


def _against(reasons: tuple[Reason, ...]) -> list[str]:
    """Say what speaks against the machine, in one line per code: a bad one is bad all the time."""
    by_code: dict[tuple[Status, str], list[Reason]] = {}
    for reason in reasons:
        by_code.setdefault((reason.status, reason.code), []).append(reason)
    lines = []
    for (status, code), (first, *others) in by_code.items():
        where = f"{first.workload}: " if first.workload else ""
        likewise = f"; likewise {', '.join(each.workload for each in others)}" if others else ""
        lines.append(f"{status.value}: {code}: {where}{first.detail}{likewise}")
    return lines

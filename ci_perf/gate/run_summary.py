"""What a person reads when measuring has ended."""

from pathlib import Path

from ci_perf.baselines import accept
from ci_perf.measuring import distrust
from ci_perf.model.run import Run
from ci_perf.model.validity import Reason, Status


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
        lines.append(f"next: see the reasons above; {_where_to_look(run)}")
    if run_file is not None:
        lines.append(f"run: {run_file}")
    return "\n".join(lines)


def _where_to_look(run: Run) -> str:
    image = run.environment.image
    if image is None:
        return "`ci-perf doctor` says what a machine lacks"
    return (
        f"`ci-perf doctor --runner {image.engine}` says what a machine lacks; a container lacks "
        "network, variables of the host, and the right to write but in /tmp, /cache, /checkpoints"
    )


def _against(reasons: tuple[Reason, ...]) -> list[str]:
    """Say what speaks against the machine, in one line per code: a bad one is bad all the time."""
    by_code: dict[tuple[Status, str], list[Reason]] = {}
    for reason in reasons:
        by_code.setdefault((reason.status, reason.code), []).append(reason)
    return [
        f"{status.value}: {code}: {_where(alike[0])}{alike[0].detail}{_and_others(alike[1:])}"
        for (status, code), alike in by_code.items()
    ]


def _where(reason: Reason) -> str:
    return f"{reason.workload}: " if reason.workload else ""


def _and_others(reasons: list[Reason]) -> str:
    names = [reason.workload for reason in reasons]
    return f"; likewise {', '.join(names)}" if names else ""

"""Whether the gate was rehearsed on this machine, and as it is now."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.features.doctor.findings import find
from ci_perf.model.environment import CpuMachine, Machine
from ci_perf.model.facts import Finding, MachineFacts, NvmlAnswer, TorchBuild
from ci_perf.model.rehearsed import Rehearsed
from ci_perf.system import files


def read_all(baselines: Path, notify: Notify) -> Iterator[Rehearsed]:
    """Yield what was rehearsed on any machine; what cannot be read is told."""
    for file in sorted(baselines.glob(f"*/{layout.REHEARSED}")):
        try:
            yield files.read(file, Rehearsed)
        except InvalidFileError as error:
            notify(f"note: {error}")


def explain(facts: MachineFacts, every: Iterable[Rehearsed]) -> Finding:
    """Say when the gate was last rehearsed here, and what has changed since."""
    here = [
        suite.provenance
        for rehearsed in every
        if _is_here(rehearsed.machine, facts)
        for suite in rehearsed.suites.values()
    ]
    if not here:
        return find("never_rehearsed")
    last = max(here, key=lambda each: each.recorded_at)
    nvml = facts.graphics.nvml
    torch = facts.torch.version if isinstance(facts.torch, TorchBuild) else "none"
    driver = nvml.driver if isinstance(nvml, NvmlAnswer) else None
    changes = ", ".join(
        f"{name} {before} → {now}"
        for name, before, now in (
            ("torch", last.soft.torch, torch),
            ("driver", last.soft.driver or "none", driver or "none"),
        )
        if before != now
    )
    day = last.recorded_at[:10]
    if changes:
        return find("rehearsed_otherwise", day=day, changes=changes)
    return find("rehearsed", day=day)


def _is_here(machine: Machine, facts: MachineFacts) -> bool:
    if isinstance(machine, CpuMachine):
        of_host = (facts.host.cpu_model, facts.host.logical_cores)
        return (machine.cpu_model, machine.logical_cores) == of_host
    nvml = facts.graphics.nvml
    gpus = nvml.gpus if isinstance(nvml, NvmlAnswer) else ()
    return machine.gpu_model in {gpu.name for gpu in gpus}

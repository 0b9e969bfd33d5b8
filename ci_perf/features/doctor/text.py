"""A diagnosis for a person: what can be measured, the machine in a few lines, then the findings."""

import io

from rich.console import Console
from rich.text import Text

from ci_perf.features.doctor.diagnosis import DeviceKind, Diagnosis
from ci_perf.model.facts import (
    Containers,
    DeepOutcome,
    Graphics,
    Host,
    InstalledGpu,
    Level,
    MachineFacts,
    NvmlAnswer,
    TorchBuild,
)

GIB = 2**30

_STYLES = {
    Level.PROBLEM: "bold red",
    Level.WARNING: "yellow",
    Level.OK: "green",
    DeepOutcome.FAILED: "bold red",
    DeepOutcome.SKIPPED: "yellow",
    DeepOutcome.PASSED: "green",
}
_LABEL_WIDTH = max(len(level.value) for level in Level) + 2


def render(diagnosis: Diagnosis, *, colour: bool) -> str:
    """Lay out a diagnosis; long lines are left to the reader's window."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=colour, highlight=False, soft_wrap=True)
    console.print(Text(_headline(diagnosis), style="bold"))
    console.print()
    for label, words in _machine(diagnosis.facts):
        console.print(Text(f"{label:<{_LABEL_WIDTH}}{words}"))
    console.print()
    for finding in diagnosis.findings:
        console.print(_entry(finding.level, finding.what, finding.code, finding.next_step))
    for check in diagnosis.deep:
        console.print(_entry(check.outcome, check.what, check.name, check.next_step))
    return stream.getvalue()


def _headline(diagnosis: Diagnosis) -> str:
    where = (
        "on this machine" if diagnosis.facts.containers is None else "in containers on this machine"
    )
    if not diagnosis.can_measure:
        return f"Nothing can be measured {where}."
    if DeviceKind.CUDA in diagnosis.can_measure:
        return f"CPU and GPU workloads can be measured {where}."
    return f"CPU workloads can be measured {where}, GPU workloads cannot."


def _entry(label: Level | DeepOutcome, what: str, name: str, next_step: str) -> Text:
    text = Text(f"{label.value:<{_LABEL_WIDTH}}", style=_STYLES[label])
    text.append(f"{what} [{name}]", style="not bold default")
    if next_step:
        text.append(f"\n{'':<{_LABEL_WIDTH}}next: {next_step}", style="not bold default")
    return text


def _machine(facts: MachineFacts) -> list[tuple[str, str]]:
    memory = facts.host.memory_bytes
    return [
        ("system", _system(facts.host)),
        ("cpu", _cpu(facts.host)),
        ("memory", f"{memory / GIB:.1f} GiB" if memory else "unknown"),
        ("gpu", _gpus(facts.graphics)),
        ("driver", _driver(facts.graphics)),
        *_within(facts.containers),
        *([("torch", _torch(facts.torch))] if isinstance(facts.torch, TorchBuild) else []),
        ("python", facts.programs.python),
    ]


def _within(containers: Containers | None) -> list[tuple[str, str]]:
    if containers is None:
        return []
    version = containers.version or "which does not answer"
    return [
        ("engine", f"{containers.engine}, {version}"),
        ("image", containers.image or "none named"),
    ]


def _system(host: Host) -> str:
    where = f"in a {host.container} container" if host.container else "not in a container"
    return f"{host.system}, {where}"


def _cpu(host: Host) -> str:
    cores = f"{host.logical_cores} logical cores"
    if host.usable_cores != host.logical_cores:
        cores += f", {host.usable_cores} usable"
    if host.cpu_pressure_percent is not None:
        cores += f"; some task waited for one in {host.cpu_pressure_percent:.0f} % of the last 10 s"
    return f"{host.cpu_model or 'unknown'}, {cores}"


def _gpus(graphics: Graphics) -> str:
    if isinstance(graphics.nvml, NvmlAnswer) and graphics.nvml.gpus:
        return ", ".join(map(_gpu, graphics.nvml.gpus))
    if graphics.pci:
        return f"NVIDIA, seen on the bus at {', '.join(graphics.pci)}"
    return "none seen"


def _gpu(gpu: InstalledGpu) -> str:
    if gpu.trouble:
        return f"{gpu.name}: {gpu.trouble}"
    return gpu.name if gpu.memory_bytes is None else f"{gpu.name} {gpu.memory_bytes / GIB:.0f} GiB"


def _driver(graphics: Graphics) -> str:
    if isinstance(graphics.nvml, NvmlAnswer):
        return (
            f"NVIDIA {graphics.nvml.driver or 'unknown'}, for CUDA up to "
            f"{graphics.nvml.cuda or 'unknown'}"
        )
    return graphics.kernel_module or f"none ({graphics.nvml.detail})"


def _torch(torch: TorchBuild) -> str:
    built_for = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}"
    is_cpu_only = not (torch.cuda or torch.hip)
    return f"{torch.version}, {'a CPU-only build' if is_cpu_only else f'built for {built_for}'}"

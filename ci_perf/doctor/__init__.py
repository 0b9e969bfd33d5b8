"""Turn facts of a machine into findings: what is wrong, and what to do about it. Pure."""

from collections.abc import Iterable
from enum import Enum

from ci_perf.doctor import containers, gpu_findings
from ci_perf.errors import ExitCode
from ci_perf.model.base import SCHEMA_VERSION, Struct
from ci_perf.model.facts import (
    Containers,
    DeepCheck,
    DeepOutcome,
    Finding,
    Host,
    Level,
    MachineFacts,
    Programs,
    Space,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
)
from ci_perf.model.run import Tool

MIB = 2**20
GIB = 2**30

# A cold inductor cache, a data set and the results of one suite fit.
MIN_TEMPORARY_BYTES = 2 * GIB
# Docker's default: a few batches of a data loader with workers fill it.
DEFAULT_CONTAINER_SHM_BYTES = 64 * MIB
# The share of time in which a task waited for a core; an idle machine has less than 1 %.
NOISY_PRESSURE_PERCENT = 10.0
OLDEST_PYTHON = (3, 11)

_INSTALL = "`pip install '.[measure]'` in a checkout of ci_perf"


class DeviceKind(Enum):
    """What can be measured on this machine."""

    CPU = "cpu"
    CUDA = "cuda"


class Diagnosis(Struct, frozen=True, tag_field="type", tag="doctor", kw_only=True):
    """The doctor's answer: what can be measured here, what was found, worst first, and why."""

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    can_measure: tuple[DeviceKind, ...]
    findings: tuple[Finding, ...]
    facts: MachineFacts
    deep: tuple[DeepCheck, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """No answer where nothing can be measured or a check has failed; the rest is advice."""
        has_failed = any(check.outcome is DeepOutcome.FAILED for check in self.deep)
        return ExitCode.OK if self.can_measure and not has_failed else ExitCode.NO_ANSWER


def diagnose(facts: MachineFacts, tool: Tool) -> Diagnosis:
    """Explain this machine."""
    findings = [
        *_python(facts.programs),
        *(_here(facts) if facts.containers is None else _in_containers(facts, facts.containers)),
        *_git(facts.programs),
        *_space(facts.host),
        *_noise(facts.host),
    ]
    worst_first = list(Level)
    return Diagnosis(
        tool=tool,
        can_measure=_devices(facts),
        findings=tuple(sorted(findings, key=lambda finding: worst_first.index(finding.level))),
        facts=facts,
    )


def _here(facts: MachineFacts) -> Iterable[Finding]:
    """Look at what processes of this machine are measured with."""
    yield from _torch(facts.torch, facts.programs)
    yield from gpu_findings.explain(facts)
    yield from _programs(facts.programs)


def _in_containers(facts: MachineFacts, found: Containers) -> Iterable[Finding]:
    """Look at what containers are measured with: torch and all that it needs is the image's."""
    yield from containers.explain(found, facts.torch)
    if isinstance(facts.torch, TorchBuild) and not found.gpu_problem:
        yield from gpu_findings.explain(facts)
    elif gpu_findings.has_gpu(facts.graphics):
        below = gpu_findings.explain_driver(facts.host, facts.graphics)
        yield from [below] if below else []


def _devices(facts: MachineFacts) -> tuple[DeviceKind, ...]:
    if not isinstance(facts.torch, TorchBuild) or _is_too_old(facts.programs):
        return ()
    if gpu_findings.cuda_works(facts.torch):
        return DeviceKind.CPU, DeviceKind.CUDA
    return (DeviceKind.CPU,)


def _is_too_old(programs: Programs) -> bool:
    return tuple(int(part) for part in programs.python.split(".")[:2]) < OLDEST_PYTHON


def _python(programs: Programs) -> Iterable[Finding]:
    if _is_too_old(programs):
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield Finding(
            code="python_too_old",
            level=Level.PROBLEM,
            what=f"Python: expected {oldest} or newer, found {programs.python}.",
            next_step=f"Create the environment again with Python {oldest} or newer.",
        )


def _torch(torch: Torch, programs: Programs) -> Iterable[Finding]:
    match torch:
        case TorchMissing():
            yield Finding(
                code="torch_missing",
                level=Level.PROBLEM,
                what="torch is not installed for this Python: nothing can be measured.",
                next_step=f"{_INSTALL}, in this environment, or run ci-perf with the Python that "
                f"has your torch.{_or_in_containers(programs)}",
            )
        case TorchBroken(reason=reason):
            yield Finding(
                code="torch_broken",
                level=Level.PROBLEM,
                what=f"torch is installed and cannot be imported: {reason}",
                next_step="Run `python -c 'import torch'` to see the whole error; mostly a "
                "half-finished upgrade: `pip install --force-reinstall torch`.",
            )
        case TorchBuild(version=version):
            yield Finding(
                code="cpu_works",
                level=Level.OK,
                what=f"torch {version} can be imported: CPU workloads can be measured.",
            )


def _or_in_containers(programs: Programs) -> str:
    """Name the other way, where there is one: an image has a torch of its own."""
    commands = [f"`ci-perf doctor --runner {engine}`" for engine in programs.engines]
    if not commands:
        return ""
    return f" Or measure in containers, whose image has it: {' or '.join(commands)} looks further."


def _programs(programs: Programs) -> Iterable[Finding]:
    if programs.transformers is None:
        yield Finding(
            code="transformers_missing",
            level=Level.WARNING,
            what="transformers is not installed: the shipped suites cannot build their models.",
            next_step="`pip install '.[models]'` in a checkout of ci_perf, if you measure the "
            "shipped suites.",
        )
    if not (programs.c_compiler and programs.cxx_compiler):
        yield Finding(
            code="compiler_missing",
            level=Level.WARNING,
            what=f"No {_missing_compilers(programs)} compiler: torch.compile's inductor backend "
            "builds its kernels with one.",
            next_step="Install gcc and g++ (`apt-get install g++`), or point CC and CXX to your "
            "compilers; eager workloads are not affected.",
        )


def _git(programs: Programs) -> Iterable[Finding]:
    if not programs.git:
        yield Finding(
            code="git_missing",
            level=Level.WARNING,
            what="git is not on PATH: a run cannot say which commit it measured.",
            next_step="Install git (`apt-get install git`), in the container too.",
        )


def _missing_compilers(programs: Programs) -> str:
    has = {"C": programs.c_compiler, "C++": programs.cxx_compiler}
    return " and no ".join(language for language, is_there in has.items() if not is_there)


def _space(host: Host) -> Iterable[Finding]:
    if host.temporary is not None and host.temporary.free_bytes < MIN_TEMPORARY_BYTES:
        yield Finding(
            code="little_disk",
            level=Level.WARNING,
            what=f"{_free(host.temporary)}: expected at least "
            f"{MIN_TEMPORARY_BYTES // GIB} GiB for compile caches and generated data.",
            next_step="Free some room, or set TMPDIR to a larger disk.",
        )
    shm = host.shared_memory
    if host.container and shm is not None and shm.total_bytes <= DEFAULT_CONTAINER_SHM_BYTES:
        yield Finding(
            code="small_shm",
            level=Level.WARNING,
            what=f"{shm.path} has {shm.total_bytes // MIB} MiB: data loader workers pass their "
            'batches through it and end with "bus error" when it is full.',
            next_step="Start the container with `--shm-size 8g` (or `--ipc host`); in Kubernetes "
            "mount an emptyDir with `medium: Memory` there.",
        )


def _free(space: Space) -> str:
    return f"{space.path} has {space.free_bytes / GIB:.1f} GiB free"


def _noise(host: Host) -> Iterable[Finding]:
    pressure = host.cpu_pressure_percent
    if pressure is not None and pressure > NOISY_PRESSURE_PERCENT:
        yield Finding(
            code="noisy_machine",
            level=Level.WARNING,
            # All decimals that the kernel gives: rounded further, it could read as the limit.
            what=f"In {round(pressure, 2):g} % of the last 10 s some task waited for a core "
            f"(expected at most {NOISY_PRESSURE_PERCENT:g} %): other programs disturb the "
            "measurement.",
            next_step="Find them with `top`; run one CI job at a time on this machine.",
        )
    if host.cpu_quota is not None and host.cpu_quota < host.usable_cores:
        yield Finding(
            code="cpu_quota",
            level=Level.WARNING,
            what=f"A quota of {host.cpu_quota:g} cores on {host.usable_cores}: the kernel stops "
            "the container for tens of milliseconds when it is used up.",
            next_step="Give the container cores of its own (`--cpuset-cpus 0-3`) instead of a "
            "quota (`--cpus`, a CPU limit).",
        )

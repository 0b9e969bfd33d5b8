"""Turn facts of a machine into findings: what is wrong, and what to do about it. Pure."""

from collections.abc import Iterable
from enum import Enum

from ci_perf.errors import ExitCode
from ci_perf.features.doctor import containers, findings
from ci_perf.model.base import SCHEMA_VERSION, Struct
from ci_perf.model.facts import (
    Containers,
    DeepCheck,
    DeepOutcome,
    Finding,
    Level,
    MachineFacts,
    TorchBuild,
)
from ci_perf.model.run import Tool


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


def diagnose(facts: MachineFacts, tool: Tool, of_gate: Iterable[Finding] = ()) -> Diagnosis:
    """Explain this machine, and what was found of the gate on it."""
    tried = facts.containers
    made = findings.explain(facts) if tried is None else _explain_containers(facts, tried)
    made += of_gate
    worst_first = list(Level)
    return Diagnosis(
        tool=tool,
        can_measure=_devices(facts),
        findings=tuple(sorted(made, key=lambda finding: worst_first.index(finding.level))),
        facts=facts,
    )


def _explain_containers(facts: MachineFacts, tried: Containers) -> list[Finding]:
    """Look at what containers are measured with: torch and all that it needs is the image's."""
    made = list(containers.explain(tried, facts.torch))
    if isinstance(facts.torch, TorchBuild) and not tried.gpu_problem:
        made += findings.explain_cuda(facts)
    elif findings.has_gpu(facts.graphics):
        made += findings.explain_driver(facts)
    return [*made, *findings.explain_host(facts)]


def _devices(facts: MachineFacts) -> tuple[DeviceKind, ...]:
    if not isinstance(facts.torch, TorchBuild) or findings.is_python_too_old(facts.programs):
        return ()
    if findings.cuda_works(facts.torch):
        return DeviceKind.CPU, DeviceKind.CUDA
    return (DeviceKind.CPU,)

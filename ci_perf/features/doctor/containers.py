"""Say whether a container can measure, by what its launcher has tried."""

from collections.abc import Iterable

from ci_perf.features.doctor.findings import find
from ci_perf.model.facts import Containers, Finding, Torch, TorchBuild, TorchMissing


def explain(containers: Containers, torch: Torch) -> Iterable[Finding]:
    """Say whether a container can measure, and with GPUs."""
    if containers.problem:
        yield containers.problem
        return
    if containers.gpu_problem:
        yield containers.gpu_problem
    if isinstance(torch, TorchBuild):
        yield find("image_works", version=torch.version)
        return
    reason = "it holds no torch" if isinstance(torch, TorchMissing) else torch.reason
    yield find("image_cannot_measure", reason=reason)

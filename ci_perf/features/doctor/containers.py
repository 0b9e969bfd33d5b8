"""Say whether a container can measure, by what its launcher has tried."""

from collections.abc import Iterable

from ci_perf.model.facts import (
    Containers,
    Finding,
    Level,
    Torch,
    TorchBuild,
    TorchMissing,
    problem,
)


def explain(containers: Containers, torch: Torch) -> Iterable[Finding]:
    """Say whether a container can measure, and with GPUs."""
    if containers.problem:
        yield containers.problem
        return
    if containers.gpu_problem:
        yield containers.gpu_problem
    if isinstance(torch, TorchBuild):
        yield Finding(
            code="image_works",
            level=Level.OK,
            what=f"A container of this image has imported torch {torch.version}: CPU workloads can "
            "be measured.",
        )
        return
    reason = "it holds no torch" if isinstance(torch, TorchMissing) else torch.reason
    yield problem(
        "image_cannot_measure",
        f"A container of this image starts and cannot measure: {reason}",
        "An image needs Python 3.11 or newer as `python3`, torch, msgspec, numpy and nvidia-ml-py "
        "(docs/containers.md).",
    )

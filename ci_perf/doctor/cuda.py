"""Whether CUDA works here and, if not, why. Pure."""

from collections.abc import Iterable

from ci_perf.doctor import containers, driver, evidence, torch_build
from ci_perf.doctor.finding import Finding, Level
from ci_perf.model.facts import Facts, Nvml, NvmlAnswer, NvmlTrouble, Torch, TorchBuild


def works(torch: Torch) -> bool:
    """Say whether torch has just run a kernel on a GPU."""
    return isinstance(torch, TorchBuild) and torch.device_count > 0 and not torch.cuda_error


def explain(facts: Facts) -> list[Finding]:
    """Say that CUDA works, or why it does not: below torch, in torch, or both."""
    if isinstance(facts.torch, TorchBuild) and works(facts.torch):
        return [_cuda_works(facts.torch), *_clocks_unseen(facts.graphics.nvml)]
    if not evidence.has_gpu(facts.graphics):
        return [_no_gpu(facts)]
    below = driver.explain(facts.host, facts.graphics)
    return [found for found in (below, _above(facts, below)) if found]


def _above(facts: Facts, below: Finding | None) -> Finding | None:
    if not isinstance(facts.torch, TorchBuild):
        return None  # that torch is missing or broken is said elsewhere
    if torch_build.is_cpu_only(facts.torch):
        return torch_build.cpu_only(facts.torch, facts.graphics)
    # What torch says on top of a broken driver only repeats it.
    return None if below else torch_build.explain(facts.torch, facts.graphics)


def _cuda_works(torch: TorchBuild) -> Finding:
    built_for = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}, untested"
    return Finding(
        code="cuda_works",
        level=Level.OK,
        what=f"torch ran a kernel on a GPU ({torch.device_count} visible, {built_for}): "
        "GPU workloads can be measured.",
    )


def _clocks_unseen(nvml: Nvml) -> Iterable[Finding]:
    """Without NVML a run cannot tell a slow change from a throttled GPU."""
    if isinstance(nvml, NvmlAnswer):
        return
    yield Finding(
        code="nvml_unavailable",
        level=Level.WARNING,
        what=f"NVML cannot be asked ({nvml.detail}): clocks and throttling stay unseen.",
        next_step="`pip install nvidia-ml-py`."
        if nvml.trouble is NvmlTrouble.NOT_INSTALLED
        else "In a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    )


def _no_gpu(facts: Facts) -> Finding:
    where = "container" if facts.host.container else "machine"
    hint = (
        f"If the host has one, {containers.give_gpus(facts.host)}."
        if facts.host.container
        else "On a virtual machine, check that the GPU is passed through (`lspci -d 10de:`)."
    )
    return Finding(
        code="no_gpu",
        level=Level.WARNING,
        what=f"This {where} shows no NVIDIA GPU: only CPU workloads can be measured.",
        next_step=f"{hint} Otherwise measure on a GPU runner, or with `--device cpu`.",
    )

"""One training step of an image classifier, its parts named: shared by all that train one."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import nn

from ci_perf.workload import Context, Workload

Amp = Literal["none", "bf16"]
# torch documents it for convolutions under CUDA (torch.use_deterministic_algorithms).
CONVOLUTIONS_VARY = "cuDNN may add up the gradients of a convolution in another order each time"


def training(
    context: Context,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    *,
    logits_of: Callable[[torch.Tensor], torch.Tensor],
    amp: Amp = "none",
    varies: str = "",
) -> Workload:
    """Train `model` on `batches` in turns; `logits_of` is its forward pass, compiled or not."""
    upcoming = itertools.cycle(batches)
    kind = torch.device(context.device).type
    precision = contextlib.nullcontext() if amp == "none" else torch.autocast(kind, torch.bfloat16)
    latest = torch.zeros(())
    result = torch.zeros(())

    # The phases stay outside of what is compiled: a clock in there would break the graph.
    def step() -> None:
        nonlocal latest, result
        images, labels = next(upcoming)
        with context.phase("forward"), precision:
            logits = logits_of(images)
            loss = nn.functional.cross_entropy(logits, labels)
        with context.phase("backward"):
            loss.backward()
        with context.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        latest, result = loss.detach(), logits.detach()

    return Workload(
        step=step,
        items_per_step=len(batches[0][1]),
        item_unit="image",
        loss=lambda: float(latest),
        output=lambda: result,
        varies=varies,
        precision="fp32" if amp == "none" else amp,
        parameter_count=sum(weights.numel() for weights in model.parameters()),
    )

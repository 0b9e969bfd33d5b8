"""Train a 784-128-10 perceptron on images of MNIST's shape: small kernels, launch overhead."""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import nn

import _parameters
from ci_perf.workload import Context, Workload

OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.01),
    "adam": partial(torch.optim.Adam, lr=1e-3),
    "adamw": partial(torch.optim.AdamW, lr=1e-3),
}
PIXELS, HIDDEN, CLASSES = 784, 128, 10
BATCHES = 8


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What suite.toml may set."""

    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    batch: _parameters.AtLeastOne = 64


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    model = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    model.to(context.device)
    optimizer = OPTIMIZERS[parameters.optimizer](model.parameters())
    batches = itertools.cycle(_batches(parameters.batch, context.device))
    latest = torch.zeros(())
    result = torch.zeros(())

    def step() -> None:
        nonlocal latest, result
        images, labels = next(batches)
        with context.phase("forward"):
            logits = model(images)
            loss = nn.functional.cross_entropy(logits, labels)
        with context.phase("backward"):
            loss.backward()
        with context.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        latest, result = loss.detach(), logits.detach()

    return Workload(
        step=step,
        items_per_step=parameters.batch,
        item_unit="image",
        loss=lambda: float(latest),
        output=lambda: result,
        precision="fp32",
        parameter_count=sum(weights.numel() for weights in model.parameters()),
    )


def _batches(size: int, device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Random images, labelled by a fixed linear rule that the model can learn."""
    rule = torch.randn(PIXELS, CLASSES, device=device)
    images = [torch.randn(size, PIXELS, device=device) for _ in range(BATCHES)]
    return [(batch, (batch @ rule).argmax(dim=1)) for batch in images]

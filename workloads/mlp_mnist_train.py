"""Train a 784-128-10 perceptron on images of MNIST's shape: small kernels, launch overhead."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import nn

import _classifier
import _parameters
from ci_perf.workload import Context, Workload

OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.01),
    "adam": partial(torch.optim.Adam, lr=1e-3),
    "adamw": partial(torch.optim.AdamW, lr=1e-3),
    "rmsprop": partial(torch.optim.RMSprop, lr=1e-3),
}
IMAGES = 60_000  # the training images of MNIST
PIXELS, HIDDEN, CLASSES = 784, 128, 10
BATCHES = 8


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What suite.toml may set."""

    optimizer: Literal["sgd", "adam", "adamw", "rmsprop"] = "sgd"
    batch: _parameters.AtLeastOne = 64


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    model = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    model.to(context.device)
    optimizer = OPTIMIZERS[parameters.optimizer](model.parameters())
    batches = _batches(parameters.batch, context.device)
    return _classifier.training(
        context, model, optimizer, batches, logits_of=model, items_per_epoch=IMAGES
    )


def _batches(size: int, device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Random images, labelled by a fixed linear rule that the model can learn."""
    rule = torch.randn(PIXELS, CLASSES, device=device)
    images = [torch.randn(size, PIXELS, device=device) for _ in range(BATCHES)]
    return [(batch, (batch @ rule).argmax(dim=1)) for batch in images]

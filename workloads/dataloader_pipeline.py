"""Read, augment and batch CIFAR-10 and copy it to the device: one step is one epoch.

An image is read from its file, taken apart into label and planes, cropped, flipped and normalized.
There is no JPEG in it: none of our dependencies can decode one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, Subset

import _cifar10
import _parameters
from ci_perf.workload import Context, Workload


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Same meaning as the options of torch's DataLoader; `samples` make one epoch."""

    workers: _parameters.AtLeastZero = 0
    batch: _parameters.AtLeastOne = 128
    pinned: bool = False
    persistent: bool = False
    samples: _parameters.AtLeastOne = 4096


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    _check(parameters, context.device)
    # A loader ends its workers when nobody holds it any more; teardown empties this list.
    loaders = [_loader(parameters, context.data_dir)]
    latest: list[torch.Tensor] = []

    # A whole epoch, because what an epoch costs to begin belongs to it: nothing where workers
    # persist (they start in the first step, which is not timed), a new set of them otherwise.
    def step() -> None:
        nonlocal latest
        for batch in _waited_for(loaders[0], context):
            with context.phase("h2d"):
                latest = [
                    tensor.to(context.device, non_blocking=parameters.pinned) for tensor in batch
                ]

    return Workload(
        step=step,
        items_per_step=parameters.samples,
        item_unit="image",
        output=lambda: latest,
        teardown=loaders.clear,
    )


def _waited_for(loader: DataLoader, context: Context) -> Iterator[list[torch.Tensor]]:
    """Go through one epoch; what a training loop would spend waiting is the phase "data"."""
    with context.phase("data"):
        batches = iter(loader)
        batch = next(batches, None)
    while batch is not None:
        yield batch
        with context.phase("data"):
            batch = next(batches, None)


def _loader(parameters: Parameters, data_dir: str) -> DataLoader:
    images = _cifar10.Cifar10(_cifar10.prepare(data_dir), transform=_cifar10.augment)
    return DataLoader(
        Subset(images, range(parameters.samples)),
        batch_size=parameters.batch,
        shuffle=True,
        num_workers=parameters.workers,
        pin_memory=parameters.pinned,
        persistent_workers=parameters.persistent,
    )


def _check(parameters: Parameters, device: str) -> None:
    images = len(_cifar10.TRAIN_FILES) * _cifar10.RECORDS_PER_FILE
    if parameters.samples > images:
        found = parameters.samples
        raise ValueError(f"parameter 'samples': expected at most {images}, found {found}")
    if parameters.persistent and not parameters.workers:
        raise ValueError("parameter 'persistent': expected false without workers, found True")
    if parameters.pinned and torch.device(device).type == "cpu":
        raise ValueError("parameter 'pinned': expected false on the CPU, found True")

"""Train a ResNet on CIFAR-10 images: eager or compiled, fp32 or mixed precision."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from transformers import ResNetConfig, ResNetForImageClassification

import _amp
import _cifar10
import _classifier
import _parameters
from ci_perf.workload import Context, Workload

# Widths and depths of the stages.
SHAPES = {
    "tiny": ([16, 32], [1, 1]),
    "resnet18": ([64, 128, 256, 512], [2, 2, 2, 2]),
}
BATCHES = 4


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What suite.toml may set. A step takes `gradient_accumulation` batches.

    The two stems are different workloads: the ImageNet stem shrinks a 32 x 32 image to 8 x 8
    before the first stage; the CIFAR stem keeps its size, and a ResNet-18 then has 15 times as
    much to compute.
    """

    model: Literal["tiny", "resnet18"] = "resnet18"
    stem: Literal["cifar", "imagenet"] = "cifar"
    batch: _parameters.AtLeastOne = 128
    compile: _parameters.Compile = "eager"
    amp: _amp.Amp = "none"
    gradient_accumulation: _parameters.AtLeastOne = 1
    channels_last: bool = False
    cudnn_benchmark: bool = False


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    # True lets cuDNN try its algorithms in the first step and keep the fastest.
    torch.backends.cudnn.benchmark = parameters.cudnn_benchmark
    device = torch.device(context.device)
    layout = torch.channels_last if parameters.channels_last else torch.contiguous_format
    model = _model(parameters).to(device, memory_format=layout)
    forward = _parameters.compiled(model, parameters.compile)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    # A list, so that every batch is on the device before the first step.
    batches = [
        (images.to(device, memory_format=layout), labels.to(device))
        for images, labels in _loader(context.data_dir, parameters.batch)
    ]
    return _classifier.training(
        context,
        model,
        optimizer,
        batches,
        logits_of=lambda images: forward(images).logits,
        items_per_epoch=len(_cifar10.TRAIN_FILES) * _cifar10.RECORDS_PER_FILE,
        amp=parameters.amp,
        gradient_accumulation=parameters.gradient_accumulation,
        varies=_classifier.CONVOLUTIONS_VARY if device.type == "cuda" else "",
    )


def _model(parameters: Parameters) -> ResNetForImageClassification:
    widths, depths = SHAPES[parameters.model]
    config = ResNetConfig(
        embedding_size=widths[0],
        hidden_sizes=widths,
        depths=depths,
        layer_type="basic",
        num_labels=len(_cifar10.CLASSES),
    )
    model = ResNetForImageClassification(config).train()
    if parameters.stem == "cifar":
        stem = model.resnet.embedder
        stem.embedder.convolution = nn.Conv2d(3, widths[0], kernel_size=3, padding=1, bias=False)
        stem.pooler = nn.Identity()
    return model


def _loader(data_dir: str, batch: int) -> DataLoader:
    images = _cifar10.Cifar10(_cifar10.prepare(data_dir))
    return DataLoader(Subset(images, range(BATCHES * batch)), batch_size=batch)

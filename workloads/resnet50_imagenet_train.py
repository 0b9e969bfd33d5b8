"""Train a ResNet-50 on synthetic images of ImageNet's shape: convolutions that fill a GPU."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import torch
from transformers import ResNetConfig, ResNetForImageClassification

import _amp
import _classifier
import _imagenet
import _parameters
from ci_perf.workload import Context, Workload


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What suite.toml may set. A step takes `gradient_accumulation` batches.

    `side` is that of the square images; the stem is ImageNet's.
    """

    batch: _parameters.AtLeastOne = 64
    side: Annotated[int, msgspec.Meta(ge=32)] = 224  # the stem and the stages shrink it 32 times
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
    # The defaults are ResNet-50: bottleneck layers, 3 + 4 + 6 + 3 of them.
    model = ResNetForImageClassification(ResNetConfig(num_labels=_imagenet.CLASSES)).train()
    model.to(device, memory_format=layout)
    # 0.1 for a batch of 256, and in proportion (https://arxiv.org/abs/1706.02677).
    rate = 0.1 * parameters.batch / 256
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    return _classifier.training(
        context,
        model,
        optimizer,
        _imagenet.draw_batches(parameters.batch, parameters.side, device, layout),
        logits_of=lambda images: model(images).logits,
        items_per_epoch=_imagenet.IMAGES,
        amp=parameters.amp,
        gradient_accumulation=parameters.gradient_accumulation,
        varies=_classifier.CONVOLUTIONS_VARY if device.type == "cuda" else "",
    )

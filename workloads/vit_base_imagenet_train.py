"""Train a Vision Transformer on synthetic images of ImageNet's shape, eager or compiled."""

from dataclasses import dataclass
from typing import Literal

import torch
from transformers import ViTConfig, ViTForImageClassification

import _amp
import _bert
import _classifier
import _imagenet
import _parameters
from ci_perf.workload import Context, Workload

# "base" is ViT-B/16 (https://arxiv.org/abs/2010.11929, table 1): 224 x 224 pixels, patches of 16.
CONFIGS = {
    "tiny": {
        "image_size": 32,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 256,
    },
    "base": {},
}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What suite.toml may set. Weights are random, nothing is downloaded."""

    model: Literal["tiny", "base"] = "base"
    batch: _parameters.AtLeastOne = 64
    compile: _parameters.Compile = "eager"
    amp: _amp.Amp = "none"


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    device = torch.device(context.device)
    config = ViTConfig(num_labels=_imagenet.CLASSES, **CONFIGS[parameters.model])
    model = ViTForImageClassification(config).train().to(device)
    forward = _parameters.compiled(model, parameters.compile)
    return _classifier.training(
        context,
        model,
        torch.optim.AdamW(model.parameters(), lr=3e-4),
        _imagenet.draw_batches(
            parameters.batch, config.image_size, device, torch.contiguous_format
        ),
        logits_of=lambda images: forward(images).logits,
        items_per_epoch=_imagenet.IMAGES,
        amp=parameters.amp,
        varies=_bert.ATTENTION_VARIES if device.type == "cuda" else "",
    )

"""Encode sequences of tokens with BERT: the attention and matrix products of inference."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import torch
from transformers import BertConfig, BertModel

import _parameters
from ci_perf.workload import Context, Workload

CONFIGS = {
    "tiny": BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
    ),
    "base": BertConfig(),
}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """`padded`: every second sequence is half as long, and masked up to `seq`."""

    model: Literal["tiny", "base"] = "base"
    dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    batch: _parameters.AtLeastOne = 8
    seq: Annotated[int, msgspec.Meta(ge=2, le=512)] = 128  # 512: BERT's position embeddings
    padded: bool = False


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    config = CONFIGS[parameters.model]
    model = BertModel(config).eval().to(context.device, DTYPES[parameters.dtype])
    shape = (parameters.batch, parameters.seq)
    tokens = torch.randint(0, config.vocab_size, shape, device=context.device)
    mask = torch.ones_like(tokens)
    if parameters.padded:
        mask[::2, parameters.seq // 2 :] = 0
    pooled = torch.zeros(())

    # No mask where none is needed: the model looks into it, and the host waits for the device.
    needed_mask = mask if parameters.padded else None

    def step() -> None:
        nonlocal pooled
        with torch.inference_mode():
            pooled = model(tokens, attention_mask=needed_mask).pooler_output

    return Workload(
        step=step,
        items_per_step=int(mask.sum()),  # padding is no work done
        item_unit="token",
        loss=lambda: float(pooled.float().abs().mean()),  # inference has none: a checksum
    )

"""Encode sequences of tokens with BERT: the attention and matrix products of inference."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import torch
from transformers import BertModel

import _bert
import _parameters
from ci_perf.workload import Context, Workload

Batch = tuple[torch.Tensor, torch.Tensor | None]  # tokens, and a mask where rows are padded

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """`rows` says how sequences of different lengths are made into batches.

    "full": all are `seq` tokens long. In the other two every second one, beginning with the first,
    is half as long: "padded" masks it up to `seq`, "ragged" makes a batch of each length, so that
    nothing is computed in vain. These two do the same work in tokens; their throughputs show what
    the padding costs.
    """

    model: _bert.Size = "base"
    dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    batch: _parameters.AtLeastOne = 8
    seq: Annotated[int, msgspec.Meta(ge=2, le=512)] = 128  # 512: BERT's position embeddings
    rows: Literal["full", "padded", "ragged"] = "full"
    compile: _parameters.Compile = "eager"


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    config = _bert.CONFIGS[parameters.model]
    model = BertModel(config).eval().to(context.device, DTYPES[parameters.dtype])
    tokens = torch.randint(
        0, config.vocab_size, (parameters.batch, parameters.seq), device=context.device
    )
    batches = _batches(tokens, parameters.rows)
    encode = _parameters.compiled(model, parameters.compile)
    pooled: list[torch.Tensor] = []

    def step() -> None:
        nonlocal pooled
        with torch.inference_mode():
            pooled = [encode(batch, attention_mask=mask).pooler_output for batch, mask in batches]

    return Workload(
        step=step,
        items_per_step=sum(_without_padding(batch, mask) for batch, mask in batches),
        item_unit="token",
        output=lambda: pooled,
        precision=parameters.dtype,
        parameter_count=model.num_parameters(),
    )


def _batches(tokens: torch.Tensor, rows: str) -> list[Batch]:
    """Tokens with their mask: one batch, or one of each length."""
    half = tokens.shape[1] // 2
    if rows == "ragged":
        # A batch of one row has no second length.
        return [(part, None) for part in (tokens[::2, :half], tokens[1::2]) if len(part)]
    if rows == "padded":
        mask = torch.ones_like(tokens)
        mask[::2, half:] = 0
        return [(tokens, mask)]
    # No mask where none is needed: the model looks into it, and the host waits for the device.
    return [(tokens, None)]


def _without_padding(tokens: torch.Tensor, mask: torch.Tensor | None) -> int:
    """Count the tokens that are worth something."""
    return tokens.numel() if mask is None else int(mask.sum())

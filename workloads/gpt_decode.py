"""Generate text greedily with a small GPT-2 and its cache: many small kernels, one token each."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

import _parameters
from ci_perf.workload import Context, Workload

CONFIGS = {
    "tiny": GPT2Config(vocab_size=1000, n_positions=256, n_embd=128, n_layer=2, n_head=2),
    "gpt2": GPT2Config(),
}
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """One step reads `batch` prompts of `prompt` tokens and writes `new_tokens` after each.

    The phase "prefill" ends with the first new token: it is the time to the first token, and
    "decode" is that of all the others.
    """

    model: Literal["tiny", "gpt2"] = "gpt2"
    dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    batch: _parameters.AtLeastOne = 1
    prompt: _parameters.AtLeastOne = 128
    new_tokens: _parameters.AtLeastOne = 64
    compile: _parameters.Compile = "eager"


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    config = CONFIGS[parameters.model]
    _check(parameters, config.n_positions)
    model = GPT2LMHeadModel(config).eval().to(context.device, DTYPES[parameters.dtype])
    prompts = torch.randint(
        0, config.vocab_size, (parameters.batch, parameters.prompt), device=context.device
    )
    forward = _parameters.compiled(model, parameters.compile)
    logits = torch.zeros(())

    # Not `generate`: it asks the device after each token whether the text has ended.
    def step() -> None:
        nonlocal logits
        cache = DynamicCache(config=config)
        with torch.inference_mode():
            with context.phase("prefill"):
                logits = _next(forward, prompts, cache)
                tokens = logits.argmax(dim=-1)
            with context.phase("decode"):
                for _ in range(parameters.new_tokens - 1):
                    logits = _next(forward, tokens, cache)
                    tokens = logits.argmax(dim=-1)

    return Workload(
        step=step,
        items_per_step=parameters.batch * parameters.new_tokens,
        item_unit="token",
        output=lambda: logits,
        precision=parameters.dtype,
        parameter_count=model.num_parameters(),
    )


def _next(forward: Any, tokens: torch.Tensor, cache: DynamicCache) -> torch.Tensor:  # noqa: ANN401  untyped
    """Return the logits of the token after `tokens`, shape (batch, 1, vocabulary)."""
    return forward(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1).logits


def _check(parameters: Parameters, positions: int) -> None:
    asked = parameters.prompt + parameters.new_tokens
    if asked > positions:
        raise ValueError(
            f"parameters 'prompt' and 'new_tokens': expected at most {positions} together, the "
            f"positions of model {parameters.model!r}, found {asked}"
        )

"""Fine-tune BERT to classify sequences: one process, one per device (DDP), or DataParallel."""

import contextlib
import itertools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import torch
from torch import distributed, nn
from transformers import BertConfig, BertForSequenceClassification

import _bert
import _parameters
from ci_perf.workload import Context, Workload

LABELS = 2
BATCHES = 4


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """`batch` is that of one rank, or of one device of DataParallel.

    "ddp" is one process per device, and needs `launch = "torchrun"`. "data_parallel" is one process
    whose threads serve `world_size` devices: torch itself advises against it. It is here to be
    compared with, and to show what a bad choice looks like.
    """

    model: _bert.Size = "base"
    strategy: Literal["single", "ddp", "data_parallel"] = "single"
    batch: _parameters.AtLeastOne = 32
    seq: Annotated[int, msgspec.Meta(ge=2, le=512)] = 128  # 512: BERT's position embeddings
    amp: Literal["none", "bf16"] = "none"
    world_size: _parameters.AtLeastOne = 1  # ranks to start, or devices; ci-perf reads it too


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    _check(parameters, context)
    device = torch.device(context.device)
    config = _bert.CONFIGS[parameters.model]
    module = BertForSequenceClassification(config).train().to(device)
    model = _spread(module, parameters.strategy, device, parameters.world_size)
    optimizer = torch.optim.AdamW(module.parameters(), lr=2e-5)
    upcoming = itertools.cycle(_batches(parameters, config, context))
    latest = torch.zeros(())
    logits = torch.zeros(())

    def forward_and_backward() -> None:
        nonlocal latest, logits
        with context.phase("data"):
            tokens, labels = next(upcoming)
        with context.phase("h2d"):
            tokens = tokens.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
        with (
            context.phase("forward"),
            torch.autocast(device.type, torch.bfloat16, enabled=parameters.amp == "bf16"),
        ):
            logits = model(tokens).logits
            loss = nn.functional.cross_entropy(logits, labels)
        with context.phase("backward"):
            loss.backward()
        latest = loss.detach()

    def step() -> None:
        forward_and_backward()
        with context.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    def local_step() -> None:
        # Up to where the ranks would meet: an update with gradients of its own would part them.
        with model.no_sync() if parameters.strategy == "ddp" else contextlib.nullcontext():
            forward_and_backward()
        optimizer.zero_grad()

    def output() -> torch.Tensor:
        return logits.detach()

    return Workload(
        step=step,
        items_per_step=parameters.batch * parameters.world_size,
        item_unit="sample",
        loss=lambda: float(latest),
        output=output,
        precision="bf16" if parameters.amp == "bf16" else "fp32",
        parameter_count=sum(weights.numel() for weights in module.parameters()),
        local_step=local_step,
    )


def _check(parameters: Parameters, context: Context) -> None:
    """Refuse a strategy that this process cannot follow. Raises ValueError."""
    strategy = parameters.strategy
    if strategy == "ddp" and not distributed.is_initialized():
        raise ValueError(
            "strategy 'ddp': expected ranks that torchrun started, found a process of its own; "
            'set `launch = "torchrun"` in suite.toml'
        )
    if strategy == "data_parallel" and not context.device.startswith("cuda"):
        raise ValueError(
            f"strategy 'data_parallel': expected CUDA devices, found {context.device!r}; it is "
            "nothing but overhead on a CPU: take 'ddp' there"
        )
    if strategy != "ddp" and context.world_size != 1:
        raise ValueError(
            f"strategy {strategy!r}: expected a process of its own, found {context.world_size} "
            "ranks; take 'ddp', or `launch = \"process\"` in suite.toml"
        )
    if strategy != "data_parallel" and parameters.world_size != context.world_size:
        raise ValueError(
            f"strategy {strategy!r}: expected world_size = {context.world_size}, the number of "
            f"ranks here, found {parameters.world_size}"
        )


def _spread(module: nn.Module, strategy: str, device: torch.device, world_size: int) -> Any:  # noqa: ANN401  untyped
    """Wrap the model in what the strategy calls for."""
    if strategy == "ddp":
        devices = None if device.type == "cpu" else [device]
        return nn.parallel.DistributedDataParallel(module, device_ids=devices)
    if strategy == "data_parallel":
        first = device.index or 0
        return nn.DataParallel(module, device_ids=list(range(first, first + world_size)))
    return module


def _batches(
    parameters: Parameters, config: BertConfig, context: Context
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Draw what all ranks work on together, and take this rank's part of it."""
    generator = torch.Generator().manual_seed(context.seed)
    total = parameters.batch * parameters.world_size
    tokens = torch.randint(
        0, config.vocab_size, (BATCHES, total, parameters.seq), generator=generator
    )
    labels = torch.randint(0, LABELS, (BATCHES, total), generator=generator)
    parts = slice(context.rank, None, context.world_size)
    mine = list(zip(tokens[:, parts], labels[:, parts], strict=True))
    if context.device.startswith("cuda"):
        return [(tokens.pin_memory(), labels.pin_memory()) for tokens, labels in mine]
    return mine

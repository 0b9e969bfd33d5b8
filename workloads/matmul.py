"""Multiply two square matrices: the check of the machine, and its ceiling in FLOP/s."""

from dataclasses import dataclass
from typing import Literal

import torch

import _parameters
from ci_perf.workload import Context, Workload

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """`tf32` stores fp32 and multiplies with fewer bits, on GPUs that can."""

    size: _parameters.AtLeastOne = 1024
    dtype: Literal["fp32", "tf32", "bf16"] = "fp32"


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    torch.set_float32_matmul_precision("high" if parameters.dtype == "tf32" else "highest")
    shape, dtype = (parameters.size, parameters.size), DTYPES[parameters.dtype]
    left = torch.randn(shape, device=context.device, dtype=dtype)
    right = torch.randn(shape, device=context.device, dtype=dtype)
    product = torch.empty_like(left)

    return Workload(
        step=lambda: torch.matmul(left, right, out=product),
        items_per_step=2 * parameters.size**3,  # one multiplication and one addition per term
        item_unit="flop",
        output=lambda: product,
        precision=parameters.dtype,
    )

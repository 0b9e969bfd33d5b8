"""Stands in for torch where PYTHONPATH names this folder: a GPU beside the driver of fakes/nvml.c.

SIMULATED says what is wrong with it: "blocking" launches, or an allocator that is "padding".
What a second program holds is in use for the driver, too, unless FAKE_NVML_STATE says what is.
"""

import os
import sys
from pathlib import Path

from tests.fakes.cuda import Cuda, Torch

_WRONG = os.environ.get("SIMULATED", "")
_HELD_BY_ANOTHER = 256 * 2**20
_CUDA = Cuda(is_blocking=_WRONG == "blocking")


def _take(size):
    if size >= _HELD_BY_ANOTHER:
        with Path(os.environ["FAKE_NVML_STATE"]).open("a") as state:
            state.write(f"mem_used={size}\n")
    return _CUDA.allocate(size + 512 if _WRONG == "padding" else size)


sys.modules[__name__] = Torch(_CUDA, _take)  # type: ignore[assignment]  # it plays one

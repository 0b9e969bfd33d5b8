"""Whether a second process computes the same, and finds what the first one has compiled."""

import importlib.util
import itertools
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ci_perf.measuring.probes import Bench, CannotTryError, elsewhere
from ci_perf.measuring.probes.profiles import training
from ci_perf.measuring.probes.steps import median_s
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

_STEPS = 10
_STEADY_STEPS = 20
# Many numbers per place, so that the order in which they are added can matter.
_PLACES, _NUMBERS = 1_000, 1_000_000
# Batch, heads, length, width of a head: as in a small language model.
_ATTENTION = (4, 8, 512, 64)


def numerics(bench: Bench) -> Iterator[Figure]:
    """Train in two fresh processes with one seed; add atomically, and attend, twice in this one."""
    ours = {figure.name: figure.value for figure in training_losses(bench)}
    theirs = elsewhere.figures(bench, "training_losses")
    pairs = [(loss, theirs[name]) for name, loss in ours.items()]
    yield Figure(name="losses_differ", value=max(itertools.starmap(_relative, pairs)))
    yield Figure(name="last_loss", value=pairs[-1][0])
    yield Figure(name="attention_differs", value=_differs(lambda: _attention_gradient(bench)))
    yield Figure(name="atomics_differ", value=_differs(lambda: _added(bench)))


def training_losses(bench: Bench) -> Iterator[Figure]:
    """Train for some steps with fixed seeds; the losses."""
    step: Callable[[], Any] = training(bench)
    for number in range(_STEPS):
        yield Figure(name=f"loss_{number}", value=step().item())


def _relative(first: float, second: float) -> float:
    if math.isnan(first) or math.isnan(second):
        raise CannotTryError("a loss is not a number")
    return abs(first - second) / max(abs(first), abs(second), math.ulp(0))


def _differs(compute: Callable[[], Any]) -> float:
    """Return the largest difference of two results, as a share of the largest number in them."""
    first, second = compute(), compute()
    return float((first - second).abs().max() / first.abs().max())


def _added(bench: Bench) -> object:
    torch = bench.torch
    torch.manual_seed(0)
    places = torch.randint(_PLACES, (_NUMBERS,), device=bench.name)
    numbers = torch.randn(_NUMBERS, device=bench.name)
    return torch.zeros(_PLACES, device=bench.name).index_add_(0, places, numbers)


def _attention_gradient(bench: Bench) -> object:
    """Return the gradient of the queries; in bf16 on a GPU, where fused kernels compute it."""
    torch = bench.torch
    torch.manual_seed(0)
    dtype = torch.float32 if bench.is_cpu else torch.bfloat16
    query, key, value = (
        torch.randn(_ATTENTION, device=bench.name, dtype=dtype, requires_grad=True)
        for _ in range(3)
    )
    attended = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    attended.float().square().mean().backward()
    return query.grad.float()


def compile_caches(bench: Bench) -> Iterator[Figure]:
    """Run the first step of a compiled program in two processes that share caches."""
    _check_compilers(bench)
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "inductor"),
            "TRITON_CACHE_DIR": str(Path(folder) / "triton"),
        }
        cold = elsewhere.figures(bench, "first_step", **caches)
        warm = elsewhere.figures(bench, "first_step", **caches)
    yield Figure(name="cold", value=cold["first"], unit=Unit.SECOND)
    yield Figure(name="warm", value=warm["first"], unit=Unit.SECOND)
    yield Figure(name="warm_over_cold", value=warm["first"] / cold["first"])
    yield Figure(name="steady_over_warm", value=warm["steady"] / warm["first"])


def _check_compilers(bench: Bench) -> None:
    """Raise CannotTryError where there is nothing that compiles."""
    if not any(map(shutil.which, ("c++", "g++", "clang++") if bench.is_cpu else ("cc", "gcc"))):
        raise CannotTryError("there is no C compiler, which torch.compile needs; install gcc")
    if not bench.is_cpu and importlib.util.find_spec("triton") is None:
        raise CannotTryError("there is no Triton, which compiles for GPUs; install triton")


def first_step(bench: Bench) -> Iterator[Figure]:
    """Compile a small program; how long the first and the later steps take."""
    torch = bench.torch
    numbers = torch.randn((256, 256), device=bench.name)
    step = torch.compile(lambda: (numbers.sin() + numbers.cos()).softmax(dim=1).sum())
    yield Figure(name="first", value=bench.device.time_block(step, 1).step_s, unit=Unit.SECOND)
    steady_s = median_s(bench, step, 1, _STEADY_STEPS)
    yield Figure(name="steady", value=steady_s, unit=Unit.SECOND)

"""How fast the device multiplies in each precision, and whether it stays so under load."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ci_perf.judging import peaks
from ci_perf.measuring import canary_programs
from ci_perf.measuring.device import Step
from ci_perf.measuring.probes import Bench, gpu_state
from ci_perf.measuring.probes.steps import median_s, warm
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

# Large enough that a GPU comes near its peak, and that a CPU is done soon.
_SIDE = {"cpu": 512, "cuda": 8192}
_ROUNDS = 11
_WARMUP_S = 0.3
_LOAD_S = 15.0
_CANARY_S = 0.5


def throughput(bench: Bench) -> Iterator[Figure]:
    """Multiply in each precision, and under autocast; hold a GPU against its peaks."""
    rates = _rates(bench)
    for name, rate in rates.items():
        yield Figure(name=name, value=rate, unit=Unit.FLOP_PER_SECOND)
    yield Figure(name="autocast_over_bf16", value=rates["autocast"] / rates["bf16"])
    yield Figure(name="autocast_is_bf16", value=float(_is_cast(bench)))
    if bench.is_cpu:
        return
    machine = gpu_state.machine(bench)
    for name, rate in rates.items():
        peak = peaks.flop_per_s(machine, name)
        if peak is not None:
            yield Figure(name=f"{name}_of_peak", value=rate / peak)


def _rates(bench: Bench) -> dict[str, float]:
    """Return FLOP/s by precision; "autocast" is of fp32 matrices in bf16."""
    torch = bench.torch
    rates = {"fp32": _rate(bench, torch.float32), "bf16": _rate(bench, torch.bfloat16)}
    with torch.autocast(bench.name.partition(":")[0], dtype=torch.bfloat16):
        rates["autocast"] = _rate(bench, torch.float32)
    if bench.is_cpu:
        return rates
    rates["fp16"] = _rate(bench, torch.float16)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    rates["tf32"] = _rate(bench, torch.float32)
    torch.set_float32_matmul_precision(before)
    return rates


def _is_cast(bench: Bench) -> bool:
    """Return whether a product of fp32 matrices is one of bf16 under autocast."""
    torch = bench.torch
    step = _product(bench, 2, torch.float32)
    with torch.autocast(bench.name.partition(":")[0], dtype=torch.bfloat16):
        return bool(step().dtype == torch.bfloat16)


def _rate(bench: Bench, dtype: object) -> float:
    side = _SIDE[bench.name.partition(":")[0]]
    step = _product(bench, side, dtype)
    count = warm(bench, step, _WARMUP_S)
    return 2 * side**3 / median_s(bench, step, count, _ROUNDS)


def _product(bench: Bench, side: int, dtype: object) -> Callable[[], Any]:
    torch = bench.torch
    left = torch.randn((side, side), device=bench.name).to(dtype)
    return lambda: torch.mm(left, left)


def canary_power(bench: Bench) -> Iterator[Figure]:
    """Compare a product of random numbers with one of ones, and canaries around a load."""
    torch = bench.torch
    sizes = msgspec.structs.replace(canary_programs.GPU, warmup_s=_CANARY_S, timed_s=_CANARY_S)
    with torch.inference_mode():
        programs = canary_programs.programs(torch, bench.name, sizes)
        before = _canaries(bench, programs, sizes)
        load_s = _loaded(bench, programs["matmul_random"])
        ones_s = _of_ones(bench, sizes)
        _loaded(bench, programs["matmul_random"], seconds=_CANARY_S)
        after = _canaries(bench, programs, sizes)
    yield Figure(name="random_over_ones", value=load_s / ones_s)
    for name in sorted(before):
        yield Figure(name=f"{name}_after_load", value=after[name] / before[name])


def _canaries(
    bench: Bench, programs: dict[str, Step], sizes: canary_programs.Sizes
) -> Mapping[str, float]:
    return canary_programs.measure(
        bench.device, programs, sizes, clock=lambda: bench.clock() / 1e9
    ).median_s


def _loaded(bench: Bench, step: Step, seconds: float = _LOAD_S) -> float:
    """Repeat a step for a while; return how long it takes in the end."""
    return median_s(bench, step, warm(bench, step, seconds), _ROUNDS)


def _of_ones(bench: Bench, sizes: canary_programs.Sizes) -> float:
    torch = bench.torch
    ones = torch.ones((sizes.side,) * 2, device=bench.name, dtype=getattr(torch, sizes.dtype))
    result = torch.empty_like(ones)
    return _loaded(bench, lambda: torch.mm(ones, ones, out=result), _WARMUP_S + _CANARY_S)

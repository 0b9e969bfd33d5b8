"""What the driver tells of a GPU under load, how fast it is, and whether it stays so."""

import statistics
import time
from typing import Any

import msgspec
import pytest
import torch

from ci_perf.judging import peaks, policy
from ci_perf.measuring import canary_programs, deep_checks, environment_probe
from ci_perf.measuring.monitor import nvml
from ci_perf.model import metrics
from ci_perf.model.facts import DeepOutcome
from tests.gpu.steps import SIDE

LOAD_S = 2.0


@pytest.fixture
def described():
    """What a run says of this machine with one GPU."""
    return environment_probe.describe("cuda:0", 1)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in deep_checks.CHECKS if "cpu" not in name])
def test_a_check_of_the_doctor_passes(described, name):
    tried = deep_checks.run_check(name, deep_checks.open_bench("cuda:0", described.gpus[0]))

    assert tried.outcome is DeepOutcome.PASSED, tried.what


@pytest.mark.gpu
def test_power_energy_and_clock_are_in_the_units_that_are_read(cuda, described):
    step = cuda.product()
    count = cuda.warm(step, LOAD_S)  # power is a mean over the last second
    with nvml.open_gpus(described.gpus) as (gpu,):
        facts: Any = gpu.facts()
        readings: list[Any] = []
        begin, start = gpu.counters().energy_j, time.monotonic()
        while time.monotonic() < start + LOAD_S:
            cuda.device.time_block(step, count)
            readings.append(gpu.readings())
        end, seconds = gpu.counters().energy_j, time.monotonic() - start
    if begin is None or end is None:
        pytest.skip(f"the driver does not tell energy: {gpu.absent}")
    power = statistics.fmean(now.power_w for now in readings)
    clock = statistics.fmean(now.sm_clock_mhz for now in readings)

    # Both are averages, over times that do not begin and end together.
    assert (end - begin) / seconds / power == pytest.approx(1, abs=0.2)
    assert 0.01 <= power / facts.power_limit_w <= 1.2
    assert 0.05 <= clock / facts.sm_clock_max_mhz <= 1.01


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["fp32", "tf32", "fp16", "bf16"])
def test_large_products_reach_a_share_of_the_peak_that_is_below_1(cuda, described, name):
    peak = peaks.flop_per_s(described.environment.hard, name)
    if peak is None:
        pytest.skip(f"the peak of {described.environment.hard} is not known")
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(name, torch.float32)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        rate = 2 * 8192**3 / cuda.median_s(cuda.product(dtype, 8192), 0.3, 11)
    finally:
        torch.set_float32_matmul_precision(before)

    assert 1e-3 <= rate / peak <= 1.02, f"{rate:.3g} of {peak:.3g} FLOP/s"


def test_autocast_computes_in_bf16(timed):
    step = timed.product(side=SIDE["cpu"])

    with torch.autocast(timed.name.partition(":")[0], dtype=torch.bfloat16):
        assert step().dtype == torch.bfloat16


@pytest.mark.gpu
def test_canaries_read_the_same_before_and_after_a_load(cuda):
    sizes = msgspec.structs.replace(canary_programs.GPU, warmup_s=0.5, timed_s=0.5)
    limit = 1 + policy.default_limits()[metrics.CANARY].relative

    def canaries():
        return canary_programs.measure(cuda.device, programs, sizes).median_s

    with torch.inference_mode():
        programs = canary_programs.programs(torch, cuda.name, sizes)
        before = canaries()
        cuda.warm(programs["matmul_random"], 15.0)
        after = canaries()

    ratios = {name: after[name] / before[name] for name in before}
    assert all(1 / limit <= ratio <= limit for ratio in ratios.values()), ratios

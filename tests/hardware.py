"""Runs of one suite on several machines, and a file of prices, all made by hand."""

from ci_perf.judging import value
from ci_perf.judging.value import PricedClass
from ci_perf.model.environment import GpuMachine
from ci_perf.model.hardware import Price
from tests.runs import a_measured, a_run, an_environment

PRICES = """
currency = "EUR"
[price.nvidia-a100]
per_hour = 2.0
as_of = "2026-11-01"
source = "contract 17"
[price.h100-reserved]
machine = "nvidia-h100"
per_hour = 3.0
as_of = "2026-06-01"
source = "a reservation"
[price.nvidia-h100]
per_hour = 5.0
as_of = "2026-11-01"
source = "a list"
"""
# What launches of the same code differ by.
NOISE = (1.0, 1.01, 0.99, 1.002)


def a_gpu(model):
    return GpuMachine(gpu_model=model, gpu_count=1, gpu_memory_bytes=80 * 2**30, mig=False)


def a_machine_run(model, factor, *others, step_s=1e-3, **more):
    """One workload whose step takes `factor` times as long there; and other workloads."""
    workload = a_measured("mlp", *(step_s * factor * noise for noise in NOISE), items_per_step=100)
    return a_run(
        workload,
        *others,
        environment=an_environment(hard=a_gpu(model)),
        id=more.pop("id", f"run-{model.replace(' ', '-')}"),
        **more,
    )


A100 = a_machine_run("NVIDIA A100", 2.0)
H100 = a_machine_run("NVIDIA H100", 1.0)
L4 = a_machine_run("NVIDIA L4", 2.001)


def machines_at_their_prices():
    """Compare three machines, one of them at two prices, one without any."""
    runs = {"a100": A100, "h100": H100, "h100-reserved-for-three-years": H100, "l4": L4}
    prices = {"a100": 2.0, "h100": 5.0, "h100-reserved-for-three-years": 3.0}
    return value.of(
        [
            PricedClass(
                name=name,
                machine=name.partition("-")[0],
                hard=run.environment.hard,
                runs=(run,),
                price=Price(per_hour=prices[name], as_of="2026-11-01", source="invented")
                if name in prices
                else None,
                age_days=22 if name in prices else None,
            )
            for name, run in runs.items()
        ],
        currency="EUR",
    )

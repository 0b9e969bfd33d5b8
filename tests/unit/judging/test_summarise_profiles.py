import itertools

import msgspec
import pytest

from ci_perf.judging import summarise
from tests.runs import MIB, a_gpu_evidence, a_measured, a_process, a_run, an_evidence


def a_variant(compile_, *step_s, amp="none", first_step_s=0.5, **more):
    """One of several ways to run the same model: compiled ones make a graph."""
    return a_measured(
        f"resnet.compile={compile_}.amp={amp}",
        *step_s,
        parameters={"compile": compile_, "amp": amp},
        graphs=int(compile_ != "eager"),
        first_step_s=first_step_s,
        **more,
    )


def profiled(*workloads):
    return {
        profile.workload: profile for profile in summarise.run(a_run(*workloads), label="").profiles
    }


def break_evens(*workloads):
    return {name: one.break_evens for name, one in profiled(*workloads).items() if one.break_evens}


def test_an_epoch_takes_as_many_steps_as_its_items_need():
    workload = a_measured("w", 0.01, 0.02, 0.03, items_per_step=100.0)
    known = msgspec.structs.replace(workload, items_per_epoch=50_000.0)

    assert profiled(known)["w"].epoch_s == pytest.approx(0.02 * 500)
    assert profiled(workload)["w"].epoch_s is None


def test_each_gpu_has_means_over_the_processes_and_its_highest_memory():
    first = a_gpu_evidence(used_peak_bytes=3 * MIB)
    second = a_gpu_evidence(used_peak_bytes=5 * MIB, power_w=None)
    other = a_gpu_evidence(uuid="GPU-1", utilization=None, absent={"utilization": "Not Supported"})
    workload = msgspec.structs.replace(
        a_measured("w", 1e-3),
        processes=(
            a_process(0, evidence=an_evidence(first, other)),
            a_process(1, evidence=an_evidence(second, other)),
        ),
    )

    gpu, unknown = profiled(workload)["w"].gpus
    assert (gpu.uuid, gpu.utilization, gpu.power_w) == ("GPU-0", 0.95, 500.0)
    assert (gpu.memory_peak_bytes, gpu.absent) == (5 * MIB, {})
    assert (unknown.utilization, unknown.memory_peak_bytes) == (None, None)
    assert unknown.absent == {"utilization": "Not Supported"}


def test_without_a_monitor_there_are_no_gpus():
    assert profiled(a_measured("w", 1e-3))["w"].gpus == ()


@pytest.mark.parametrize(
    ("cost_s", "compiled_s"), [(60.0, 0.03), (0.0, 0.03), (-0.1, 0.03), (1, 0.0399)]
)
def test_after_break_even_the_compiled_one_is_ahead_and_one_step_before_it_is_not(
    cost_s, compiled_s
):
    """Added up step by step."""
    ((found,),) = break_evens(
        a_variant("eager", *[0.04] * 3),
        a_variant("inductor", *[compiled_s] * 3, first_step_s=0.5 + cost_s),
    ).values()

    def total_s(first_s, step_s):
        return itertools.accumulate(itertools.chain([first_s], itertools.repeat(step_s)))

    totals = zip(total_s(0.5 + cost_s, compiled_s), total_s(0.5, 0.04), strict=False)
    ahead = next(n for n, (one, other) in enumerate(totals, start=1) if one <= other + 1e-9)
    assert found.steps == ahead
    assert (found.eager, found.cache) == ("resnet.compile=eager.amp=none", "empty")


def test_cold_and_warm_caches_are_told_apart():
    cold, warm = (
        a_variant("inductor", 0.03, first_step_s=first_s, cache=cache).processes[0]
        for first_s, cache in ((60.5, "empty"), (5.5, "filled"))
    )
    compiled = msgspec.structs.replace(a_variant("inductor", 0.03), processes=(cold, warm))

    (found,) = break_evens(a_variant("eager", 0.04), compiled).values()
    assert [(one.cache, one.steps) for one in found] == [("empty", 6001), ("filled", 501)]


def test_there_is_no_break_even_where_not_every_compiled_process_is_faster():
    ((found,),) = break_evens(
        a_variant("eager", 0.04, 0.041), a_variant("inductor", 0.01, 0.0405)
    ).values()

    assert found.steps is None


def test_a_workload_is_compared_with_the_one_that_differs_in_compilation_alone():
    found = break_evens(
        a_variant("eager", 0.04),
        a_variant("eager", 0.02, amp="bf16"),
        a_variant("inductor", 0.03, first_step_s=1.5),
        a_variant("inductor", 0.01, amp="bf16", first_step_s=1.5),
        a_measured("mlp", 0.001, graphs=1),
    )

    assert {name: one.eager for name, (one,) in found.items()} == {
        "resnet.compile=inductor.amp=none": "resnet.compile=eager.amp=none",
        "resnet.compile=inductor.amp=bf16": "resnet.compile=eager.amp=bf16",
    }

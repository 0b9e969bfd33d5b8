import msgspec
import pytest

from ci_perf.judging import summarise
from ci_perf.judging.compare import compare
from ci_perf.model.comparison import Change
from ci_perf.model.process import GeneratedCode, GeneratedKernel, StepPhase, StepPhases
from tests.histories import a_history, sessions_of
from tests.runs import MIB, STEADY, a_gpu_evidence, a_measured, a_process, a_run, an_evidence


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


def test_the_kernels_of_a_base_that_was_not_launched_are_not_known():
    code = GeneratedCode(kernels=(GeneratedKernel(name="add", digest="1"),))
    workload = a_measured("w", *STEADY)
    processes = (msgspec.structs.replace(each, generated=code) for each in workload.processes)
    head = a_run(msgspec.structs.replace(workload, processes=tuple(processes)))

    baselines = msgspec.structs.replace(a_history(*sessions_of()), profiles=())
    (profile,) = compare(baselines, summarise.run(head, label="")).profiles

    assert profile.base
    assert profile.base.generated == GeneratedCode(absent="the base was not launched")


def test_the_items_of_an_epoch_are_known_where_the_workload_says_them():
    workload = a_measured("w", 0.01, items_per_step=100.0)
    known = msgspec.structs.replace(workload, items_per_epoch=50_000.0)

    assert [profiled(each)["w"].items_per_epoch for each in (known, workload)] == [50_000, None]


@pytest.mark.parametrize(
    ("graphs", "absent", "said"),
    [
        (1, {}, None),  # a record of a version that knew no kernels
        (1, {"generated": "out of time"}, "out of time"),
        (1, {"counters": "the process ended before"}, "the process ended before"),
        (0, {"counters": "the process ended before"}, None),  # it compiled nothing
    ],
)
def test_why_kernels_are_not_known_is_told_of_what_compiled(graphs, absent, said):
    workload = a_measured("w", 1e-3, graphs=graphs)
    lost, whole = workload.processes[0], workload.processes[-1]
    lost = msgspec.structs.replace(lost, absent=absent)
    whole = msgspec.structs.replace(whole, generated=GeneratedCode())

    for processes, known in (
        ((lost,), said and GeneratedCode(absent=said)),
        ((lost, whole), GeneratedCode()),
    ):
        side = profiled(msgspec.structs.replace(workload, processes=processes))["w"].head
        assert side.generated == known


def test_the_parts_of_a_step_are_means_over_the_processes():
    def launch(index, **parts):
        phases = {name: StepPhase(host_s=host, device_s=gpu) for name, (host, gpu) in parts.items()}
        return msgspec.structs.replace(
            a_process(index), step_phases=StepPhases(step_s=1.0, phases=phases)
        )

    workload = msgspec.structs.replace(
        a_measured("w", 1e-3),
        processes=(
            launch(0, forward=(0.25, 0.5)),
            launch(1, forward=(0.5, None), backward=(0.5, None)),
        ),
    )

    assert profiled(workload)["w"].head.phases == {
        "forward": StepPhase(host_s=0.375, device_s=0.5),
        "backward": StepPhase(host_s=0.5, device_s=None),
    }


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

    gpu, unknown = profiled(workload)["w"].head.gpus
    assert (gpu.uuid, gpu.utilization, gpu.power_w) == ("GPU-0", 0.95, 500.0)
    assert (gpu.memory_peak_bytes, gpu.absent) == (5 * MIB, {})
    assert (unknown.utilization, unknown.memory_peak_bytes) == (None, None)
    assert unknown.absent == {"utilization": "Not Supported"}


def test_a_step_time_is_that_of_its_row_on_both_sides():
    base, head = (
        summarise.run(
            a_run(a_variant("eager", *steps), a_variant("inductor", *[0.01] * 3)), label=""
        )
        for steps in ((0.03, 0.05, 0.09), (0.02, 0.05, 0.11))
    )

    found = compare(base, head)

    (row,) = (
        row
        for row in found.rows
        if isinstance(row, Change) and row.metric == "step_time_s" and "eager" in row.workload
    )
    eager, compiled = found.profiles
    assert eager.head.step_time_s == row.head != 0.05
    assert eager.base is not None
    assert eager.base.step_time_s == row.base != 0.05
    (gain_s,) = (each.gain_s for each in compiled.break_evens)
    assert gain_s == pytest.approx(row.head - 0.01)


def test_without_a_monitor_there_are_no_gpus():
    assert profiled(a_measured("w", 1e-3))["w"].head.gpus == ()


def test_cold_and_warm_caches_are_told_apart():
    cold, warm = (
        a_variant("inductor", 0.03, first_step_s=first_s, cache=cache).processes[0]
        for first_s, cache in ((60.5, "empty"), (5.5, "filled"))
    )
    uncounted = msgspec.structs.replace(cold, compiles=None)
    processes = (cold, warm, uncounted)
    compiled = msgspec.structs.replace(a_variant("inductor", 0.03), processes=processes)

    (found,) = break_evens(a_variant("eager", 0.04), compiled).values()
    assert [(one.cache, one.cost_s) for one in found] == [("empty", 60.0), ("filled", 5.0)]
    assert [one.gain_s for one in found] == [pytest.approx(0.01)] * 2


def test_a_variant_of_which_no_graph_was_counted_is_not_known_to_be_eager():
    eager = a_variant("eager", 0.04)
    (process,) = eager.processes
    uncounted = msgspec.structs.replace(
        eager, processes=(msgspec.structs.replace(process, compiles=None),)
    )

    assert not break_evens(uncounted, a_variant("inductor", 0.03))


@pytest.mark.parametrize("slowest", [0.04, 0.0405])
def test_there_is_no_break_even_where_not_every_compiled_process_is_faster(slowest):
    ((found,),) = break_evens(
        a_variant("eager", 0.04, 0.041), a_variant("inductor", 0.01, slowest)
    ).values()

    assert not found.is_faster


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

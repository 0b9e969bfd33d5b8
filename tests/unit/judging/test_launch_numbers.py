import math

import msgspec
import pytest

from ci_perf.judging import launch_numbers
from ci_perf.model.process import Ranks, StepPhase, StepPhases, Warmup, Work
from ci_perf.model.run import Pair, Paired
from tests.runs import (
    GPU,
    MIB,
    a_device_memory,
    a_gpu_evidence,
    a_measured,
    a_process,
    a_run,
    an_environment,
    an_evidence,
)


def of_workload(*measured, hard=GPU):
    """The numbers of the first workload's processes, in a run of all of them."""
    run = a_run(*measured, environment=an_environment(hard=hard))
    return launch_numbers.list_workload_numbers(measured[0], run)


ONE, TWO = "finetune.world_size=1", "finetune.world_size=2"


def at_world_size(size, *step_s, items_per_step):
    return a_measured(
        f"finetune.world_size={size}",
        *step_s,
        parameters={"batch": 8, "world_size": size},
        items_per_step=items_per_step,
    )


@pytest.mark.parametrize(("statistic", "step_s"), [("median", 3.0), ("p25", 2.0), ("min", 1.0)])
def test_the_statistic_of_the_run_says_which_block_speaks(statistic, step_s):
    process = a_process(step_s=[5.0, 1.0, 3.0, 2.0, 40.0], statistic=statistic)

    assert launch_numbers.find_own_numbers(process)["step_time_s"] == step_s


def of_pair(base_s, head_s, *, resident=True, statistic="median"):
    """Both step times of a pair with these blocks."""
    pair = Pair(
        first="base",
        resident=resident,
        base=a_process(step_s=base_s, statistic=statistic),
        head=a_process(step_s=head_s, statistic=statistic),
    )
    workload = a_measured("a", 1e-3)
    (numbers,) = launch_numbers.list_pair_numbers(
        Paired(workload="a", pairs=(pair,)), workload, a_run(workload)
    )
    return tuple(side["step_time_s"] for side in numbers)


# Three of five blocks of one side are slow, and two of the other: the machine was, not the code.
DISTURBED = ([2.0, 2.0, 1.0, 1.0, 1.0], [2.2, 2.2, 1.8, 1.1, 1.1])


def test_the_step_times_of_a_resident_pair_have_the_ratio_of_its_blocks():
    base_s, head_s = of_pair(*DISTURBED)

    assert head_s / base_s == pytest.approx(1.1)
    assert head_s * base_s == pytest.approx(1.8 * 1.0)


def test_a_block_without_a_partner_is_left_out_of_the_ratio():
    base_s, head_s = of_pair([1.0, 1.0, 1.0], [1.1, 1.1, 1.1, 9.0])

    assert head_s / base_s == pytest.approx(1.1)


def test_few_blocks_are_trimmed_by_as_much_as_leaves_them_an_error():
    base_s, head_s = of_pair([1.0] * 5, [0.5, 1.0, 1.1, 1.3, 9.0])

    assert head_s / base_s == pytest.approx((1.0 * 1.1 * 1.3) ** (1 / 3))


def test_the_difference_of_two_launches_is_that_of_their_step_times():
    pair = Pair(first="base", base=a_process(step_s=0.2), head=a_process(step_s=0.3))

    assert launch_numbers.step_difference(pair) == pytest.approx(math.log(1.5))


def test_without_a_gpu_there_is_no_power():
    (found,) = of_workload(a_measured("a", 1e-3, evidence=an_evidence()))

    assert "power_w" not in found


def test_of_blocks_that_were_mostly_disturbed_nearly_the_middle_one_speaks():
    """Four of ten heads lost time to something else; of a fifth left out, two would be counted."""
    base_s, head_s = of_pair([1.0] * 10, [1.1] * 6 + [1.5, 1.6, 1.7, 1.8])

    assert head_s / base_s == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("settings", "step_s"),
    [({"resident": False}, (1.0, 1.8)), ({"statistic": "min"}, (1.0, 1.1))],
)
def test_other_pairs_have_the_ratio_of_what_stands_for_each_process(settings, step_s):
    assert of_pair(*DISTURBED, **settings) == pytest.approx(step_s)


def test_a_launch_took_as_long_as_its_phases_to_the_millisecond():
    assert launch_numbers.launch_s(a_measured("a", 1e-3, first_step_s=0.12345)) == 3.823


def test_cpu_time_is_that_of_all_blocks():
    process = a_process(step_s=[5.0, 1.0, 3.0], statistic="min", timed={"cpu_s": (0.9, 0.8, 0.7)})

    assert launch_numbers.find_own_numbers(process)["step_cpu_s"] == pytest.approx(0.8)


def test_what_a_machine_lacks_is_absent_and_not_zero():
    (found,) = of_workload(a_measured("a", 1e-3))

    assert found.keys() == {
        "step_time_s",
        "items_per_s",
        "step_p05_s",
        "step_p95_s",
        "first_step_s",
        "host_rss_peak_bytes",
        "graphs",
        "graph_breaks",
        "recompiles",
    }


@pytest.mark.parametrize(
    ("graphs", "cache", "expected"),
    [
        (0, "empty", {"first_step_s": 30.0}),
        (0, "filled", {"first_step_s": 30.0}),
        (2, "empty", {"compile_cold_s": 29.5}),
        (2, "filled", {"first_step_s": 30.0, "compile_warm_s": 29.5}),
    ],
)
def test_a_first_step_that_compiles_is_another_metric_than_one_that_does_not(
    graphs, cache, expected
):
    process = a_process(step_s=0.5, first_step_s=30.0, graphs=graphs, cache=cache)
    numbers = launch_numbers.find_own_numbers(process)

    names = {"first_step_s", "compile_cold_s", "compile_warm_s"}
    assert {name: numbers[name] for name in names & numbers.keys()} == expected


def test_a_command_has_no_first_step():
    compiled = a_process(step_s=0.5, first_step_s=30.0, graphs=2)
    fresh = msgspec.structs.replace(compiled, warmup=Warmup(steps=0, stopped="stable"))
    numbers = launch_numbers.find_own_numbers(fresh)

    assert not {"compile_cold_s", "first_step_s"} & numbers.keys()


def test_a_first_step_shorter_than_the_others_took_no_time_to_compile():
    process = a_process(step_s=0.5, first_step_s=0.4, graphs=1)

    assert launch_numbers.find_own_numbers(process)["compile_cold_s"] == 0.0


def test_the_device_and_the_host_have_their_parts_of_the_step():
    timed = {"device_s": (3e-3,) * 5, "issue_s": (1e-3,) * 5}
    numbers = launch_numbers.find_own_numbers(a_process(step_s=4e-3, timed=timed))

    assert numbers["device_time_s"] == 3e-3
    assert numbers["host_overhead"] == 0.25


def test_phases_become_shares_of_the_step_in_which_they_were_seen():
    phases = StepPhases(
        step_s=0.010,
        phases={
            "data": StepPhase(host_s=0.004, device_s=None),
            "h2d": StepPhase(host_s=0.009, device_s=0.001),
        },
    )
    numbers = launch_numbers.find_own_numbers(a_process(step_s=99.0, step_phases=phases))

    assert numbers["data_wait"] == pytest.approx(0.4)
    assert numbers["h2d"] == pytest.approx(0.1)


def test_a_copy_without_a_device_clock_is_timed_by_the_host():
    phases = StepPhases(step_s=0.010, phases={"h2d": StepPhase(host_s=0.002, device_s=None)})

    assert launch_numbers.find_own_numbers(a_process(step_phases=phases))["h2d"] == pytest.approx(
        0.2
    )


def test_the_energy_of_all_gpus_is_spread_over_the_items_of_the_timed_region():
    """5 blocks of 50 steps of 8 items share 500 J + 300 J: 0.4 J each."""
    evidence = an_evidence(a_gpu_evidence(), a_gpu_evidence(uuid="GPU-1", energy_j=300.0))
    (found,) = of_workload(a_measured("a", 1e-3, evidence=evidence))

    assert found["energy_j"] == pytest.approx(0.4)
    assert found["power_w"] == pytest.approx(1000.0)


@pytest.mark.parametrize(
    "evidence",
    [
        an_evidence(),
        an_evidence(a_gpu_evidence(energy_j=None)),
        an_evidence(a_gpu_evidence(energy_j=0.0)),
        an_evidence(a_gpu_evidence(), a_gpu_evidence(energy_j=None)),
        an_evidence(a_gpu_evidence(), trouble="the process died before"),
    ],
    ids=["no GPU", "no counter", "a counter that stood still", "half a counter", "no borders"],
)
def test_energy_that_is_not_known_of_the_whole_region_is_absent(evidence):
    (found,) = of_workload(a_measured("a", 1e-3, evidence=evidence))

    assert "energy_j" not in found


def test_a_gpu_has_the_mean_of_its_clock_and_use():
    numbers = launch_numbers.find_own_numbers(a_process(evidence=an_evidence(a_gpu_evidence())))

    assert numbers["sm_clock_mhz"] == pytest.approx(1980.0)
    assert numbers["gpu_util"] == pytest.approx(0.95)


def test_the_share_of_the_peak_is_that_of_the_precision_in_use():
    """4.947e11 FLOPs in 1 ms are 494.7 TFLOP/s: all of an H200 in tf32, half of it in bf16."""
    tf32, bf16 = (
        of_workload(a_measured("a", 1e-3, flops=494_700_000_000, precision=precision))[0]
        for precision in ("tf32", "bf16")
    )

    assert tf32["flop_per_s"] == bf16["flop_per_s"] == pytest.approx(494.7e12)
    assert (tf32["mfu"], bf16["mfu"]) == (pytest.approx(1.0), pytest.approx(0.5))


@pytest.mark.parametrize("precision", ["", "int4"])
def test_without_a_known_peak_there_is_a_rate_and_no_share(precision):
    (found,) = of_workload(a_measured("a", 1e-3, flops=10**9, precision=precision))

    assert found["flop_per_s"] == pytest.approx(1e12)
    assert "mfu" not in found


def test_where_one_process_drives_several_gpus_no_rate_is_claimed_for_one():
    work = {"flops": 10**9, "precision": "bf16", "parameters": {"world_size": 2}}
    ranks = Ranks(world_size=2, restarts=0, backend="nccl", arrival_skew_s=2e-5)
    (spread,) = of_workload(a_measured("a", 1e-3, **work))
    (ranked,) = of_workload(a_measured("a", 1e-3, ranks=ranks, **work))

    assert not {"mfu", "flop_per_s"} & spread.keys()
    assert {"mfu", "flop_per_s"} <= ranked.keys()
    assert ranked["arrival_skew_s"] == 2e-5


def test_counts_and_device_memory_are_taken_as_they_are():
    work = Work(operators=42, flops=None, parameters=None, absent="no formula")
    device = a_device_memory(peak_reserved_bytes=None)
    process = msgspec.structs.replace(a_process(device=device), work=work)
    numbers = launch_numbers.find_own_numbers(process)

    assert (numbers["operators"], numbers["peak_active_bytes"]) == (42.0, MIB)
    assert not {"flops", "peak_reserved_bytes"} & numbers.keys()


def test_scaling_compares_each_process_with_the_single_one_of_the_same_turn():
    """16 items in 1.25 s on two, 8 items in 1 s on one: 12.8 of 16 items a second."""
    two = at_world_size(2, 1.25, 1.0, items_per_step=16)
    one = at_world_size(1, 1.0, 1.0, items_per_step=8)
    found = of_workload(two, one)

    assert [process["scaling_efficiency"] for process in found] == [
        pytest.approx(0.8),
        pytest.approx(1.0),
    ]
    assert "scaling_efficiency" not in of_workload(one, two)[0]


@pytest.mark.parametrize(
    "other",
    [
        a_measured("finetune.world_size=1", 1.0, parameters={"batch": 4, "world_size": 1}),
        a_measured("other.world_size=1", 1.0, parameters={"batch": 8, "world_size": 1}),
        a_measured("finetune.world_size=4", 1.0, parameters={"batch": 8, "world_size": 4}),
    ],
    ids=["other parameters", "another workload", "another world size"],
)
def test_without_the_same_workload_on_one_there_is_no_efficiency(other):
    (found,) = of_workload(at_world_size(2, 1.0, items_per_step=16), other)

    assert "scaling_efficiency" not in found


@pytest.mark.parametrize(
    ("sessions", "has_efficiency"),
    [((["w"], [ONE, TWO]), True), ((["w", ONE], [TWO]), False)],
)
def test_of_a_merged_run_only_the_same_session_says_what_a_single_process_takes(
    sessions, has_efficiency
):
    one, two = (at_world_size(size, 1.0, items_per_step=8 * size) for size in (1, 2))
    every = (one, two, a_measured("w", 1.0))
    (alone,) = a_run(*every).sessions
    merged = tuple(msgspec.structs.replace(alone, workloads=tuple(names)) for names in sessions)

    (numbers,) = launch_numbers.list_workload_numbers(two, a_run(*every, merged_from=merged))

    assert ("scaling_efficiency" in numbers) is has_efficiency


def test_a_turn_that_the_single_process_has_not_run_has_no_efficiency():
    found = of_workload(
        at_world_size(2, 1.0, 1.0, items_per_step=16), at_world_size(1, 1.0, items_per_step=8)
    )

    assert ["scaling_efficiency" in process for process in found] == [True, False]


def test_a_forked_pair_says_nothing_of_how_a_process_starts():
    measured = a_measured("w", 1.0)
    (process,) = measured.processes
    pairs = [Pair(first="base", forked=f, base=process, head=process) for f in (False, True)]
    paired = Paired(workload="w", pairs=tuple(pairs))

    (fresh, _), (forked, _) = launch_numbers.list_pair_numbers(paired, measured, a_run(measured))

    assert fresh.keys() - forked.keys() == {"host_rss_peak_bytes", "first_step_s"}

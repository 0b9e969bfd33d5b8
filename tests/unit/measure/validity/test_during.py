import msgspec
import pytest

from ci_perf.measure.validity import distrust, during
from ci_perf.model.validity import PcieLink, Reason, Span, Status
from tests.runs import a_gpu_evidence, an_evidence

LINK = PcieLink(generation=5, width=16, max_generation=5, max_width=16)


def of_host(world_size=1, **changes):
    """Judge a host that differs from a quiet one in `changes`."""
    quiet = an_evidence()
    host = msgspec.structs.replace(quiet.host, **changes)
    return during.reasons("w", msgspec.structs.replace(quiet, host=host), world_size)


def of_gpu(world_size=1, trouble="", **changes):
    """Judge a GPU that differs from a healthy one in `changes`, over a region of 1 s."""
    evidence = an_evidence(a_gpu_evidence(**changes), trouble=trouble)
    return during.reasons("w", evidence, world_size)


def codes(found):
    return [reason.code for reason in found]


def test_a_quiet_host_and_a_healthy_gpu_are_trusted():
    assert of_host() == of_gpu() == of_gpu(pcie=LINK) == ()


# --- the host


@pytest.mark.parametrize(
    ("changes", "code", "figure"),
    [
        ({"cpu_pressure": 0.35}, "host_pressure", "35%"),
        ({"memory_pressure": 0.11}, "memory_pressure", "11%"),
        ({"throttled_s": 0.12}, "cgroup_throttled", "0.12 s of 1 s"),
    ],
)
def test_a_host_that_was_not_ours_alone_is_degraded_with_the_figure(changes, code, figure):
    (reason,) = of_host(**changes)

    assert (reason.code, reason.status, reason.workload) == (code, Status.DEGRADED, "w")
    assert figure in reason.detail


@pytest.mark.parametrize("absent", ["cpu_pressure", "memory_pressure", "throttled_s"])
def test_a_kernel_that_says_nothing_is_not_distrusted(absent):
    assert of_host(**{absent: None}) == ()


def test_a_little_of_each_is_how_hosts_are():
    assert of_host(cpu_pressure=0.15, memory_pressure=0.04, throttled_s=0.009) == ()


def test_ranks_may_wait_for_each_other():
    assert codes(of_host(cpu_pressure=0.5)) == ["host_pressure"]
    assert of_host(world_size=2, cpu_pressure=0.5) == ()
    assert codes(of_host(world_size=2, cpu_pressure=0.7)) == ["host_pressure"]


# --- the clocks of a GPU


@pytest.mark.parametrize("event", ["hw_thermal_slowdown", "sw_thermal_slowdown"])
def test_heat_that_was_seen_makes_numbers_worthless(event):
    hot = Span(low=60, mean=80, high=94)

    (reason,) = of_gpu(event_reasons=("gpu_idle", event), temperature_c=hot)

    assert (reason.code, reason.status) == ("thermal_throttling", Status.INVALID)
    assert event in reason.detail
    assert "94 °C" in reason.detail


def test_heat_that_only_the_counter_saw_makes_numbers_worthless():
    (reason,) = of_gpu(violations_s={"thermal": 0.02})

    assert reason.code == "thermal_throttling"
    assert "0.02 s of 1 s (by the counter)" in reason.detail


def test_a_counter_that_is_a_hair_off_is_no_heat():
    assert of_gpu(violations_s={"thermal": 0.0005}) == ()


@pytest.mark.parametrize("event", ["hw_slowdown", "hw_power_brake"])
def test_a_slowdown_by_the_board_makes_numbers_worthless(event):
    (reason,) = of_gpu(event_reasons=(event,))

    assert (reason.code, reason.status) == ("hardware_slowdown", Status.INVALID)
    assert event in reason.detail


@pytest.mark.parametrize("cause", ["board_limit", "sync_boost"])
def test_clocks_that_something_else_held_down_are_degraded(cause):
    (reason,) = of_gpu(violations_s={cause: 0.03, "power": 0.5})

    assert (reason.code, reason.status) == ("clocks_held", Status.DEGRADED)
    assert reason.detail.endswith(f"{cause} 0.03 s of 1 s")


def test_what_holds_the_clocks_of_every_gpu_is_only_recorded():
    violations = {"power": 0.9, "reliability": 0.9, "low_utilization": 0.9, "board_limit": 0.005}
    events = ("applications_clocks", "display_clocks", "gpu_idle", "sw_power_cap", "sync_boost")

    assert of_gpu(violations_s=violations, event_reasons=events) == ()


# --- others on a GPU


def test_memory_of_others_before_ours_makes_numbers_worthless():
    (reason,) = of_gpu(used_before_bytes=3 * 2**30)

    assert (reason.code, reason.status) == ("foreign_memory", Status.INVALID)
    assert "found 3072 MiB" in reason.detail


def test_a_second_process_makes_numbers_worthless():
    (reason,) = of_gpu(processes=2)

    assert (reason.code, reason.status) == ("second_process", Status.INVALID)
    assert of_gpu(world_size=2, processes=2) == ()


# --- a GPU in bad health


def test_a_lost_gpu_says_nothing_else():
    (reason,) = of_gpu(lost="GPU is lost", readings=0, processes=7, ecc_errors=3)

    assert (reason.code, reason.status) == ("gpu_lost", Status.INVALID)
    assert "GPU is lost" in reason.detail


def test_memory_errors_make_numbers_worthless():
    (reason,) = of_gpu(ecc_errors=1)

    assert (reason.code, reason.status) == ("ecc_errors", Status.INVALID)


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({"width": 8}, "expected 16 PCIe lanes, found 8"),
        ({"generation": 3}, "expected PCIe generation 5, found 3 under load"),
    ],
)
def test_a_link_below_its_best_is_degraded(changes, figures):
    (reason,) = of_gpu(pcie=msgspec.structs.replace(LINK, **changes))

    assert (reason.code, reason.status) == ("pcie_link", Status.DEGRADED)
    assert figures in reason.detail


def test_one_gpu_of_several_is_named():
    one, other = a_gpu_evidence(uuid="GPU-1"), a_gpu_evidence(uuid="GPU-2", ecc_errors=1)

    (reason,) = during.reasons("w", an_evidence(one, other), 1)

    assert reason.detail.startswith("GPU-2: ")


# --- a blind monitor


@pytest.mark.parametrize(
    "blind",
    [
        {"readings": 0, "absent": {"power_w": "Driver Not Loaded"}},
        {"violations_s": None, "event_reasons": None, "absent": {"power_w": "Driver Not Loaded"}},
    ],
)
def test_a_gpu_whose_clocks_nobody_knows_is_unwatched(blind):
    (reason,) = of_gpu(**blind)

    assert (reason.code, reason.status) == ("unwatched", Status.DEGRADED)
    assert "Driver Not Loaded" in reason.detail


def test_one_of_two_witnesses_of_the_clocks_is_enough():
    assert of_gpu(violations_s=None) == of_gpu(event_reasons=None) == ()


def test_borders_that_were_missed_leave_a_gpu_unwatched_and_a_host_trusted():
    assert codes(of_gpu(trouble="the monitor answered late")) == ["unwatched"]
    assert during.reasons("w", an_evidence(trouble="the monitor answered late"), 1) == ()


def test_a_process_without_evidence_is_unwatched_for_a_reason():
    assert during.unwatched("w", "the monitor ended with code 1") == Reason(
        code="unwatched",
        status=Status.DEGRADED,
        detail="the monitor ended with code 1",
        workload="w",
    )


def test_a_detail_without_end_is_cut():
    assert len(distrust.reason("unwatched", "x" * 50_000).detail) == 1000

import msgspec
import pytest

from ci_perf.measuring import distrust
from ci_perf.model import validity
from ci_perf.model.validity import PcieLink, Reason, Span, Status
from tests.runs import a_gpu_evidence, an_evidence, an_image


@pytest.fixture
def proc(tmp_path):
    """A /proc of our own: a quiet host."""
    (tmp_path / "pressure").mkdir()
    pressed(tmp_path, cpu=1.5, memory=0.1)
    return tmp_path


def pressed(proc, **percents):
    for resource, percent in percents.items():
        text = f"some avg10={percent} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00\n"
        (proc / "pressure" / resource).write_text(text)


@pytest.fixture
def check(proc, tmp_path):
    """Look at the host; the folders are those of this machine."""
    return lambda **where: distrust.of_host(proc=proc, scratch=tmp_path, **where)


def test_a_quiet_host_is_valid(check):
    assert validity.validity_of(check()).status is Status.VALID


@pytest.mark.parametrize(
    ("percents", "code", "figure"),
    [({"cpu": 63.0}, "host_pressure", "63%"), ({"memory": 12.0}, "memory_pressure", "12%")],
)
def test_a_busy_host_is_degraded_with_the_figure(check, proc, percents, code, figure):
    pressed(proc, **percents)

    (reason,) = check()

    assert (reason.code, reason.status) == (code, Status.DEGRADED)
    assert figure in reason.detail


def test_a_host_that_says_nothing_is_not_distrusted(tmp_path):
    assert distrust.of_host(proc=tmp_path / "nothing", scratch=tmp_path) == ()


def test_the_worst_reason_decides(check, proc):
    pressed(proc, cpu=63.0)

    assert validity.validity_of((*check(), distrust.INTERRUPTED)).status is Status.INVALID


def test_a_full_disk_makes_a_run_invalid(tmp_path):
    (reason,) = distrust.of_space(tmp_path, 200 * 2**20, 30 * 2**20)

    assert (reason.code, reason.status) == ("low_disk", Status.INVALID)
    assert reason.detail == f"{tmp_path}: expected 200 MiB free, found 30 MiB"


def test_room_enough_is_no_reason(tmp_path):
    assert distrust.of_space(tmp_path, 200 * 2**20, 200 * 2**20) == ()


def test_the_folder_for_temporary_files_and_shared_memory_are_both_looked_at(check, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()

    reasons = check(shared=shared, min_free_bytes=2**62, min_shared_bytes=2**61)

    assert [reason.code for reason in reasons] == ["low_disk", "low_disk"]
    assert reasons[0].detail.startswith(f"{tmp_path}: expected {2**42} MiB")
    assert reasons[1].detail.startswith(f"{shared}: expected {2**41} MiB")


def test_a_machine_without_shared_memory_is_not_distrusted(check, tmp_path):
    assert check(shared=tmp_path / "nothing") == ()


def test_an_image_that_may_be_another_tomorrow_degrades_the_run():
    (reason,) = distrust.of_image(an_image(reference="perf:dev", is_pinned=False))

    assert (reason.code, reason.status) == ("unpinned_image", Status.DEGRADED)
    assert reason.detail.startswith("perf:dev: expected an image pinned by its digest")


def test_neither_a_pinned_image_nor_none_speaks_against_a_run():
    assert distrust.of_image(an_image()) == ()
    assert distrust.of_image(None) == ()


LINK = PcieLink(generation=5, width=16, max_generation=5, max_width=16)


def of_host(world_size=1, **changes):
    """Judge a host that differs from a quiet one in `changes`."""
    quiet = an_evidence()
    host = msgspec.structs.replace(quiet.host, **changes)
    return distrust.of_process("w", msgspec.structs.replace(quiet, host=host), world_size)


def of_gpu(world_size=1, trouble="", **changes):
    """Judge a GPU that differs from a healthy one in `changes`, over a region of 1 s."""
    evidence = an_evidence(a_gpu_evidence(**changes), trouble=trouble)
    return distrust.of_process("w", evidence, world_size)


def codes(reasons):
    return [reason.code for reason in reasons]


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

    (reason,) = distrust.of_process("w", an_evidence(one, other), 1)

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
    assert distrust.of_process("w", an_evidence(trouble="the monitor answered late"), 1) == ()


def test_a_process_without_evidence_is_unwatched_for_a_reason():
    assert distrust.unwatched_process("w", "the monitor ended with code 1") == Reason(
        code="unwatched",
        status=Status.DEGRADED,
        detail="the monitor ended with code 1",
        workload="w",
    )


def test_a_detail_without_end_is_cut():
    assert len(distrust.reason("unwatched", "x" * 50_000).detail) == 1000

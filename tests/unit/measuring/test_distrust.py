import msgspec
import pytest

from ci_perf.measuring import distrust
from ci_perf.model import validity
from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.task import TaskFailure
from ci_perf.model.validity import Doubt, PcieLink, Reason, Span, Status
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
    return lambda **where: distrust.distrust_host(proc=proc, scratch=tmp_path, **where)


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


def test_what_a_host_does_not_say_or_have_is_not_distrusted(check, tmp_path):
    nothing = tmp_path / "nothing"

    assert distrust.distrust_host(proc=nothing, scratch=tmp_path) == check(shared=nothing) == ()


def test_the_worst_reason_decides(check, proc):
    pressed(proc, cpu=63.0)

    assert validity.validity_of((*check(), distrust.INTERRUPTED)).status is Status.INVALID


def test_a_full_disk_makes_a_run_invalid(tmp_path):
    assert distrust.distrust_space(tmp_path, 200 * 2**20, 200 * 2**20) == ()

    (reason,) = distrust.distrust_space(tmp_path, 200 * 2**20, 30 * 2**20)

    assert (reason.code, reason.status) == ("low_disk", Status.INVALID)
    assert reason.detail == f"{tmp_path}: expected 200 MiB free, found 30 MiB"


def test_the_folder_for_temporary_files_and_shared_memory_are_both_looked_at(check, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()

    reasons = check(shared=shared, min_free_bytes=2**62, min_shared_bytes=2**61)

    assert [reason.code for reason in reasons] == ["low_disk", "low_disk"]
    assert reasons[0].detail.startswith(f"{tmp_path}: expected {2**42} MiB")
    assert reasons[1].detail.startswith(f"{shared}: expected {2**41} MiB")


def test_an_image_that_may_be_another_tomorrow_degrades_the_run():
    assert distrust.distrust_image(an_image()) == distrust.distrust_image(None) == ()

    (reason,) = distrust.distrust_image(an_image(reference="perf:dev", is_pinned=False))

    assert (reason.code, reason.status) == ("unpinned_image", Status.DEGRADED)
    assert reason.detail.startswith("perf:dev: expected an image pinned by its digest")


LINK = PcieLink(generation=5, width=16, max_generation=5, max_width=16)


def of_host(world_size=1, **changes):
    """Judge a host that differs from a quiet one in `changes`."""
    quiet = an_evidence()
    host = msgspec.structs.replace(quiet.host, **changes)
    return distrust.distrust_process("w", msgspec.structs.replace(quiet, host=host), world_size)


def of_gpu(world_size=1, trouble="", **changes):
    """Judge a GPU that differs from a healthy one in `changes`, over a region of 1 s."""
    evidence = an_evidence(a_gpu_evidence(**changes), trouble=trouble)
    return distrust.distrust_process("w", evidence, world_size)


def with_link(**changes):
    return of_gpu(pcie=msgspec.structs.replace(LINK, **changes))


USUAL_S = {"power": 0.9, "reliability": 0.9, "low_utilization": 0.9, "thermal": 0.0005}
USUAL = ("applications_clocks", "display_clocks", "gpu_idle", "sw_power_cap", "sync_boost")


def test_what_hosts_and_gpus_are_like_is_trusted():
    assert of_host() == of_gpu() == with_link() == ()
    assert of_host(cpu_pressure=0.15, memory_pressure=0.04, throttled_s=0.009) == ()
    assert of_host(cpu_pressure=None, memory_pressure=None, throttled_s=None) == ()
    assert of_gpu(violations_s={**USUAL_S, "board_limit": 0.005}, event_reasons=USUAL) == ()
    # Ranks may wait for each other, and all of them use the GPUs.
    assert of_host(world_size=2, cpu_pressure=0.5) == of_gpu(world_size=2, processes=2) == ()
    # Clocks have two witnesses, and one is enough.
    assert of_gpu(violations_s=None) == of_gpu(event_reasons=None) == ()
    assert distrust.distrust_process("w", an_evidence(trouble="the monitor answered late"), 1) == ()


HOT = {"temperature_c": Span(low=60, mean=80, high=94)}
BLIND = {"absent": {"power_w": "Driver Not Loaded"}}
LOST = {"lost": "GPU is lost", "readings": 0, "processes": 7, "ecc_errors": 3}
DEGRADED = ("host_pressure", "memory_pressure", "cgroup_throttled", "clocks_held", "pcie_link")


@pytest.mark.parametrize(
    ("reasons", "code", "figure"),
    [
        (of_host(cpu_pressure=0.35), "host_pressure", "35%"),
        (of_host(memory_pressure=0.11), "memory_pressure", "11%"),
        (of_host(throttled_s=0.12), "cgroup_throttled", "0.12 s of 1 s"),
        (of_host(world_size=2, cpu_pressure=0.7), "host_pressure", "70%"),
        (of_gpu(event_reasons=("hw_thermal_slowdown",), **HOT), "thermal_throttling", "94 °C"),
        (of_gpu(event_reasons=("gpu_idle", "sw_thermal_slowdown")), "thermal_throttling", "sw_"),
        (of_gpu(violations_s={"thermal": 0.02}), "thermal_throttling", "0.02 s of 1 s (by the"),
        (of_gpu(event_reasons=("hw_slowdown",)), "hardware_slowdown", "hw_slowdown"),
        (of_gpu(event_reasons=("hw_power_brake",)), "hardware_slowdown", "hw_power_brake"),
        (of_gpu(event_reasons=("hw_slowdown", "hw_thermal_slowdown")), "thermal_throttling", ""),
        (of_gpu(violations_s={"board_limit": 0.03, "power": 1}), "clocks_held", "limit 0.03 s of"),
        (of_gpu(violations_s={"sync_boost": 0.03}), "clocks_held", "sync_boost 0.03 s of 1 s"),
        (of_gpu(used_before_bytes=3 * 2**30), "foreign_memory", "found 3072 MiB"),
        (of_gpu(processes=2), "second_process", ""),
        (of_gpu(**LOST), "gpu_lost", "GPU is lost"),
        (of_gpu(ecc_errors=1), "ecc_errors", ""),
        (with_link(width=8), "pcie_link", "expected 16 PCIe lanes, found 8"),
        (with_link(generation=3), "pcie_link", "expected PCIe generation 5, found 3 under load"),
        (of_gpu(readings=0, **BLIND), "unwatched", "Driver Not Loaded"),
        (of_gpu(violations_s=None, event_reasons=None, **BLIND), "unwatched", "Driver Not"),
        (of_gpu(trouble="the monitor answered late"), "unwatched", "answered late"),
    ],
)
def test_what_speaks_against_a_process_is_told_with_the_figure(reasons, code, figure):
    (reason,) = reasons

    is_degraded = code in {*DEGRADED, "unwatched"}
    assert reason.status is (Status.DEGRADED if is_degraded else Status.INVALID)
    assert (reason.code, reason.workload) == (code, "w")
    assert figure in reason.detail


def test_one_gpu_of_several_is_named():
    one, other = a_gpu_evidence(uuid="GPU-1"), a_gpu_evidence(uuid="GPU-2", ecc_errors=1)

    (reason,) = distrust.distrust_process("w", an_evidence(one, other), 1)

    assert reason.detail.startswith("GPU-2: ")


def test_a_process_without_evidence_is_unwatched_for_a_reason():
    assert distrust.report_unwatched("w", "the monitor ended with code 1") == Reason(
        code="unwatched",
        status=Status.DEGRADED,
        detail="the monitor ended with code 1",
        workload="w",
    )


def test_a_detail_without_end_is_cut():
    assert len(Doubt.UNWATCHED.reason("x" * 50_000).detail) == 1000


def failed_with(*, exhausted=None, **changes):
    """What the machine did that may have ended a process."""
    failure = TaskFailure(
        phase=Phase.TIMED,
        reason="CUDA error",
        exhausted=exhausted,
        evidence=an_evidence(a_gpu_evidence(**changes)),
    )
    return [(each.code, each.workload) for each in distrust.distrust_failure("w", failure, 1)]


def test_a_failure_is_the_machines_where_the_machine_ends_processes():
    full = Exhausted(kind="device")

    assert failed_with(**LOST) == [("gpu_lost", "")]  # for the whole run
    assert failed_with(ecc_errors=1) == [("ecc_errors", "w")]
    assert failed_with(processes=2, exhausted=full) == [("second_process", "w")]
    assert failed_with(used_before_bytes=3 * 2**30, exhausted=full) == [("foreign_memory", "w")]
    # These end no process.
    assert failed_with(processes=2, event_reasons=("hw_thermal_slowdown",)) == []
    assert failed_with(processes=2, exhausted=Exhausted(kind="host")) == []

"""The real monitor beside a small real worker, with a library that has NVML's own C interface."""

import os
import time

import msgspec
import pytest

from ci_perf.measuring import distrust
from tests import drivers
from tests.processes import below, wait_for_polls
from tests.watched import WatchedWorker, evidence_of


@pytest.fixture
def seen(watch, worker_under_watch, driver):
    """Run a worker to its end; what `meanwhile` says of the driver holds while it is timed."""

    def run(*, before=(), meanwhile=()):
        driver.says(**dict(before))
        with watch(drivers.UUID, environment=driver.environment) as watched:
            worker = worker_under_watch().past("start").at("timing")
            driver.says(**dict(meanwhile))
            worker.finished()
        return evidence_of(watched)

    return run


def codes(evidence, world_size=1):
    """Reasons that are not about the host, which tests cannot keep quiet."""
    reasons = distrust.distrust_process("w", evidence, world_size)
    return [r.code for r in reasons if r.code not in {"host_pressure", "memory_pressure"}]


# --- what is seen


def test_a_healthy_gpu_is_seen_and_nothing_speaks_against_it(seen):
    evidence = seen()

    (gpu,) = evidence.gpus
    assert (gpu.uuid, gpu.readings >= 2, gpu.absent, gpu.lost) == (drivers.UUID, True, {}, "")
    assert gpu.sm_clock_mhz is not None
    assert gpu.sm_clock_mhz.mean == 1980
    assert evidence.trouble == ""
    assert codes(evidence) == []


def test_energy_is_the_difference_of_the_counter_at_the_borders(watch, worker_under_watch, driver):
    driver.says(energy_mj=5_000)
    with watch(drivers.UUID, environment=driver.environment) as watched:
        worker = worker_under_watch().at("start")
        driver.says(energy_mj=7_000)
        worker.past("start").at("timing")
        driver.says(energy_mj=9_500)
        worker.past("timing").at("end")
        driver.says(energy_mj=50_000)
        worker.finished()

    evidence = evidence_of(watched)
    assert evidence.gpus[0].energy_j == 2.5


def test_the_host_and_the_worker_are_seen_over_the_timed_region(seen):
    evidence = seen()

    assert evidence.host.wall_s > 0
    assert evidence.host.cpu_s is not None
    assert evidence.host_rss_peak_bytes is not None
    assert evidence.host_rss_peak_bytes > 2**20
    assert 0 <= evidence.overhead_cpu_s <= evidence.host.wall_s + 1


def test_the_peak_of_memory_outlives_a_worker_that_is_killed(watch, worker_under_watch):
    with watch() as watched:
        worker = worker_under_watch().past("start").at("timing")
        (monitor,) = set(below(os.getpid(), "ci_perf.measuring.monitor")) - {worker.child.pid}
        wait_for_polls(monitor)
        worker.child.kill()
        worker.child.wait()

    evidence = evidence_of(watched)
    assert (evidence.host_rss_peak_bytes or 0) > 2**20
    assert "never ended" in evidence.trouble


def test_a_worker_that_never_begins_is_said_to(watch):
    with watch() as watched:
        pass

    evidence = evidence_of(watched)
    assert "never began" in evidence.trouble
    assert evidence.host_rss_peak_bytes is None


def test_two_ranks_are_timed_from_the_first_that_begins_to_the_last_that_ends(watch, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    path = tmp_path / ("x" * 120)
    with watch() as watched:
        ranks = []
        for here in folders:
            here.mkdir()
            (here / "monitor").symlink_to(path / "monitor")
            ranks.append(WatchedWorker(here, {}))
        for rank in ranks:
            rank.past("start").at("timing")
        ranks[0].finished()
        time.sleep(0.3)
        ranks[1].finished()

    evidence = evidence_of(watched)
    assert evidence.host.wall_s >= 0.3
    assert (evidence.gpus, evidence.trouble) == ((), "")


# --- what speaks against a machine


GIB = 2**30
LOST = "GPU is lost"
BACK = "the counter went from 9 to 1"


@pytest.mark.parametrize(
    ("before", "meanwhile", "facts", "found"),
    [
        ({}, {"violation_thermal": 400_000_000}, {"violations_s.thermal": 0.4}, ["thermal_"]),
        # A power cap alone is recorded, and nothing more.
        (
            {},
            {"violation_power": 900_000_000, "event_reasons": 0x4},
            {"violations_s.power": 0.9, "event_reasons": ("sw_power_cap",)},
            [],
        ),
        (
            {"mem_used": 3 * GIB, "ecc_errors": 4},
            {"mem_used": 20 * GIB, "ecc_errors": 6, "pcie_width": 8},
            {"used_before_bytes": 3 * GIB, "ecc_errors": 2},
            ["foreign", "ecc_errors", "pcie_link"],
        ),
        ({}, {"mem_used": 100 * GIB, "processes": 1}, {"used_peak_bytes": 100 * GIB}, []),
        ({}, {"fail.gpu": drivers.GPU_IS_LOST}, {"lost": LOST, "absent.energy_j": LOST}, ["gpu_l"]),
        ({"energy_mj": 9_000}, {"energy_mj": 1_000}, {"absent.energy_j": BACK}, []),
        ({"fail.nvmlInitWithFlags": 9}, {}, {"readings": 0}, ["unwatched"]),
    ],
)
def test_what_happens_to_a_gpu_between_two_polls_is_seen(seen, before, meanwhile, facts, found):
    evidence = seen(before=before, meanwhile=meanwhile)

    gpu = msgspec.to_builtins(evidence.gpus[0])
    for place, fact in facts.items():
        name, _, key = place.partition(".")
        assert (gpu[name][key] if key else gpu[name]) == fact
    named = zip(sorted(codes(evidence)), sorted(found), strict=True)
    assert all(code.startswith(start) for code, start in named)


def test_a_gpu_that_is_hot_at_a_border_throttles(seen):
    evidence = seen(meanwhile={"event_reasons": 0x40 | 0x4, "temperature": 93})

    (reason,) = (
        r for r in distrust.distrust_process("w", evidence, 1) if r.code == "thermal_throttling"
    )
    assert "hw_thermal_slowdown" in reason.detail
    assert "93 °C" in reason.detail


def test_a_second_process_is_counted(seen):
    evidence = seen(meanwhile={"processes": 2})

    assert codes(evidence) == ["second_process"]
    assert codes(evidence, world_size=2) == []

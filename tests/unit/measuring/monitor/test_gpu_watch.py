import dataclasses

import pytest

from ci_perf.measuring.monitor.gpu_watch import GpuWatch
from ci_perf.measuring.monitor.nvml import Counters, GpuFacts, Readings
from ci_perf.model.validity import PcieLink, Span

FACTS = GpuFacts(
    name="a GPU",
    uuid="GPU-1",
    total_bytes=2**37,
    mig=False,
    ecc=True,
    rows_broken=False,
    power_limit_w=700.0,
    power_default_w=700.0,
    pcie_max_generation=5,
    pcie_max_width=16,
    sm_clock_max_mhz=1980,
)
READINGS = Readings(
    utilization=0.5,
    sm_clock_mhz=1000,
    temperature_c=50,
    power_w=300.0,
    used_bytes=0,
    event_reasons=(),
    processes=1,
    pcie_generation=5,
    pcie_width=16,
)
COUNTERS = Counters(energy_j=100.0, violations_s={"thermal": 1.0}, ecc_errors=3)


class Gpu:
    """A GPU that says what the test has written on it."""

    def __init__(self):
        self.uuid = "GPU-1"
        self.lost = ""
        self.absent: dict[str, str] = {}
        self.now, self.counted = READINGS, COUNTERS

    def facts(self):
        return FACTS

    def readings(self):
        return self.now

    def counters(self):
        return self.counted

    def is_now(self, **changes):
        self.now = dataclasses.replace(self.now, **changes)

    def has_counted(self, **changes):
        self.counted = dataclasses.replace(self.counted, **changes)


@pytest.fixture
def gpu():
    return Gpu()


@pytest.fixture
def watch(gpu):
    return GpuWatch(gpu)


def test_a_reading_is_kept_by_its_lowest_mean_and_highest(gpu, watch):
    watch.begin()
    gpu.is_now(power_w=None)
    watch.poll(timing=True)
    gpu.is_now(power_w=600.0)
    watch.end()

    found = watch.evidence(1.0)
    assert found.power_w == Span(low=300, mean=450, high=600)
    assert found.readings == 3


def test_what_was_read_before_the_timed_region_does_not_count(gpu, watch):
    gpu.is_now(power_w=9.0, event_reasons=("hw_slowdown",))
    watch.poll(timing=True)
    gpu.is_now(power_w=300.0, event_reasons=("sw_power_cap",))
    watch.begin()
    watch.end()

    found = watch.evidence(1.0)
    assert found.power_w == Span(low=300, mean=300, high=300)
    assert found.event_reasons == ("sw_power_cap",)


def test_what_was_read_after_the_timed_region_does_not_count_and_the_last_end_does(gpu, watch):
    watch.begin()
    watch.end()
    gpu.has_counted(energy_j=150.0)
    watch.end()
    gpu.is_now(event_reasons=("hw_slowdown",), used_bytes=5, processes=2)
    gpu.has_counted(energy_j=900.0)
    watch.poll(timing=False)

    found = watch.evidence(1.0)
    assert (found.event_reasons, found.energy_j) == ((), 50)
    assert (found.used_peak_bytes, found.processes) == (5, 2)  # of the whole life


def test_a_slowdown_counts_in_two_readings_as_it_comes_with_a_change_of_clocks(gpu, watch):
    watch.begin()
    gpu.is_now(event_reasons=("hw_slowdown", "hw_thermal_slowdown"))
    watch.poll(timing=True)
    once = watch.evidence(1.0).event_reasons
    watch.end()

    assert once == ("hw_thermal_slowdown",)
    assert watch.evidence(1.0).event_reasons == ("hw_slowdown", "hw_thermal_slowdown")


def test_without_borders_the_whole_life_counts(gpu, watch):
    gpu.has_counted(energy_j=130.0, violations_s={"thermal": 1.25}, ecc_errors=5)

    found = watch.evidence(1.0)
    assert (found.energy_j, found.violations_s, found.ecc_errors) == (30, {"thermal": 0.25}, 2)


@pytest.mark.parametrize(
    ("changes", "name", "why"),
    [
        ({"energy_j": 99.0}, "energy_j", "from 100 to 99"),
        ({"energy_j": 9e9}, "energy_j", "from 100 to 9e+09"),
        ({"ecc_errors": 0}, "ecc_errors", "from 3 to 0"),
        ({"violations_s": {"thermal": 0.5}}, "violations_thermal", "from 1 to 0.5"),
        ({"violations_s": {"thermal": 500.0}}, "violations_thermal", "from 1 to 500"),
    ],
)
def test_a_counter_that_jumps_is_absent_with_both_figures(gpu, watch, changes, name, why):
    watch.begin()
    gpu.has_counted(**changes)
    watch.end()

    found = watch.evidence(2.0)
    assert why in found.absent[name]
    assert getattr(found, name.replace("violations_thermal", "violations_s")) is None


def test_what_the_driver_never_said_is_absent_with_its_answer(gpu):
    gpu.now = Readings(**dict.fromkeys(READINGS.__slots__))
    gpu.counted = Counters(energy_j=None, violations_s={}, ecc_errors=None)
    gpu.absent = {"used_bytes": "Not Supported", "violations_power": "Unknown Error"}

    found = GpuWatch(gpu).evidence(1.0)

    assert found.readings == 0
    assert found.absent["used_peak_bytes"] == "Not Supported"
    assert found.absent["violations_s"] == "Unknown Error"
    assert found.absent["pcie"] == "never read"


def test_a_reading_that_came_once_is_not_absent(gpu, watch):
    gpu.absent = {"power_w": "Unknown Error"}
    gpu.is_now(power_w=None)
    watch.poll(timing=True)

    found = watch.evidence(1.0)
    assert found.power_w is not None
    assert "power_w" not in found.absent


def test_the_link_is_taken_at_its_fastest_and_at_its_narrowest(gpu, watch):
    gpu.is_now(pcie_generation=1, pcie_width=16)
    watch.begin()
    gpu.is_now(pcie_generation=4, pcie_width=8)
    watch.end()

    assert watch.evidence(1.0).pcie == PcieLink(
        generation=4, width=8, max_generation=5, max_width=16
    )


def test_memory_before_ours_is_that_of_the_first_look_unless_it_came_too_late(gpu):
    gpu.is_now(used_bytes=7)
    watch = GpuWatch(gpu)
    gpu.is_now(used_bytes=70)
    watch.begin()

    found = watch.evidence(1.0)
    assert (found.used_before_bytes, found.used_peak_bytes) == (7, 70)
    watch.came_too_late("the worker did not wait")
    found = watch.evidence(1.0)
    assert found.used_before_bytes is None
    assert found.absent == {"used_before_bytes": "the worker did not wait"}

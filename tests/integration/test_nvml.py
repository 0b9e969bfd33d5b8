"""A GPU through the real pynvml and a library with NVML's own C interface."""

import json
import os
import subprocess
import sys

import pytest

from tests import drivers

LOST = "GPU is lost"
# Answers each line of stdin with everything that can be read at that moment.
READER = """
import dataclasses, json, sys
from ci_perf.measuring.monitor import nvml
with nvml.open_gpus(sys.argv[1:]) as gpus:
    for _ in sys.stdin:
        found = [
            {
                **dataclasses.asdict(gpu.facts()),
                **dataclasses.asdict(gpu.readings()),
                **dataclasses.asdict(gpu.counters()),
                "asked_for": gpu.uuid,
                "absent": gpu.absent,
                "lost": gpu.lost,
            }
            for gpu in gpus
        ]
        print(json.dumps(found), flush=True)
"""


class Reader:
    """A child process that reads GPUs whenever it is asked to."""

    def __init__(self, environment, uuids):
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-c", READER, *uuids],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self):
        assert self.child.stdin
        assert self.child.stdout
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


@pytest.fixture(scope="module")
def old_library(tmp_path_factory):
    return drivers.build(tmp_path_factory.mktemp("old_nvml"), "-DOLD_DRIVER")


@pytest.fixture
def old_driver(old_library, tmp_path):
    return drivers.Driver(old_library, tmp_path / "state")


@pytest.fixture
def reading():
    """Start a reader of GPUs, and end it after the test."""
    readers = []

    def start(driver, *uuids):
        readers.append(Reader(driver.environment, uuids or [drivers.UUID]))
        return readers[-1]

    yield start
    for reader in readers:
        reader.child.communicate(timeout=60)
        assert reader.child.returncode == 0


@pytest.fixture
def read(reading):
    """Read one GPU once."""

    def once(driver, *uuids):
        (gpu,) = reading(driver, *uuids).read()
        return gpu

    return once


def test_readings_and_counters_come_in_the_units_of_their_names(driver, read):
    driver.says(util=37, sm_clock=1755, temperature=61, power_mw=250_500)
    driver.says(power_limit_mw=600_000, processes=2, pcie_generation=4, pcie_width=8)
    driver.says(energy_mj=2_500, violation_thermal=1_500_000_000, ecc_errors=3)
    driver.says(mem_used=10 * 2**20, mem_reserved=500 * 2**20)

    gpu = read(driver)

    assert (gpu["name"], gpu["uuid"]) == ("NVIDIA H200", drivers.UUID)
    assert (gpu["total_bytes"], gpu["pcie_max_generation"]) == (141 * 2**30, 5)
    assert (gpu["mig"], gpu["ecc"]) == (False, True)
    assert (gpu["absent"], gpu["lost"]) == ({}, "")
    assert gpu["utilization"] == 0.37
    assert gpu["sm_clock_mhz"] == 1755
    assert (gpu["temperature_c"], gpu["power_w"], gpu["power_limit_w"]) == (61, 250.5, 600)
    assert (gpu["processes"], gpu["pcie_generation"], gpu["pcie_width"]) == (2, 4, 8)
    assert (gpu["energy_j"], gpu["ecc_errors"]) == (2.5, 3)
    # Not what the driver keeps for itself.
    assert gpu["used_bytes"] == 10 * 2**20
    assert gpu["violations_s"].pop("thermal") == 1.5
    assert gpu["violations_s"].keys() == {
        *("board_limit", "low_utilization", "power", "reliability", "sync_boost")
    }


def test_an_old_driver_is_asked_in_the_older_form(old_driver, read):
    old_driver.says(mem_used=10 * 2**20, mem_reserved=500 * 2**20, processes=1, event_reasons=0x4)

    gpu = read(old_driver)

    assert gpu["used_bytes"] == 510 * 2**20
    assert gpu["processes"] == 1
    assert gpu["event_reasons"] == ["sw_power_cap"]
    assert gpu["absent"] == {}


def test_what_changes_is_read_anew(driver, reading):
    reader = reading(driver)
    (before,) = reader.read()
    driver.says(rows_pending=1, mig=1, event_reasons=0x1FF | 1 << 40)  # and one that is not known
    (after,) = reader.read()

    assert (before["rows_broken"], after["rows_broken"], after["mig"]) == (False, True, True)
    assert after["event_reasons"] == [
        *("gpu_idle", "applications_clocks", "sw_power_cap", "hw_slowdown", "sync_boost"),
        *("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake", "display_clocks"),
    ]


def test_what_is_not_supported_is_absent_with_the_reason(driver, read):
    """Which of them answers for which name, the readings above tell by their numbers."""
    asked = (
        *("Name", "UUID", "UtilizationRates", "ClockInfo", "MaxClockInfo", "Temperature"),
        *("PowerUsage", "EnforcedPowerLimit", "PowerManagementDefaultLimit", "MigMode", "EccMode"),
        *("TotalEnergyConsumption", "CurrentClocksEventReasons", "ComputeRunningProcesses_v3"),
        *("TotalEccErrors", "RemappedRows", "CurrPcieLinkGeneration"),
        *("CurrPcieLinkWidth", "MaxPcieLinkGeneration", "MaxPcieLinkWidth"),
    )
    fail = {f"nvmlDeviceGet{name}": drivers.NOT_SUPPORTED for name in asked}

    gpu = read(driver.says(fail=fail))

    missing = {name for name, value in gpu.items() if value is None}
    assert missing >= {
        *("name", "uuid", "utilization", "sm_clock_mhz", "sm_clock_max_mhz"),
        *("temperature_c", "power_w", "power_limit_w", "power_default_w", "energy_j", "mig", "ecc"),
        *("event_reasons", "processes", "ecc_errors", "rows_broken"),
        *("pcie_generation", "pcie_width", "pcie_max_generation", "pcie_max_width"),
    }
    assert {name for name in missing if "pcie" not in name} <= gpu["absent"].keys()
    assert set(gpu["absent"].values()) == {"Not Supported"}
    assert (gpu["lost"], gpu["total_bytes"]) == ("", 141 * 2**30)


def test_what_the_driver_does_not_have_is_absent_in_any_form(driver, read):
    missing = ("ViolationStatus", "TotalEnergyConsumption", "MemoryInfo_v2")
    fail = {f"nvmlDeviceGet{name}": drivers.FUNCTION_NOT_FOUND for name in missing}
    driver.says(fail={**fail, "nvmlDeviceGetMemoryInfo": drivers.NOT_SUPPORTED})

    gpu = read(driver)

    assert (gpu["violations_s"], gpu["energy_j"]) == ({}, None)
    assert gpu["absent"]["violations_thermal"] == "Function Not Found"
    assert (gpu["used_bytes"], gpu["total_bytes"]) == (None, None)
    assert gpu["absent"]["used_bytes"] == gpu["absent"]["total_bytes"] == "Not Supported"
    assert gpu["sm_clock_mhz"] == 1980


def test_a_gpu_that_is_lost_midway_stays_lost_and_is_not_asked_again(driver, reading):
    reader = reading(driver)
    (before,) = reader.read()
    driver.says(fail={"gpu": drivers.GPU_IS_LOST})
    (lost,) = reader.read()
    driver.says(fail={"gpu": 0})
    (after,) = reader.read()

    assert (before["lost"], before["power_w"]) == ("", 120)
    assert (lost["lost"], lost["power_w"]) == ("GPU is lost", None)
    assert (after["lost"], after["power_w"]) == ("GPU is lost", None)
    assert after["absent"]["power_w"] == "GPU is lost"


@pytest.mark.parametrize(
    ("fail", "asked_for", "why", "lost"),
    [
        ({"nvmlDeviceGetHandleByUUID": drivers.GPU_IS_LOST}, drivers.UUID, LOST, LOST),
        ({"nvmlInitWithFlags": drivers.DRIVER_NOT_LOADED}, drivers.UUID, "Driver Not Loaded", ""),
        ({}, "GPU-of-another", "GPU-of-another: Not Found", ""),
    ],
)
def test_a_gpu_that_cannot_be_asked_has_one_reason_for_everything(
    driver, read, fail, asked_for, why, lost
):
    gpu = read(driver.says(fail=fail), asked_for)

    assert (gpu["power_w"], gpu["name"], gpu["violations_s"]) == (None, None, {})
    assert (set(gpu["absent"].values()), gpu["lost"]) == ({why}, lost)


def test_a_machine_without_the_library_is_the_reason_for_everything(read, tmp_path):
    nothing = drivers.Driver(str(tmp_path), tmp_path / "state")

    assert "Not Found" in read(nothing)["absent"]["power_w"]


def test_a_number_that_cannot_be_is_absent_and_shown(driver, read):
    most, longest = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
    wrong = {
        "utilization": ("util", 101),
        "sm_clock_mhz": ("sm_clock", most),
        "temperature_c": ("temperature", most),
        "power_w": ("power_mw", most),
        "power_limit_w": ("power_limit_mw", most),
        "energy_j": ("energy_mj", longest),
        "ecc_errors": ("ecc_errors", longest),
        "used_bytes": ("mem_used", 2**60),
    }

    gpu = read(driver.says(**dict(wrong.values())))

    for name, (_, number) in wrong.items():
        assert gpu[name] is None
        assert str(number) in gpu["absent"][name]


def test_torch_leaves_out_the_prefix_of_a_uuid(driver, read):
    gpu = read(driver, drivers.UUID.removeprefix("GPU-"))

    assert gpu["name"] == "NVIDIA H200"
    assert gpu["asked_for"] == drivers.UUID.removeprefix("GPU-")


@pytest.mark.parametrize("asked_for", ["MIG-11111111", "GPU-11111111", "11111111"])
def test_a_mig_instance_says_what_it_can(driver, read, asked_for):
    driver.says(count=2, **{"1.uuid": "MIG-11111111", "1.mem_used": 7 * 2**20})

    gpu = read(driver, asked_for)

    assert (gpu["uuid"], gpu["used_bytes"]) == ("MIG-11111111", 7 * 2**20)
    assert (gpu["utilization"], gpu["violations_s"]) == (None, {})
    assert gpu["absent"]["utilization"] == "Not Supported"


def test_each_gpu_speaks_for_itself_also_beside_one_that_is_lost(driver, reading):
    driver.says(count=2, **{"1.uuid": "GPU-1", "1.temperature": 90})
    reader = reading(driver, "GPU-1", drivers.UUID)

    second, first = reader.read()
    assert (first["temperature_c"], second["temperature_c"]) == (40, 90)

    driver.says(**{"1.fail.gpu": drivers.GPU_IS_LOST})
    second, first = reader.read()
    assert (first["lost"], second["lost"]) == ("", "GPU is lost")
    assert (first["temperature_c"], second["temperature_c"]) == (40, None)

"""GPUs looked at before a run, through the real pynvml and NVML's own C interface."""

import os

import pytest

from ci_perf.measuring import distrust
from ci_perf.model import task
from ci_perf.model.task import GpuStates
from ci_perf.model.validity import Status
from ci_perf.system import files
from tests import drivers
from tests.processes import run_python

# As the module does, without its pauses.
HASTY = """
import sys
from pathlib import Path
from ci_perf.system import files
from ci_perf.model import task
from ci_perf.measuring import gpu_probe
states = gpu_probe.look(sys.argv[3:], sleep=lambda seconds: None)
files.write(Path(sys.argv[1]) / task.RESULT, states)
"""


@pytest.fixture
def look(tmp_path):
    """Look at GPUs as a child process does; returns what the child left."""

    def run(driver, *uuids, program=("-c", HASTY)):
        uuids = uuids or (drivers.UUID,)
        done = run_python("-P", *program, tmp_path, os.getpid(), *uuids, **driver.environment)
        assert done.returncode == 0, done.stderr
        return files.read(tmp_path / task.RESULT, GpuStates)

    return run


def test_a_gpu_at_rest_is_trusted(driver, look):
    states = look(driver, program=("-m", "ci_perf.measuring.gpu_probe"))

    assert [state.uuid for state in states.gpus] == [drivers.UUID]
    assert [state.total_bytes for state in states.gpus] == [141 * 2**30]
    assert distrust.distrust_gpus(states) == ()


@pytest.mark.parametrize(
    ("keys", "code", "status", "figure"),
    [
        ({"util": 34}, "gpu_busy", Status.INVALID, "34%"),
        ({"mem_used": 5 * 2**30}, "foreign_memory", Status.INVALID, "5120 MiB"),
        ({"processes": 1}, "second_process", Status.INVALID, "1 compute process"),
        ({"ecc_errors": 2}, "ecc_errors", Status.INVALID, "2 uncorrected"),
        ({"rows_pending": 1}, "ecc_errors", Status.INVALID, "rows wait"),
        ({"mig": 1}, "mig_mode", Status.DEGRADED, "MIG"),
        ({"pcie_width": 4}, "pcie_link", Status.DEGRADED, "found 4"),
        ({"power_limit_mw": 400_000}, "power_limited", Status.DEGRADED, "400 W"),
        ({"fail.gpu": drivers.GPU_IS_LOST}, "gpu_lost", Status.INVALID, "GPU is lost"),
    ],
)
def test_each_trouble_of_a_gpu_has_its_code_and_its_figures(
    driver, look, keys, code, status, figure
):
    (reason,) = distrust.distrust_gpus(look(driver.says(**keys)))

    assert (reason.code, reason.status, reason.workload) == (code, status, "")
    assert drivers.UUID in reason.detail
    assert figure in reason.detail


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ({"pcie_generation": 1}, drivers.UUID),
        ({"mem_used": 600 * 2**20, "util": 4}, drivers.UUID),
        ({"count": 2, "mig": 1, "1.uuid": "MIG-1"}, "MIG-1"),
    ],
    ids=["a link at rest", "a desktop", "a MIG instance that was asked for"],
)
def test_what_is_usual_is_trusted(driver, look, keys, asked):
    assert distrust.distrust_gpus(look(driver.says(**keys), asked)) == ()


def test_each_gpu_is_looked_at(driver, look):
    driver.says(count=2, **{"1.uuid": "GPU-1", "1.pcie_width": 1})

    (reason,) = distrust.distrust_gpus(look(driver, drivers.UUID, "GPU-1"))

    assert "GPU-1: before the run: expected 16 PCIe lanes, found 1" in reason.detail


def test_a_driver_that_says_nothing_raises_no_suspicion_and_leaves_its_answer(driver, look):
    states = look(driver.says(fail={"nvmlInitWithFlags": drivers.DRIVER_NOT_LOADED}))

    assert distrust.distrust_gpus(states) == ()
    assert states.gpus[0].absent["mig"] == "Driver Not Loaded"

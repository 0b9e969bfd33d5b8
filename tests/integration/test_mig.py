"""A part of a GPU is known by what NVML says, through the real pynvml and NVML's C interface."""

import json

import pytest

from tests import drivers
from tests.processes import run_python

ASK = """
import json, sys
from ci_perf.measuring import environment_probe
print(json.dumps(environment_probe.identify_gpu(*sys.argv[1:])))
"""
WHOLE = drivers.UUID.removeprefix("GPU-")
H200 = "NVIDIA H200"


def identify(driver, uuid, model=H200, *, visible=""):
    environment = {**driver.environment, "CUDA_VISIBLE_DEVICES": visible}
    return tuple(json.loads(run_python("-P", "-c", ASK, uuid, model, **environment).stdout))


def test_a_whole_gpu_is_no_instance(driver):
    assert identify(driver, WHOLE) == (False, f"GPU-{WHOLE}")


def test_an_instance_is_known_by_its_uuid_whatever_the_name_says(driver):
    driver.says(count=2, mig=1, **{"1.uuid": "MIG-5678"})

    assert identify(driver, "5678") == (True, "MIG-5678")


def test_the_uuid_of_the_whole_leads_to_its_only_instance(driver):
    driver.says(count=2, mig=1, **{"1.uuid": "MIG-5678"})

    assert identify(driver, WHOLE) == (True, "MIG-5678")


def test_of_several_instances_it_is_the_one_that_was_asked_for(driver):
    driver.says(count=3, mig=1, **{"1.uuid": "MIG-5678", "2.uuid": "MIG-9abc"})

    assert identify(driver, WHOLE, visible="MIG-9a") == (True, "MIG-9abc")


def test_among_several_instances_nobody_guesses(driver):
    driver.says(count=3, mig=1, **{"1.uuid": "MIG-5678", "2.uuid": "MIG-9abc"})

    assert identify(driver, WHOLE) == (True, f"GPU-{WHOLE}")


@pytest.mark.parametrize(("model", "prefix"), [(H200, "GPU"), (f"{H200} MIG 1g.18gb", "MIG")])
@pytest.mark.parametrize("silent", ["nvmlInitWithFlags", "nvmlDeviceGetHandleByUUID"])
def test_where_the_driver_says_nothing_the_name_decides(driver, silent, model, prefix):
    driver.says(fail={silent: drivers.DRIVER_NOT_LOADED})

    assert identify(driver, "5678", model) == (prefix == "MIG", f"{prefix}-5678")

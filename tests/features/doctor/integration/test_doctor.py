"""`ci-perf doctor` as a person types it: on this machine, and beside a driver's library."""

import json

import pytest

from tests import drivers
from tests.processes import run_python


def doctor(*arguments, **environment):
    return run_python("-m", "ci_perf", "doctor", *arguments, **environment)


def diagnosis(**environment):
    return json.loads(doctor("--json", **environment).stdout)


def codes(found):
    return [finding["code"] for finding in found["findings"]]


def test_this_machine_can_be_diagnosed_in_words_and_as_json():
    done, text = doctor(CI_PERF_DOCTOR_JSON="1"), doctor().stdout
    found = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert (found["type"], found["schema_version"]) == ("doctor", 1)
    assert "cpu" in found["can_measure"]
    assert "cpu_works" in codes(found)
    assert "can be measured on this machine" in text.splitlines()[0]
    assert "[cpu_works]" in text
    assert "\x1b" not in text  # no colours for a pipe


def test_a_broken_torch_is_exit_code_3_and_the_result_is_still_on_stdout(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: not found')")

    done = doctor("--json", PYTHONPATH=str(tmp_path))

    assert done.returncode == 3, done.stderr
    assert codes(json.loads(done.stdout))[0] == "torch_broken"


def test_a_gpu_machine_with_a_cpu_only_torch_is_named(nvml_library, build_of_torch):
    found = diagnosis(LD_LIBRARY_PATH=nvml_library, **build_of_torch(None))

    assert found["facts"]["graphics"]["nvml"] == {
        "state": "answered",
        "driver": "570.86.15",
        "cuda": "12.8",
        "gpus": [{"name": "NVIDIA H200", "memory_bytes": 141 * 2**30, "trouble": ""}],
    }
    assert codes(found)[0] == "cpu_only_torch"
    assert found["can_measure"] == ["cpu"]


def test_the_torch_that_is_installed_here_is_judged_beside_a_driver(nvml_library):
    found = diagnosis(LD_LIBRARY_PATH=nvml_library)

    built_for = found["facts"]["torch"]["cuda"]
    assert codes(found)[0] == ("cuda_init_error" if built_for else "cpu_only_torch")


def test_a_driver_too_old_for_torch_is_named(driver, build_of_torch):
    found = diagnosis(**driver.says(cuda=11040).environment, **build_of_torch("12.8"))

    assert codes(found)[0] == "driver_too_old"


def test_a_lost_gpu_is_listed_with_its_error(driver, build_of_torch):
    driver.says(fail={"nvmlDeviceGetHandleByIndex_v2": drivers.GPU_IS_LOST})

    found = diagnosis(**driver.environment, **build_of_torch("12.8"))

    (gpu,) = found["facts"]["graphics"]["nvml"]["gpus"]
    assert gpu["name"] == "GPU 0"
    assert "GpuIsLost" in gpu["trouble"]
    assert codes(found)[:2] == ["gpu_lost", "cuda_init_error"]


@pytest.mark.parametrize(
    ("code", "trouble"),
    [(4, "no_permission"), (9, "driver_not_loaded"), (18, "version_mismatch"), (999, "other")],
)
def test_each_refusal_of_nvml_is_told_apart(driver, code, trouble):
    driver.says(fail={"nvmlInitWithFlags": code})

    found = diagnosis(**driver.environment)

    assert found["facts"]["graphics"]["nvml"]["trouble"] == trouble


@pytest.fixture
def build_of_torch(tmp_path):
    """Make a torch that was built for `cuda` and whose kernels fail; returns the environment."""

    def write(cuda):
        (tmp_path / "torch.py").write_text(
            "from types import SimpleNamespace\n"
            "__version__ = '2.13.0'\n"
            f"version = SimpleNamespace(cuda={cuda!r}, hip=None)\n"
            "cuda = SimpleNamespace(device_count=lambda: 0)\n"
            "def ones(*_, **__):\n"
            "    raise RuntimeError('CUDA unknown error')\n"
        )
        return {"PYTHONPATH": str(tmp_path)}

    return write

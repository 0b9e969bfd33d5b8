"""`ci-perf doctor --deep` on this machine, and on a simulated GPU beside a driver's library."""

import json
import os
from functools import partial
from pathlib import Path

import pytest

from ci_perf.measuring.deep_checks import CHECKS
from tests import drivers
from tests.processes import run_python

ROOT = Path(__file__).parents[4]
OF_CPU = ["cpu_time", "cpu_neighbour"]
OF_GPU = ["known_kernel", "one_wait", "nvml_identity", "allocator", "gpu_neighbour"]


@pytest.fixture
def python(tmp_path):
    """Run a module of ours, with a folder of locks of its own."""
    return partial(run_python, "-m", CI_PERF_LOCK_DIR=str(tmp_path / "locks"))


@pytest.fixture
def gpu(driver):
    """Return the variables with which torch is that of a simulated GPU, wherein something is wrong.

    `found` is where torch lies.
    """

    def variables(wrong="", found=ROOT / "tests/fakes/simulated_gpu"):
        paths = os.pathsep.join(map(str, [found, ROOT]))
        return {**driver.environment, "PYTHONPATH": paths, "SIMULATED": wrong}

    return variables


@pytest.fixture
def check(python, gpu):
    """Try one check on the simulated GPU."""

    def run(name, wrong=""):
        done = python("ci_perf.measuring.deep_checks", name, "cuda:0", drivers.UUID, **gpu(wrong))
        return json.loads(done.stdout)

    return run


def checks_of(done):
    return {one["name"]: one for one in json.loads(done.stdout)["deep"]}


def test_a_machine_without_a_gpu_tries_its_cpu_and_says_what_was_skipped(python):
    done = python("ci_perf", "doctor", "--deep", "--json", CUDA_VISIBLE_DEVICES="")

    checks = checks_of(done)
    assert done.returncode == 0, done.stdout
    assert list(checks) == [*OF_CPU, *OF_GPU] == list(CHECKS)
    assert {checks[name]["outcome"] for name in OF_CPU} <= {"passed", "skipped"}
    assert {checks[name]["outcome"] for name in OF_GPU} == {"skipped"}
    assert "needs a GPU" in checks["one_wait"]["what"]


def test_a_gpu_that_does_what_it_should_passes_every_check(python, gpu):
    done = python("ci_perf", "doctor", "--deep", **gpu())

    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed   ")]
    for name, figures in {
        "known_kernel": "1.000 of its length",
        "one_wait": "waited 2 times",
        "nvml_identity": "CUDA computes on NVIDIA H200",
        "allocator": "100,663,296 bytes for tensors of 100,663,296",
        "gpu_neighbour": "by 256 MiB",
    }.items():
        assert any(figures in line and f"[{name}]" in line for line in passed), done.stdout


def test_a_check_that_crashes_has_failed_and_the_others_are_tried(python, gpu, tmp_path):
    simulated = (ROOT / "tests/fakes/simulated_gpu/torch.py").read_text()
    broken = "sys.modules[__name__].profiler = None\n"
    (tmp_path / "torch.py").write_text(simulated + broken)

    done = python("ci_perf", "doctor", "--deep", "--json", **gpu(found=tmp_path))

    checks = checks_of(done)
    assert done.returncode == 3
    assert [name for name in OF_GPU if checks[name]["outcome"] == "failed"] == ["one_wait"]
    assert "The check ended with exit code 1" in checks["one_wait"]["what"]
    assert "CUDA_LAUNCH_BLOCKING" in checks["one_wait"]["next_step"]


@pytest.mark.parametrize(
    ("name", "wrong", "driver_says", "figures"),
    [
        ("known_kernel", "", {"sm_clock": 990}, "0.500 of its length"),
        ("one_wait", "blocking", {}, "19 of them between two steps"),
        ("nvml_identity", "", {"name": "NVIDIA A30"}, "finds NVIDIA A30"),
        ("allocator", "padding", {}, "100,664,320 bytes for tensors of 100,663,296"),
        ("gpu_neighbour", "", {"mem_used": 2**30}, "by 0 MiB"),
    ],
)
def test_a_gpu_that_does_not_fails_the_check_with_its_figures(
    check, driver, name, wrong, driver_says, figures
):
    driver.says(**driver_says)

    tried = check(name, wrong)

    assert tried["outcome"] == "failed"
    assert figures in tried["what"]


@pytest.mark.parametrize(
    ("name", "function", "reason"),
    [
        ("known_kernel", "nvmlDeviceGetClockInfo", "NVML does not tell the clock: Not Supported"),
        ("nvml_identity", "nvmlDeviceGetUUID", "NVML does not tell of this GPU: Not Supported"),
    ],
)
def test_what_the_driver_does_not_tell_is_skipped_with_its_answer(
    check, driver, name, function, reason
):
    driver.says(fail={function: drivers.NOT_SUPPORTED})

    tried = check(name)

    assert (tried["outcome"], tried["what"]) == ("skipped", reason)


def test_containers_are_not_looked_into_so_deeply(python):
    done = python("ci_perf", "doctor", "--deep", "--runner", "docker")

    assert done.returncode == 2
    assert "--deep: expected --runner local, found docker" in done.stderr

"""Probes for real: on this CPU, beside a driver's library, and with `-m gpu` on a GPU."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ci_perf.judging import proof
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import probes
from ci_perf.measuring.monitor.nvml import Readings
from ci_perf.measuring.probes import elsewhere, gpu_state, neighbours, process
from ci_perf.model.proof import Probed
from tests import drivers, probed
from tests.probed import figures, judged, tried

ROOT = Path(__file__).parents[2]
# Ratios of times move when another program takes the CPU meanwhile; these steps hold all the same.
STEADY = ["numerics", "profiler", "throughput"]
OF_PROCESSES = [step for step in proof.STEPS if not step.runs_sessions]


@pytest.fixture
def launcher(tmp_path):
    return LocalLauncher(tmp_path)


@pytest.mark.parametrize("step", STEADY)
def test_a_step_holds_on_a_cpu(launcher, step):
    answer = launcher.probe(step, "cpu", 1, timeout_s=120)

    assert judged(step, answer).outcome == "held"


def test_cpu_time_is_counted_while_busy_and_not_while_asleep(launcher):
    step = judged("clock_resolution", launcher.probe("clock_resolution", "cpu", 1, timeout_s=120))

    assert figures(step)["busy_cpu_over_wall"] > 10 * figures(step)["idle_cpu_over_wall"]
    assert 0 < figures(step)["tick"] < 1


def test_compiled_code_is_there_in_a_second_process(launcher):
    step = judged("compile_caches", launcher.probe("compile_caches", "cpu", 1, timeout_s=300))

    assert step.outcome == "held", step.detail


def test_a_part_that_crashes_says_its_last_words():
    torch = pytest.importorskip("torch")
    bench = probed.on_cpu(torch)

    with pytest.raises(probes.CannotTryError, match="a process for no_such_part ended with 1"):
        elsewhere.probed(bench, "no_such_part")


def test_without_a_compiler_caches_cannot_be_tried(monkeypatch):
    monkeypatch.setenv("PATH", "")
    step = tried("compile_caches", probed.on_cpu(pytest.importorskip("torch")))

    assert step.outcome == "not_tried"
    assert "no C compiler" in step.detail


def test_a_neighbour_is_stopped_and_ended():
    bench = probed.on_cpu(pytest.importorskip("torch"))
    with neighbours.neighbour(bench) as pid:
        os.kill(pid, 0)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_steps_are_timed_alone_and_beside_a_second_process():
    step = tried("two_processes", probed.on_cpu(pytest.importorskip("torch")))

    assert {"beside_stopped", "beside_running", "alone"} == figures(step).keys()


@pytest.fixture
def simulated(driver):
    """Try a step on a simulated GPU, in a process that loads the driver's library."""

    def simulated_step(step):
        answer = subprocess.run(
            [sys.executable, "-m", "tests.probed", step],
            cwd=ROOT,
            env={**os.environ, **driver.environment},
            stdout=subprocess.PIPE,
            check=True,
        )
        return judged(step, msgspec.json.decode(answer.stdout, type=Probed))

    return simulated_step


def test_a_kernel_takes_its_cycles_at_the_clock_of_the_driver(simulated):
    step = simulated("known_kernel")

    assert step.outcome == "held"
    assert figures(step)["sm_clock"] == 1980


def test_a_clock_that_the_driver_does_not_tell_cannot_be_tried(driver, simulated):
    driver.says(fail={"nvmlDeviceGetClockInfo": drivers.NOT_SUPPORTED})
    step = simulated("known_kernel")

    assert (step.outcome, step.detail) == (
        "not_tried",
        "NVML does not tell the clock: Not Supported",
    )


def test_nvml_agrees_with_torch(driver, simulated):
    driver.says(event_reasons=0x4)
    step = simulated("nvml")

    assert step.outcome == "held"
    assert figures(step)["power"] == probed.POWER_W
    assert figures(step)["energy_over_power"] == pytest.approx(1, abs=0.05)
    assert (figures(step)["clock_over_max"], figures(step)["absent"]) == (1, 0)
    assert step.detail == "under load the clocks were held by sw_power_cap"


def test_what_the_driver_does_not_tell_is_counted_and_named(driver, simulated):
    driver.says(fail={"nvmlDeviceGetTotalEnergyConsumption": drivers.NOT_SUPPORTED})
    step = simulated("nvml")

    assert step.outcome == "held"
    assert figures(step)["absent"] == 1
    assert "energy_over_power" not in figures(step)
    assert step.detail == "the driver does not tell energy_j"


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"name": "NVIDIA A30"}, "name_agrees"),
        ({"sm_clock_max": 990}, "clock_over_max"),
        ({"power_limit_mw": 100_000}, "power_over_limit"),
    ],
)
def test_a_driver_that_disagrees_does_not_hold(driver, simulated, keys, name):
    driver.says(**keys)
    step = simulated("nvml")
    bound = next(b for b in proof.of_name("nvml").bounds if b.figure == name)

    assert step.outcome == "did_not_hold"
    assert not bound.least <= figures(step)[name] <= bound.most


def test_an_unknown_gpu_cannot_be_tried(driver, simulated):
    driver.says(uuid="GPU-of-somebody-else")
    step = simulated("nvml")

    assert step.outcome == "not_tried"
    assert "NVML does not tell of this GPU" in step.detail


class HeldMemory:
    """A GPU whose memory and processes a test knows."""

    def __init__(self):
        self.used_bytes, self.processes = 500 * 2**20, 1

    def readings(self):
        absent = dict.fromkeys(Readings.__dataclass_fields__)
        return Readings(**absent | {"used_bytes": self.used_bytes, "processes": self.processes})


@pytest.mark.parametrize(("mib", "outcome"), [(700, "held"), (0, "did_not_hold")])
def test_a_neighbour_is_noticed_by_its_memory(monkeypatch, mib, outcome):
    gpu = HeldMemory()
    monkeypatch.setattr(gpu_state, "opened", lambda _bench: contextlib.nullcontext(gpu))

    @contextlib.contextmanager
    def start(_bench):
        gpu.used_bytes += mib * 2**20
        gpu.processes += 1
        yield 1

    step = tried("foreign_process", probe=lambda bench: neighbours.foreign_process(bench, start))

    assert step.outcome == outcome
    assert figures(step)["processes"] == 1


@pytest.mark.gpu
@pytest.mark.parametrize("step", [step.name for step in OF_PROCESSES if "cuda" in step.devices])
def test_a_step_holds_on_a_gpu(launcher, step):
    answer = launcher.probe(step, "cuda:0", 1, timeout_s=300)

    assert judged(step, answer).outcome == "held", answer


def test_a_process_says_that_torch_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)

    assert process.tried("harness", "cpu", 1).not_tried == "torch is not installed here"

"""Probes of a proof, tried on simulated streams, and what came of them.

`python -m tests.probed STEP` prints what a step says of a simulated GPU beside the driver that
FAKE_NVML_STATE names: it draws `POWER_W` watts on `now`.
"""

import os
import sys
from pathlib import Path

import msgspec

from ci_perf.judging import proof
from ci_perf.measuring import probes
from ci_perf.measuring.device import CpuDevice, CudaDevice
from ci_perf.measuring.probes import Bench, process
from ci_perf.report import proof_words
from tests import drivers
from tests.fakes.cuda import Torch

POWER_W = 350
_SAID_EVERY_NS = 20_000_000


def a_bench(torch=None, **more):
    torch = torch or Torch()
    device = CudaDevice(torch.cuda, 0, torch.cuda.clock)
    return Bench(
        torch=torch,
        device=device,
        name="cuda:0",
        clock=torch.cuda.clock,
        sleep=lambda seconds: torch.cuda.host_work(seconds * 1e9),
        **more,
    )


def on_cpu(torch):
    return Bench(torch=torch, device=CpuDevice(), name="cpu")


def judged(step, probed):
    """Judge what a step left; each of its figures has words, and one without a unit says what."""
    for figure in probed.figures:
        known = proof_words.of_figure(step, figure.name)
        assert known, f"{step}: {figure.name} has no words"
        is_plain = figure.unit is None
        says_so = "÷" in known[0] or known[0].endswith(("?", "plain number"))
        assert not is_plain or says_so, f"{step}: {figure.name}: {known[0]}"
    return proof.judged(proof.of_name(step), probed, 1.0)


def tried(step, bench=None, probe=None):
    """Return the step as it stands in a proof."""
    return judged(step, process.probed(probe or probes.of_step(step), bench or a_bench()))


def figures(step):
    return {figure.name: figure.value for figure in step.figures}


def simulated(step, driver):
    """Return what a step says of a GPU whose energy grows with the simulated time."""
    torch = Torch()
    cuda, said_at = torch.cuda, [-_SAID_EVERY_NS]

    def say():
        if cuda.now >= said_at[0] + _SAID_EVERY_NS:
            said_at[0] = cuda.now
            driver.says(energy_mj=int(POWER_W * cuda.now / 1e6))

    driver.says(power_mw=POWER_W * 1000, sm_clock=cuda.clock_mhz, mem_total=cuda.total)
    cuda.waited = say
    return process.probed(probes.of_step(step), a_bench(torch))


if __name__ == "__main__":
    state = Path(os.environ["FAKE_NVML_STATE"])
    keys = dict(line.split("=", 1) for line in state.read_text().splitlines())
    speaking = drivers.Driver("", state).says(**keys)
    sys.stdout.buffer.write(msgspec.json.encode(simulated(sys.argv[1], speaking)))

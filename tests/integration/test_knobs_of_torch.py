"""Knobs of torch are read in whichever way a workload has turned them; reading loses no number."""

import json
import subprocess
import sys

import pytest

from ci_perf.measuring import knobs
from ci_perf.model.process import WorkerResult
from tests.launches import HEAD

# What is turned cannot be turned back, so each way has a fork of one child: torch is imported once.
CHILD = """
import json, os, sys
import torch
from ci_perf.measuring import knobs
from ci_perf.model.suite import Protocol
for way in json.loads(sys.argv[1]):
    if not os.fork():
        knobs.fix_libraries(Protocol())
        exec(way)
        print(json.dumps(knobs.read_knobs()), flush=True)
        os._exit(0)
    os.wait()
"""
TURNED = {
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'": ("cuda_matmul_fp32_precision", "tf32"),
    "torch.backends.cudnn.conv.fp32_precision = 'tf32'": ("cudnn_conv_fp32_precision", "tf32"),
    "torch.backends.cudnn.rnn.fp32_precision = 'tf32'": ("cudnn_rnn_fp32_precision", "tf32"),
    "torch.backends.cudnn.fp32_precision = 'tf32'": ("cudnn_fp32_precision", "tf32"),
    "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'": (
        "mkldnn_matmul_fp32_precision",
        "bf16",
    ),
    "torch.backends.fp32_precision = 'tf32'": ("fp32_precision", "tf32"),
    "torch.set_float32_matmul_precision('high')": ("float32_matmul_precision", "high"),
    "torch.backends.cudnn.benchmark = True": ("cudnn_benchmark", True),
}


@pytest.fixture(scope="module")
def held():
    """Return the knobs after each way of turning one."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(list(TURNED))], stdout=subprocess.PIPE, check=True
    )
    return dict(zip(TURNED, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("way", TURNED)
def test_a_knob_is_recorded_however_the_workload_has_turned_it(held, way):
    name, value = TURNED[way]

    assert held[way][name] == value
    assert held[way]["torch_threads"] == 1


def test_a_workload_that_uses_the_newer_names_keeps_its_times(launch):
    result = launch(
        HEAD + "import torch\n"
        "def build(context):\n"
        "    torch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
        "    torch.backends.cudnn.conv.fp32_precision = 'tf32'\n"
        "    return Workload(step=lambda: None)\n"
    )

    assert isinstance(result, WorkerResult), result
    assert result.knobs["cuda_matmul_fp32_precision"] == "tf32"
    assert "float32_matmul_precision" not in result.knobs


def test_a_knob_that_this_torch_does_not_have_is_absent():
    def missing():
        raise AttributeError("fp32_precision")

    assert knobs._read(missing) is None

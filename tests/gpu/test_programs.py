"""A second process computes the same and finds what the first has compiled; traces see it all."""

import importlib.util
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
import torch

from ci_perf.features.explain.worker import timeline

# A training step of two layers, with fixed seeds.
TRAINING = """
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(0)
device = sys.argv[1]
layers = torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Linear(256, 1)
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn((256, 256), device=device)
def step():
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""
LOSSES = f"{TRAINING}print([step().item() for _ in range(10)])\n"
# How long the first and the later steps of a compiled program take.
COMPILED = """
import statistics, sys, torch
from ci_perf.measuring.device import open_device
numbers, device = torch.randn((256, 256), device=sys.argv[1]), open_device(sys.argv[1])
step = torch.compile(lambda: (numbers.sin() + numbers.cos()).softmax(dim=1).sum())
print(device.time_block(step, 1).step_s)
print(statistics.median(device.time_block(step, 1).step_s for _ in range(20)))
"""


def said_by(source, name, **variables):
    return subprocess.run(
        [sys.executable, "-c", source, name],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def test_a_training_step_with_fixed_seeds_leaves_equal_losses_in_two_processes(timed):
    first, second = (said_by(LOSSES, timed.name) for _ in range(2))

    assert "nan" not in first
    assert first == second


def test_a_second_process_finds_what_the_first_has_compiled(timed, tmp_path):
    if not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler")
    if timed.name != "cpu" and not importlib.util.find_spec("triton"):
        pytest.skip("torch.compile needs Triton on a GPU")
    caches = {
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
    }

    (cold, _), (warm, steady) = (
        map(float, said_by(COMPILED, timed.name, **caches).split()) for _ in range(2)
    )

    assert warm < 0.9 * cold
    assert steady < 0.5 * warm


def test_a_trace_has_operators_and_links_the_work_of_a_gpu_to_them(timed):
    scope: dict[str, Any] = {}
    source = TRAINING.replace("sys.argv[1]", repr(timed.name))
    exec(compile(source, "training", "exec"), scope)
    timed.warm(scope["step"], 0.3)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if timed.name != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)

    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(5):
            scope["step"]()
        timed.device.synchronize()

    operators = [each for each in profiler.key_averages() if each.key.startswith("aten::")]
    assert sum(each.count for each in operators) > 100
    _, device = timeline.read_times(profiler.events(), profiler.key_averages(), 5)
    if timed.name == "cpu":
        assert device is None
        return
    assert device is not None
    assert device.unlinked <= 0.01 * device.work
    assert sum(each.self_device_time_total for each in operators) > 0
    covered: float = device.busy_s + sum(part.idle_s for part in device.idle)
    assert covered / device.span_s == pytest.approx(1, abs=0.001)

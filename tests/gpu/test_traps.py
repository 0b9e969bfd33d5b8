"""Traps that only a real GPU shows, as relations: no absolute time stands here."""

import os
import signal
import subprocess
import sys

import pytest

from ci_perf.measuring.device import open_device

pytestmark = pytest.mark.gpu

# A kernel of some milliseconds, without end, in a process of its own.
NEIGHBOUR = """
import torch
torch.cuda._sleep(1)
torch.cuda.synchronize()
print("ready", flush=True)
while True:
    torch.cuda._sleep(10_000_000)
    torch.cuda.synchronize()
"""
# Which allocator there is, is settled when torch is imported.
PEAKS = """
import torch
from ci_perf.measuring.device import open_device
device = open_device("cuda:0")
device.reset_peaks()
held = torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda:0")
(memory,) = device.memory()
print(torch.cuda.get_allocator_backend(), memory.peak_allocated_bytes, memory.alloc_retries)
"""


@pytest.fixture
def gpu():
    return open_device("cuda:0")


@pytest.fixture
def sleep(gpu):
    """A step that keeps the device busy for some milliseconds; it has reached its clocks."""
    import torch

    def step():
        torch.cuda._sleep(10_000_000)

    gpu.time_block(step, 100)
    return step


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.filterwarnings("default")  # the compiler gives advice about TF32, and more
@pytest.mark.usefixtures("sleep")
def test_events_see_the_work_of_compiled_code(gpu, mode):
    import torch

    def matmuls(count):
        @torch.compile(mode=mode)
        def multiply(left, right):
            for _ in range(count):
                left = torch.relu(left @ right)
            return left

        left, right = (torch.randn(4096, 4096, device="cuda:0") / 64 for _ in range(2))
        gpu.time_block(lambda: multiply(left, right), 5)
        return gpu.time_block(lambda: multiply(left, right), 10)

    few, many = matmuls(2), matmuls(8)

    assert 2.5 * few.device_s < many.device_s < 6 * few.device_s
    assert many.device_s == pytest.approx(many.step_s, rel=0.1)


def test_a_step_that_waits_for_the_device_takes_as_long_to_queue_as_to_do(gpu, sleep):
    import torch

    loss = torch.zeros(1, device="cuda:0")

    def step():
        sleep()
        loss.item()

    block = gpu.time_block(step, 10)

    assert block.issue_s > 0.8 * block.step_s


def test_running_out_of_memory_is_counted_and_the_next_block_works(gpu, sleep):
    import torch

    _, total = torch.cuda.mem_get_info()
    gpu.reset_peaks()

    with pytest.raises(torch.OutOfMemoryError):
        gpu.time_block(lambda: torch.empty(2 * total, dtype=torch.uint8, device="cuda:0"), 3)

    assert gpu.memory()[0].out_of_memory >= 1
    assert gpu.time_block(sleep, 3).device_s > 0


def test_a_reset_forgets_that_memory_ran_out(gpu):
    import torch

    _, total = torch.cuda.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2 * total, dtype=torch.uint8, device="cuda:0")

    gpu.reset_peaks()

    assert gpu.memory()[0].out_of_memory == 0


def test_memory_that_ran_out_in_pieces_is_free_for_the_next_workload(gpu):
    import torch

    free, _ = torch.cuda.mem_get_info()
    piece = free // 4
    held = []

    def step():
        held.append(torch.empty(piece, dtype=torch.uint8, device="cuda:0"))

    with pytest.raises(torch.OutOfMemoryError):
        gpu.time_block(step, 10)
    held.clear()
    torch.cuda.empty_cache()

    assert torch.cuda.mem_get_info()[0] > free - piece


def test_two_processes_take_turns_and_a_stopped_one_costs_nothing(gpu, sleep):
    alone = gpu.time_block(sleep, 50)
    with subprocess.Popen(
        [sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE, text=True
    ) as neighbour:
        try:
            assert neighbour.stdout is not None
            assert neighbour.stdout.readline() == "ready\n"
            together = gpu.time_block(sleep, 50)
            os.kill(neighbour.pid, signal.SIGSTOP)
            gpu.time_block(sleep, 100)  # what was queued still runs to its end
            stopped = gpu.time_block(sleep, 50)
        finally:
            neighbour.kill()

    assert together.device_s > 1.3 * alone.device_s
    assert stopped.step_s == pytest.approx(alone.step_s, rel=0.02)


def test_another_allocator_leaves_absent_what_it_does_not_count():
    variables = dict.fromkeys(
        ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"), "backend:cudaMallocAsync"
    )
    done = subprocess.run(
        [sys.executable, "-c", PEAKS],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )

    backend, *counts = done.stdout.split()
    assert backend == "cudaMallocAsync"
    assert "0" not in counts, f"peak and retries: {counts}"

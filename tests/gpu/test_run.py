"""A run on a real GPU through the front door: figures of the device, and memory that runs out."""

import pytest

from ci_perf.model.process import Phase
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.projects import Project

pytestmark = pytest.mark.gpu

BUSY = '''"""Keeps the GPU busy."""
import torch
from ci_perf.workload import Workload

def build(context):
    left = torch.randn(4096, 4096, device=context.device)
    return Workload(step=lambda: left @ left)
'''
IDLE = '''"""Launches many kernels that have next to nothing to do."""
import torch
from ci_perf.workload import Workload

def build(context):
    number = torch.zeros(1, device=context.device)
    return Workload(step=lambda: [number.add_(1) for _ in range(200)])
'''
GREEDY = '''"""Asks for more and more memory."""
import torch
from ci_perf.workload import Workload

def build(context):
    piece = torch.cuda.mem_get_info()[1] // 8
    held = []
    return Workload(
        step=lambda: held.append(torch.empty(piece, dtype=torch.uint8, device=context.device))
    )
'''


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of all three, the greedy one in the middle."""
    project = Project(tmp_path_factory.mktemp("gpu"))
    for name, body in (("busy", BUSY), ("greedy", GREEDY), ("idle", IDLE)):
        project.workload(name, body, build="")
    project.suite("busy", "greedy", "idle")

    done = project.run("run", "--device", "cuda", "--processes", "3")

    assert done.code == 3, done.err
    return files.read(project.root / "run.json", Run)


@pytest.fixture(scope="module")
def measured(run):
    return {workload.workload: workload.processes[0] for workload in run.measured}


def test_a_step_of_one_large_product_is_device_bound(measured):
    timed = measured["busy"].timed

    assert min(timed.issue_s) < 0.3 * min(timed.block_s)
    assert min(timed.device_s) == pytest.approx(min(timed.block_s), rel=0.1)


def test_a_step_of_many_small_kernels_is_launch_bound(measured):
    timed = measured["idle"].timed

    assert min(timed.issue_s) > 0.5 * min(timed.block_s)


def test_the_first_launches_count_what_a_step_makes_the_gpu_do(run):
    """To start the profiler takes as long as the rest of a short launch."""
    works = {
        each.workload: [process.device_work for process in each.processes] for each in run.measured
    }

    assert [work and work.launched for work in works["idle"]] == [200, 200, None]
    assert [work and work.host_waits for work in works["idle"]] == [0, 0, None]
    assert works["busy"][0] == works["busy"][1]
    assert works["busy"][2] is None


def test_device_memory_is_what_the_workload_holds(measured):
    matrix = 4096 * 4096 * 4

    memory = measured["busy"].memory.device

    assert memory.peak_allocated_bytes >= 2 * matrix
    assert (memory.alloc_retries, memory.out_of_memory) == (0, 0)


def test_running_out_of_memory_is_told_with_peaks_and_the_summary_of_the_allocator(run):
    (failed,) = run.failed

    assert failed.workload == "greedy"
    assert failed.phase in {Phase.FIRST_STEP, Phase.FINGERPRINT, Phase.WARMUP, Phase.TIMED}
    assert failed.exhausted.kind == "device"
    assert failed.exhausted.device.peak_allocated_bytes > 0
    assert "CUDA memory summary" in failed.exhausted.allocator


def test_the_workload_after_the_greedy_one_starts_from_a_clean_device(measured):
    assert measured["idle"].memory.device.peak_reserved_bytes < 2**30

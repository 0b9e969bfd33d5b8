"""What a launch gives to its process, and keeps from one process to the next: for real."""

import os
import signal

import msgspec
import pytest

from ci_perf.launch import exit_status, local, monitoring, run_task
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import distrust
from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.task import GpuStates, MachineDescription
from tests import drivers
from tests.launches import a_task, failure_of, result_of

BUILD = "from ci_perf.workload import Workload\ndef build(c):\n    return Workload(step=step)\n"
# Room for a Python without torch, and for one with it.
GIB = 2**30
# Says whether its folder of compiled code was there before, and leaves something in it.
CACHED = """
import os, pathlib
places = [pathlib.Path(os.environ[f"{name}_CACHE_DIR"]) for name in ("TORCHINDUCTOR", "TRITON")]
found = [place.exists() for place in places]
for place in places:
    place.mkdir(parents=True, exist_ok=True)
raise ValueError(found)
"""
# Leaves something there as torch does, and measures.
COMPILING = """
import os, pathlib
def step():
    place = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    place.mkdir(parents=True, exist_ok=True)
    (place / "kernel.so").touch()
"""
NEW, OLD = "ValueError: [False, False]", "ValueError: [True, True]"
# Its process unpickles `answer` from the workload file, as spawned workers of a loader do.
SPAWNING = """
import multiprocessing
def answer(pipe):
    while True:
        pipe.send(2 * pipe.recv())
CONTEXT = multiprocessing.get_context("{method}")
def step():
    near.send(21)
    assert near.recv() == 42
"""
BUILD_SPAWNING = """
from ci_perf.workload import Workload
def build(c):
    global near
    near, far = CONTEXT.Pipe()
    process = CONTEXT.Process(target=answer, args=(far,), daemon=True)
    process.start()
    return Workload(step=step, teardown=process.kill)
"""


@pytest.fixture
def task(tmp_path):
    """Make a task of a workload that consists of this source; some import torch beside others."""

    def make(source, *, name="it", **protocol):
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        settings = {"timeout_s": 60, "monitor_hz": 0, **protocol}
        return a_task(file, protocol=settings, workload={"id": name})

    return make


def process_of(outcome):
    """Return what was measured; failure would be a surprise."""
    return result_of(outcome).process


def exhausted(failure):
    """Return what is known of memory that ran out."""
    assert failure.exhausted is not None, failure.reason
    return failure.exhausted


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_find_what_the_workload_file_defines(task, tmp_path, method):
    source = SPAWNING.format(method=method) + BUILD_SPAWNING

    process = process_of(LocalLauncher(tmp_path).launch(task(source)))

    assert process.timed.block_s


@pytest.mark.parametrize(
    ("imported", "takes", "limit", "reason"),
    [
        ("", "bytearray(64 * 2**30)", 4 * GIB, "MemoryError"),
        ("import torch\n", "torch.empty(2**36, dtype=torch.uint8)", 16 * GIB, "can't allocate mem"),
    ],
    ids=["Python", "torch"],
)
def test_a_limit_of_memory_makes_a_failure_that_says_so(
    task, tmp_path, imported, takes, limit, reason
):
    hog = f"{imported}def step():\n    {takes}\n"

    failure = failure_of(
        LocalLauncher(tmp_path).launch(task(hog + BUILD, memory_limit_bytes=limit))
    )

    assert failure.phase is Phase.FIRST_STEP
    assert reason in failure.reason
    assert exhausted(failure).kind == "limit"
    assert exhausted(failure).host_rss_peak_bytes > 2**20
    assert exhausted(failure).device is None


def test_a_gpu_without_memory_is_told_from_a_host_without(task, tmp_path):
    """torch raises this on a GPU; here the workload does, there being none."""
    hog = "import torch\ndef step():\n    raise torch.OutOfMemoryError('CUDA out of memory.')\n"

    failure = failure_of(LocalLauncher(tmp_path).launch(task(hog + BUILD)))

    assert failure.reason == "OutOfMemoryError: CUDA out of memory."
    assert exhausted(failure).kind == "device"
    assert exhausted(failure).device is None  # absent, not zero


@pytest.mark.gpu
def test_a_gpu_that_has_no_more_memory_is_clean_for_the_next_process(task, tmp_path):
    hog = (
        "import torch\nkept = []\ndef step():\n    while True:\n"
        "        kept.append(torch.empty(2**30, dtype=torch.uint8, device='cuda'))\n"
    )
    launcher = LocalLauncher(tmp_path)
    machine = launcher.describe("cuda:0", 1, 1)
    assert isinstance(machine, MachineDescription), machine.reason
    todo = msgspec.structs.replace(task(hog + BUILD), device="cuda:0", gpus=machine.gpus)

    found = exhausted(failure_of(launcher.launch(todo)))
    states = launcher.look(machine.gpus)

    assert found.kind == "device"
    assert found.device is not None
    assert found.device.peak_allocated_bytes > 2**30
    assert found.device.out_of_memory > 0
    assert "CUDA" in found.allocator
    assert isinstance(states, GpuStates), states.reason
    assert not any(distrust.foreign_memory(gpu.used_bytes) for gpu in states.gpus)


def test_a_process_that_the_kernel_kills_for_memory_is_known_by_its_count(task, tmp_path):
    """The kernel's part is played: the count rises, the process gets SIGKILL."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/\n")
    events = tmp_path / "memory.events"
    events.write_text("oom 0\noom_kill 0\n")
    killed = (
        "import os\ndef step():\n"
        f"    open({str(events)!r}, 'w').write('oom 1\\noom_kill 1\\n')\n"
        f"    os.kill(os.getpid(), {signal.SIGKILL:d})\n"
    )

    def count():
        return exit_status.kill_count(proc=tmp_path, cgroups=tmp_path)

    launcher = LocalLauncher(tmp_path, kill_count=count)
    failure = failure_of(launcher.launch(task(killed + BUILD)))
    next_one = failure_of(launcher.launch(task("raise ValueError('mine')\n", name="next")))

    assert failure.phase is Phase.FIRST_STEP
    assert "SIGKILL in phase first_step; the kernel's out-of-memory killer did" in failure.reason
    assert exhausted(failure) == Exhausted(kind="host")
    assert (next_one.reason, next_one.exhausted) == ("ValueError: mine", None)


def test_compiled_code_is_kept_from_one_process_of_a_workload_to_the_next(task, tmp_path):
    with local.launcher(tmp_path) as launcher:
        first, second, other = (
            failure_of(launcher.launch(task(CACHED, name=name))).reason
            for name in ("one", "one", "other")
        )
    with local.launcher(tmp_path) as launcher:
        later = failure_of(launcher.launch(task(CACHED, name="one"))).reason
    without_a_place = failure_of(LocalLauncher(tmp_path).launch(task(CACHED, name="one"))).reason

    assert (first, second, other, later, without_a_place) == (NEW, OLD, NEW, NEW, NEW)


def test_a_process_knows_whether_compiled_code_was_there_when_it_came(task, tmp_path):
    with local.launcher(tmp_path) as launcher:
        found = [process_of(launcher.launch(task(COMPILING + BUILD))) for _ in range(2)]

    assert [process.compiles.cache for process in found] == ["empty", "filled"]


@pytest.mark.story
def test_what_the_monitor_saw_is_kept_with_the_process(task, tmp_path):
    step = "def step():\n    sum(range(1000))\n"

    watched = process_of(LocalLauncher(tmp_path).launch(task(step + BUILD, monitor_hz=20)))
    alone = process_of(LocalLauncher(tmp_path).launch(task(step + BUILD, monitor_hz=0)))

    assert watched.evidence is not None
    assert watched.evidence.trouble == ""
    assert watched.evidence.host.wall_s > 0
    assert alone.evidence is None


def test_the_gpus_of_a_task_are_looked_at_before_it_and_watched_beside_it(task, tmp_path, driver):
    """The driver's library is a stand-in; the way to it is the real one."""
    driver.says(mem_used=3 * GIB)
    launcher = LocalLauncher(tmp_path, {**os.environ, **driver.environment})
    step = "def step():\n    sum(range(1000))\n"
    todo = msgspec.structs.replace(task(step + BUILD, monitor_hz=20), gpus=(drivers.UUID,))

    states = launcher.look([drivers.UUID])
    evidence = process_of(launcher.launch(todo)).evidence

    assert isinstance(states, GpuStates), states.reason
    assert [state.used_bytes for state in states.gpus] == [3 * GIB]
    assert evidence is not None
    assert [(gpu.uuid, gpu.used_before_bytes) for gpu in evidence.gpus] == [(drivers.UUID, 3 * GIB)]


def test_a_monitor_that_left_nothing_says_why():
    watch = monitoring.MonitorReport(problem="the monitor did not end within 5 s")

    evidence = run_task.evidence_from(watch)

    assert (evidence.trouble, evidence.gpus) == ("the monitor did not end within 5 s", ())

"""A real process that fails once it has its times keeps them, and says what it could not show."""

import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.process import Phase
from ci_perf.model.task import TaskFailure
from tests.launches import GOOD, HEAD, result_of

# A step that does something else in the pass that reads the peaks of memory.
IN_THE_MEMORY_PASS = (
    HEAD
    + """
import os, sys
def step():
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.endswith("measuring/memory.py"):
        frame = frame.f_back
    if frame:
        {}
def build(context):
    return Workload(step=step)
"""
)


@pytest.fixture
def launched(task, tmp_path):
    """Launch a source; return what its process recorded."""

    def launch(source, **protocol):
        outcome = LocalLauncher(tmp_path).launch(task("it", source, **protocol))
        return result_of(outcome).process

    return launch


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os._exit(0)", "the process ended before"),
        ("os.kill(os.getpid(), 9)", "the process was ended by SIGKILL in phase memory"),
    ],
)
def test_a_step_that_fails_after_the_timed_region_keeps_its_times(launched, code, reason):
    found = launched(IN_THE_MEMORY_PASS.format(code))

    assert found.timed.block_s
    assert found.absent["memory"].startswith(reason)
    assert found.memory.host_rss_peak_bytes > 2**20


def test_memory_that_runs_out_after_the_timed_region_has_run_out(task, tmp_path):
    source = IN_THE_MEMORY_PASS.format("raise MemoryError('no more')")

    failure = LocalLauncher(tmp_path).launch(task("it", source))

    assert isinstance(failure, TaskFailure)
    assert (failure.phase, failure.reason) == (Phase.MEMORY, "MemoryError: no more")
    assert failure.exhausted is not None
    assert failure.exhausted.kind == "host"


def test_a_step_that_raises_loses_the_memory_and_not_the_counters(launched):
    found = launched(IN_THE_MEMORY_PASS.format("raise ValueError"))

    assert found.absent == {"memory": "ValueError:"}
    assert found.work.absent == "the workload has not imported torch"


def test_a_teardown_that_fails_keeps_the_times(launched):
    found = launched(GOOD.replace("step=step", "step=step, teardown=lambda: exit(0)"))

    assert found.absent == {"teardown": "SystemExit: 0"}


def test_passes_for_which_there_is_no_time_are_not_begun(launched):
    slow = HEAD + "import time\ndef step():\n    time.sleep(0.001)\n"
    slow += "def build(context):\n    return Workload(step=step)\n"

    found = launched(slow, memory_steps=1_000_000)

    assert list(found.absent) == ["memory"]
    assert found.absent["memory"].startswith("1000000 steps of ")
    assert found.phases.memory_s < 10

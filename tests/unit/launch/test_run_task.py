"""What is left of a launch that failed, by when it failed."""

import signal

import msgspec
import pytest

from ci_perf.launch import run_task
from ci_perf.launch.run_task import Finished
from ci_perf.model import task as tasks
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import Task, TaskFailure
from ci_perf.system import files
from ci_perf.system.child import Ended
from tests.launches import QUICK, failure_of, result_of
from tests.runs import a_process

TASK = Task(
    workload=PlannedWorkload(id="it", file="it.py", description="", parameters={}, protocol=QUICK),
    index=0,
    device="cpu",
    root="/",
    data_dir="/",
)
KEPT = WorkerResult(
    items_per_step=1.0,
    item_unit="item",
    precision="",
    knobs={},
    process=msgspec.structs.replace(a_process(), absent={"counters": "the process ended before"}),
)
KILLED = Ended(code=-signal.SIGKILL, timed_out=False, tail="")
LATE = Ended(code=-signal.SIGKILL, timed_out=True, tail="")


def launched(phase, ended, *, kept=KEPT, failure=""):
    """Launch a process that left these files and ended so."""

    def run(folder):
        (folder.path / tasks.PHASE).write_text(phase.value)
        if kept is not None:
            files.write(folder.path / tasks.RESULT, kept)
        if failure:
            files.write(folder.path / tasks.FAILURE, TaskFailure(phase=phase, reason=failure))
        return Finished(ended=ended)

    return run_task.run(TASK, run)


@pytest.mark.parametrize(
    ("phase", "ended", "reason"),
    [
        (Phase.MEMORY, LATE, "no result within the time limit of 20 s"),
        (Phase.COUNTERS, LATE, "no result within the time limit of 20 s"),
        (Phase.TEARDOWN, LATE, "no result within the time limit of 20 s"),
        (Phase.MEMORY, KILLED, "the process was ended by SIGKILL in phase memory"),
        (Phase.TEARDOWN, KILLED, "the process was ended by SIGKILL in phase teardown"),
        (
            Phase.COUNTERS,
            Ended(code=7, timed_out=False, tail=""),
            "the process ended with exit code 7 in phase counters",
        ),
    ],
)
def test_a_process_that_was_timed_keeps_its_times_however_it_ends(phase, ended, reason):
    outcome = result_of(launched(phase, ended))

    assert outcome.process.timed == KEPT.process.timed
    assert outcome.process.absent[phase.value].startswith(reason)
    assert "counters" in outcome.process.absent


def test_ranks_that_failed_after_they_were_timed_keep_their_times():
    """The agent tells the failure of the rank that failed first."""
    ended = Ended(code=1, timed_out=False, tail="")

    outcome = result_of(launched(Phase.MEMORY, ended, failure="rank 1 of 2: out of memory"))

    assert outcome.process.absent["memory"] == "rank 1 of 2: out of memory"


def test_a_process_that_ran_foreign_code_has_no_result():
    ended = Ended(code=1, timed_out=False, tail="")

    outcome = failure_of(launched(Phase.TEARDOWN, ended, failure="ForeignCodeError: package"))

    assert outcome.reason == "ForeignCodeError: package"


@pytest.mark.parametrize("phase", [Phase.BUILD, Phase.WARMUP, Phase.TIMED])
def test_a_process_that_was_not_timed_has_failed(phase):
    outcome = failure_of(launched(phase, KILLED))

    assert outcome.phase is phase


def test_a_process_that_kept_nothing_has_failed():
    outcome = failure_of(launched(Phase.MEMORY, KILLED, kept=None))

    assert outcome.phase is Phase.MEMORY

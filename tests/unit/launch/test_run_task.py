"""What is left of a launch that failed, by when it failed."""

import signal

import msgspec
import pytest

from ci_perf.launch import run_task
from ci_perf.launch.run_task import Finished
from ci_perf.model import task as tasks
from ci_perf.model.explanation import StepProfile
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


def traced(tmp_path, left, *, profile=StepProfile(steps=2), trace_to="w.head.pt.trace.json.gz"):  # noqa: B008  it is frozen
    """Launch a process that profiles and leaves a trace; return its profile and the trace kept."""
    told = []

    def run(folder):
        told.append(folder.read(tasks.TASK, Task).trace_to)
        files.write(folder.path / tasks.RESULT, profile)
        left(folder.path / tasks.TRACE)
        return Finished(ended=Ended(code=0, timed_out=False, tail=""))

    target = tmp_path / trace_to
    task = msgspec.structs.replace(TASK, trace_to=str(target) if trace_to else "")
    outcome = result_of(run_task.profile(task, run))
    assert told == [tasks.TRACE if trace_to else ""]
    return outcome, target.read_bytes() if target.is_file() else None


def test_a_trace_is_put_where_the_task_says_and_nobody_reads_it(tmp_path):
    profile, kept = traced(tmp_path, lambda path: path.write_bytes(b"not even gzip"))

    assert (profile.trace_file, kept) == ("w.head.pt.trace.json.gz", b"not even gzip")


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (lambda _path: None, "the launch left none"),
        (lambda path: path.symlink_to("/etc/passwd"), "cannot be read"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: path.write_bytes(b"12345678901"), "expected at most 10 bytes"),
    ],
)
def test_says_why_a_trace_is_not_kept(tmp_path, monkeypatch, left, why):
    monkeypatch.setattr(run_task, "MOST_TRACE_BYTES", 10)

    profile, kept = traced(tmp_path, left)

    assert (profile.trace_file, kept) == ("", None)
    assert why in profile.missing["trace_file"]


def test_an_older_trace_and_a_link_are_removed_first(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "w.head.pt.trace.json.gz"
    victim.write_text("mine")
    link.symlink_to(victim)

    profile, kept = traced(tmp_path, lambda _path: None)

    assert (profile.trace_file, kept, link.is_symlink()) == ("", None, False)
    assert victim.read_text() == "mine"


def test_a_place_that_cannot_be_freed_is_said(tmp_path):
    (tmp_path / "w.head.pt.trace.json.gz").mkdir()

    profile, _ = traced(tmp_path, lambda path: path.write_bytes(b"1"))

    assert "w.head.pt.trace.json.gz" in profile.missing["trace_file"]


def test_a_trace_is_missing_for_the_reason_for_which_the_whole_profile_is(tmp_path):
    failed = StepProfile(steps=0, absent="ValueError: no more data")

    profile, _ = traced(tmp_path, lambda _path: None, profile=failed)

    assert profile.missing["trace_file"] == "ValueError: no more data"


def test_a_trace_that_cannot_be_written_is_said_and_loses_nothing_else(tmp_path):
    profile, _ = traced(
        tmp_path, lambda path: path.write_bytes(b"1"), trace_to="no/such/folder/w.gz"
    )

    assert profile.steps == 2
    assert "cannot be written" in profile.missing["trace_file"]


def test_only_the_parent_says_that_a_trace_was_kept(tmp_path):
    claims = StepProfile(steps=2, trace_file="other.gz")

    profile, _ = traced(tmp_path, lambda path: path.touch(), profile=claims, trace_to="")

    assert profile.trace_file == ""

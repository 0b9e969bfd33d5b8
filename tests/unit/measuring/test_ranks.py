import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ci_perf.measuring import ranks
from ci_perf.measuring.rank_outputs import TAIL_BYTES, Outputs
from ci_perf.model import task
from ci_perf.model.process import Exhausted, Phase, Ranks, WorkerResult
from ci_perf.model.task import TaskFailure
from ci_perf.system import files
from tests.runs import a_process

NOW = 1_000_000.0


@pytest.fixture
def outputs(tmp_path):
    (tmp_path / "pipes").mkdir()
    with Outputs(tmp_path / "pipes", 3) as found:
        yield found


def died(code, *, noticed=NOW):
    """What torchrun says of a rank that is no more."""
    return SimpleNamespace(exitcode=code, timestamp=int(noticed))


def told(folder, rank, reason="boom", *, at=NOW, phase=Phase.TIMED, exhausted=None):
    """Write the trouble of a rank, as if at this time."""
    path = folder / task.name_rank_file(task.FAILURE, rank)
    files.write(path, TaskFailure(phase=phase, reason=reason, exhausted=exhausted))
    os.utime(path, (at, at))


def spoke(outputs, rank, at):
    outputs.paths[rank].write_text(f"last words of rank {rank}\n")
    outputs.tail(rank)
    outputs._spoken[rank] = at


@pytest.mark.parametrize(
    ("told_s", "spoke_s", "codes", "cause"),
    [
        ({0: -0.01, 2: -0.05}, {}, {0: 1, 2: 1}, "2 of 3: boom"),
        ({0: -0.01}, {}, {0: 1, 1: -signal.SIGKILL}, "1 of 3: the process was ended by SIGKILL"),
        ({0: -0.01}, {}, {0: 1, 1: 3}, "1 of 3: the process ended with exit code 3"),
        ({0: -0.01}, {1: -0.1}, {0: 1, 1: -signal.SIGSEGV}, "1 of 3: the process was ended by SI"),
        ({0: -0.1}, {1: -0.01}, {0: 1, 1: -signal.SIGABRT}, "0 of 3: boom"),
        ({2: 0}, {}, {0: -signal.SIGTERM, 2: 1}, "2 of 3: boom"),
    ],
    ids=[
        "the exception that was told first",
        "who is killed without a word before who complains",
        "who leaves without a word before who complains",
        "a crash before the complaints of others",
        "an abort after an exception is its consequence",
        "not whom torchrun has ended",
    ],
)
def test_the_cause_is_the_first_trouble(tmp_path, outputs, told_s, spoke_s, codes, cause):
    for rank, after_s in told_s.items():
        told(tmp_path, rank, at=NOW + after_s)
    for rank, after_s in spoke_s.items():
        spoke(outputs, rank, NOW + after_s)
    (tmp_path / task.name_rank_file(task.PHASE, 1)).write_text("build")

    trouble = ranks._failure(tmp_path, {rank: died(codes[rank]) for rank in codes}, outputs)

    assert trouble.reason.startswith(f"rank {cause}")
    if cause.startswith("1"):
        assert trouble.phase is Phase.BUILD
        assert "in phase build" in trouble.reason
        assert trouble.output == ("last words of rank 1\n" if spoke_s else "")


def test_a_rank_that_had_to_be_killed_at_last_is_not_the_cause(tmp_path, outputs):
    told(tmp_path, 2)
    failures = {0: died(-signal.SIGKILL, noticed=NOW + 30), 2: died(1)}

    assert ranks._failure(tmp_path, failures, outputs).reason == "rank 2 of 3: boom"


def test_what_is_known_of_exhausted_memory_is_passed_on(tmp_path, outputs):
    found = Exhausted(kind="device", allocator="a summary")
    told(tmp_path, 0, phase=Phase.BUILD, exhausted=found)

    trouble = ranks._failure(tmp_path, {0: died(1)}, outputs)

    assert (trouble.phase, trouble.exhausted) == (Phase.BUILD, found)


def test_a_note_that_cannot_be_read_is_no_note(tmp_path, outputs):
    (tmp_path / task.name_rank_file(task.FAILURE, 0)).write_text("nonsense")
    (tmp_path / task.name_rank_file(task.PHASE, 0)).write_text("nowhere")

    trouble = ranks._failure(tmp_path, {0: died(1)}, outputs)

    assert trouble.phase is Phase.LAUNCH
    assert trouble.reason.startswith("rank 0 of 3: the process ended with exit code 1")


def left(folder, found):
    """Write the result of rank 0, with these ranks in it."""
    result = WorkerResult(
        items_per_step=1.0,
        item_unit="step",
        precision="",
        knobs={},
        process=a_process(ranks=found),
    )
    files.write(folder / task.RESULT, result)


def a_group(*, world_size=2, restarts=0):
    return Ranks(world_size=world_size, restarts=restarts, backend="gloo", arrival_skew_s=None)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "expected the result of 2 ranks, found that of one process"),
        (a_group(world_size=1), "expected 2 ranks .*, found 1 ranks and 0 restarts"),
        (a_group(restarts=1), "expected 2 ranks .*, found 2 ranks and 1 restarts"),
    ],
)
def test_a_result_of_other_ranks_than_planned_is_refused(tmp_path, found, words):
    left(tmp_path, a_group())
    assert ranks._wrong(tmp_path, 2) == ""

    left(tmp_path, found)
    assert re.search(words, ranks._wrong(tmp_path, 2))


def test_a_rank_that_left_before_it_was_done_is_named(tmp_path):
    left(tmp_path, a_group())
    (tmp_path / task.name_rank_file(task.DONE, 0)).touch()
    (tmp_path / task.name_rank_file(task.PHASE, 1)).write_text("teardown")

    words = "rank 1 of 2: the process ended with exit code 0 in phase teardown"
    assert ranks._wrong(tmp_path, 2) == words


def test_ranks_that_leave_no_result_are_told(tmp_path):
    assert "none of them left a result" in ranks._wrong(tmp_path, 2)
    (tmp_path / task.RESULT).write_text('{"process": 3}')
    assert ranks._wrong(tmp_path, 2).startswith("invalid result: ")


def test_a_task_that_cannot_be_read_becomes_a_trouble(tmp_path):
    assert ranks.main(tmp_path) == 1

    failure = files.read(tmp_path / task.FAILURE, TaskFailure)
    assert "this file does not exist" in failure.reason


def speak(path, source):
    """A real process whose stdout and stderr both go to a path."""
    with path.open("w") as out, path.open("w") as err:
        subprocess.run([sys.executable, "-c", source], stdout=out, stderr=err, check=False)


def test_each_process_has_its_own_last_words_in_their_order(tmp_path):
    source = "import os\nos.write(1, b'one ')\nos.write(2, b'two ')\nos.write(1, b'three')"

    with Outputs(tmp_path, 3) as outputs:
        speak(outputs.paths[0], "print('from the first')")
        speak(outputs.paths[1], source)
        tails = [outputs.tail(rank) for rank in range(3)]
        spoken_at = outputs.spoken_at(2)

    assert tails == ["from the first\n", "one two three", ""]
    assert spoken_at == 0.0


def test_of_a_flood_only_the_end_is_kept(tmp_path):
    source = "for n in range(100_000): print('a line of a flood', n)"

    with Outputs(tmp_path, 1) as outputs:
        speak(outputs.paths[0], source)
        tail = outputs.tail(0)

    assert tail.endswith(" 99999\n")
    assert len(tail) == TAIL_BYTES

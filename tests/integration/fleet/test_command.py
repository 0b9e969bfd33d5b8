"""An engine by three commands of the owner's: a queue that is nothing but processes and a shell."""

import pytest

from ci_perf.errors import EngineError
from ci_perf.fleet.command import CommandEngine
from ci_perf.fleet.engine import Placed
from ci_perf.model.fleet import Attempt, CommandTable, EngineTables, FleetFile, NodeClass
from tests.fleets import a_task, kinds, pids, run_fleet
from tests.processes import is_alive

SUBMIT = """
echo "$1 $2 $3 $4" >> submitted
setsid "$1" > /dev/null 2>&1 &
echo "Job <$!> is submitted"
echo $!
"""
POLL = """
while read -r handle; do
  if [ -d /proc/$handle ] && ! grep -q 'State:.Z' /proc/$handle/status
  then echo "$handle running here by now"
  else echo "$handle ended here"; fi
done
"""
CANCEL = "while read -r handle; do kill $handle; done; true"
WORDS = ("{script}", "{job}", "{select}", "{avoid}")


def a_table(submit=SUBMIT, poll=POLL, cancel=CANCEL):
    shell = ("sh", "-c")
    return CommandTable(
        submit=(*shell, submit, "sh", *WORDS), poll=(*shell, poll), cancel=(*shell, cancel)
    )


def run_on(folder, *tasks, **commands):
    fleet = FleetFile(
        engine=EngineTables(command=a_table(**commands)),
        classes={"cpu": NodeClass(select="queue-7", nodes=2)},
    )
    return run_fleet(folder, tasks, engine="command", fleet=fleet, poll_s=0.2)


def test_units_are_measured_by_the_commands_of_the_owner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result, _ = run_on(
        tmp_path, a_task("good", folder=tmp_path), a_task("bad", "garbage", folder=tmp_path)
    )

    assert kinds(result) == {"good": "measured", "bad": "failed"}
    assert {ending.nodes for ending in result.endings} == {("here",)}
    submitted = (tmp_path / "submitted").read_text().splitlines()
    assert [line.split()[2] for line in submitted] == ["queue-7", "queue-7"]
    assert [pid for pid in pids(tmp_path) if is_alive(pid)] == []


def test_what_the_commands_say_when_they_fail_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failing = "echo 'User cannot use the queue' >&2; exit 255"

    result, _ = run_on(tmp_path, a_task("u", folder=tmp_path), submit=failing)

    (ending,) = result.endings
    assert ending.reason == ("the engine refuses it: sh: failed: User cannot use the queue")


def test_an_answer_that_is_no_handle_is_told_before_the_job_seems_lost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    talking = "echo 'Submitted batch job 17'"

    result, _ = run_on(tmp_path, a_task("u", folder=tmp_path), submit=talking)

    (ending,) = result.endings
    assert "expected a handle of one word on the last line of stdout" in ending.reason
    assert "found 'Submitted batch job 17'" in ending.reason


def placed(handle="1"):
    return Placed(attempt=Attempt(unit="u", number=1, nonce="n", job="j"), handle=handle)


@pytest.mark.parametrize(
    ("poll", "error"),
    [
        ("echo 1 RUN", "expected HANDLE STATE"),
        ("echo 1", "STATE one of queued, running, ended, lost; found '1'"),
        ("exit 3", "sh: failed: nothing"),
    ],
)
def test_an_answer_that_says_nothing_is_an_error_of_the_engine(poll, error):
    engine = CommandEngine(a_table(poll=poll), python="python3")

    with pytest.raises(EngineError, match=error):
        engine.poll([placed()])


def test_a_handle_that_is_left_out_is_unknown():
    engine = CommandEngine(a_table(poll="echo 2 running"), python="python3")

    assert engine.poll([placed("1"), placed("")]) == {}

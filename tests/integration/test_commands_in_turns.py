"""Two copies of a command that take turns at the steps that they print: real programs."""

import json
import os
import shlex
import shutil
import sys
from itertools import pairwise

import msgspec
import pytest

from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import command
from ci_perf.measuring.server import find_free_port
from ci_perf.model.suite import Protocol
from ci_perf.model.task import CommandTurn
from tests.launches import a_task, failure_of, result_of
from tests.processes import find_running_in, is_alive, kill_while, wait_until

# Prints how long each step took, and notes when, by the clock of the host.
PROGRAM = """
import json, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pid", "w").write(str(os.getpid()))
moments = []
for number in range({steps}):
    start = time.perf_counter()
    {step}
    moments.append(time.monotonic())
    print(f"step {{number}} took {{time.perf_counter() - start}}", flush=True)
open("done", "w").write(json.dumps(moments))
print("the end")
sys.exit({code})
"""
STEP = "time.sleep(0.02)"
STEPS, SKIP = 30, 2
LONE = Protocol(
    timeout_s=60,
    block_min_s=0,
    timed_min_blocks=1,
    timed_min_s=0,
    timed_max_s=0.01,
    monitor_hz=0,
    fingerprint_steps=0,
)


@pytest.fixture
def side(tmp_path):
    """Make a launch of a program in a folder of its own."""

    def make(name, program=None, *, steps=STEPS, step=STEP, code=0, turn=1, words=None):
        root = tmp_path / name
        root.mkdir()
        text = program or PROGRAM.format(steps=steps, step=step, code=code)
        (root / "program.py").write_text(text)
        words = words or shlex.join([sys.executable, "program.py"])
        parameters = {"command": words, "metric": "step_s=took ([0-9.e-]+)", "skip": SKIP}
        return a_task(
            command.__file__,
            root=root,
            protocol=msgspec.structs.asdict(LONE),
            workload={"parameters": parameters, "launch": "command"},
            index=1,
            command_turn=CommandTurn(steps=turn, timeout_s=5.0) if turn else None,
        )

    return make


@pytest.fixture
def pair(tmp_path):
    return lambda first, second: LocalLauncher(tmp_path).launch_pair(first, second)


def moments_of(tmp_path, name):
    return [(moment, name) for moment in json.loads((tmp_path / name / "done").read_text())]


def test_each_copy_runs_a_few_steps_while_the_other_one_waits(side, pair, tmp_path):
    outcomes = pair(side("one"), side("other", turn=1))

    one, other = (result_of(outcome) for outcome in outcomes)
    both = sorted(moments_of(tmp_path, "one") + moments_of(tmp_path, "other"))
    switches = sum(before != after for (_, before), (_, after) in pairwise(both))
    assert len(both) == 2 * STEPS
    assert switches >= (STEPS - SKIP) / 3
    assert len(one.process.timed.block_s) == pytest.approx(len(other.process.timed.block_s), abs=1)
    assert (one.process.printed_times, one.printing.against) == (STEPS, "")
    # No step that is timed has waited for the other copy.
    gaps = [b - a for (a, x), (b, y) in pairwise(moments_of(tmp_path, "one")) if x == y]
    assert one.process.timed.steps.p95 < sorted(gaps)[-3]


def test_a_copy_with_fewer_steps_lets_the_other_one_go_on_to_its_end(side, pair, tmp_path):
    outcomes = pair(side("one", steps=8), side("other"))

    one, other = (result_of(outcome) for outcome in outcomes)
    assert (one.process.printed_times, other.process.printed_times) == (8, STEPS)
    assert len(moments_of(tmp_path, "other")) == STEPS


def test_a_copy_that_fails_in_the_middle_leaves_the_other_one_its_result(side, pair, tmp_path):
    one, other = pair(side("one", steps=8, code=3), side("other"))

    assert "expected exit code 0, found 3" in failure_of(one).reason
    assert result_of(other).process.printed_times == STEPS
    assert len(moments_of(tmp_path, "other")) == STEPS


def test_a_copy_that_waits_for_the_other_one_gives_up(side, pair, tmp_path):
    lock = f"import fcntl; f = open({str(tmp_path / 'lock')!r}, 'w'); fcntl.flock(f, 2)"

    program = f"{lock}\n{PROGRAM.format(steps=9, step=STEP, code=0)}"

    outcomes = pair(side("one", program), side("other", program))

    reasons = [outcome.reason for outcome in outcomes if hasattr(outcome, "reason")]
    assert len(reasons) == 1
    assert "beside a copy of the command" in reasons[0]


def test_a_pipe_with_tee_keeps_all_that_was_printed(side, pair, tmp_path):
    words = shlex.join(["sh", "-c", f"{sys.executable} program.py | tee log"])

    outcomes = pair(side("one", words=words), side("other", words=words))

    for name, outcome in zip(("one", "other"), outcomes, strict=True):
        assert result_of(outcome).printing.against == ""
        lines = (tmp_path / name / "log").read_text().splitlines()
        assert (len(lines), lines[-1]) == (STEPS + 1, "the end")


PORT = """
import socket
held = socket.create_server(("127.0.0.1", {}))
"""


@pytest.mark.parametrize(
    ("begin", "step", "reason"),
    [
        ("", f"{STEP}; number != 20 or [os.dup2(os.open(os.devnull, 1), n) for n in (1, 2)]", ""),
        (
            "",
            f"{STEP}; number != 9 or os.kill(os.getpid(), signal.SIGSTOP)",
            "expected a step time",
        ),
        ("", f"{STEP}; number != 9 or os.kill(0, signal.SIGKILL)", "was ended by SIGKILL"),
        (PORT, STEP, "expected exit code 0, found 1"),
    ],
    ids=["closes its output", "stops itself", "kills its group", "needs a port"],
)
def test_a_copy_that_ends_in_its_own_way_stops_no_other(side, pair, tmp_path, begin, step, reason):
    program = PROGRAM.format(steps=STEPS, step=step, code=0)
    program = begin.format(find_free_port()) + program
    other = program if begin else None

    outcomes = pair(side("one", program), side("other", other))

    reasons = [outcome.reason for outcome in outcomes if hasattr(outcome, "reason")]
    assert len(reasons) == bool(reason)
    assert all(reason in each for each in reasons)
    assert find_running_in(tmp_path) == []


LOADER = """
import multiprocessing, time
def load(queue):
    while True:
        queue.put(time.sleep(0.01))
if __name__ == "__main__":
    queue = multiprocessing.Queue(2)
    worker = multiprocessing.Process(target=load, args=(queue,), daemon=True)
    worker.start()
"""


def test_the_workers_of_a_loader_wait_with_it(side, pair):
    body = PROGRAM.format(steps=STEPS, step="queue.get()", code=0)
    program = LOADER + "".join(f"    {line}\n" for line in body.splitlines())

    for outcome in pair(side("one", program), side("other", program)):
        assert result_of(outcome).printing.against == ""


def loop(step, printing='print(f"took {time.perf_counter() - start}", flush=True)'):
    return f"""
import os, subprocess, sys, time
for number in range(20):
    start = time.perf_counter()
    {step}
    {printing}
"""


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
"""
# A program in C keeps what it prints until it ends, whatever Python is told.
BUFFERED = """
import os, subprocess
code = r'''
#include <stdio.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 20; i++) { usleep(20000); printf("took 0.02\\n"); }
    return 0;
}'''
subprocess.run(["cc", "-x", "c", "-", "-o", "program"], input=code, text=True, check=True)
os.execl("./program", "program")
"""


@pytest.mark.parametrize(
    ("program", "against"),
    [
        (loop(STEP), ""),
        (loop(STEP, 'print(f"took {time.perf_counter() - start}")'), "between two lines pass"),
        (
            loop(f"[{STEP} for _ in range(3)]", "print('took 0.02', flush=True)"),
            "between two lines",
        ),
        (loop("subprocess.run(['setsid', 'sleep', '0.1'])"), "one of its processes has left"),
        (
            "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '600'])\n" + loop(STEP),
            "one of its processes has left its group",
        ),
        (
            "import subprocess\nsubprocess.run(['sh', '-c', 'setsid sleep 600 &'])\n" + loop(STEP),
            "one of its processes has left its group",
        ),
        (DAEMON + loop(STEP), "one of its processes has left its group"),
        (loop(STEP, f"{STEP}; print('took 0.02 took 0.02', flush=True)"), "between two lines pass"),
        (BUFFERED, "between two lines pass 0 times"),
        ("f = open('/dev/nvidia0')\n" + loop(STEP), "it uses a GPU"),
    ],
    ids=[
        *("steps", "buffered", "parts", "passing", "session", "daemon"),
        *("double fork", "several", "C", "gpu"),
    ],
)
def test_a_launch_alone_finds_what_speaks_against_turn(side, tmp_path, program, against):
    if "nvidia" in program and not os.path.exists("/dev/nvidia0"):  # noqa: PTH110
        pytest.skip("no GPU")
    if program is BUFFERED and shutil.which("cc") is None:
        pytest.skip("no compiler of C")
    words = shlex.join(["env", "-u", "PYTHONUNBUFFERED", sys.executable, "program.py"])
    task = side("one", program, turn=0, words=words)

    printing = result_of(LocalLauncher(tmp_path).launch(task)).printing

    assert printing.against.startswith(against)
    assert bool(printing.against) == bool(against)


@pytest.mark.parametrize("phase", ["first turn", "turns", "rest"])
def test_an_interrupt_ends_both_copies(side, tmp_path, use_tempdir, monkeypatch, phase):
    """One of them is stopped, and must not stay so. Neither can remove its own folders."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    use_tempdir(None)
    steps = 5 if phase == "rest" else 2000
    tasks = [
        side("one", steps=2000, step="time.sleep(600)" if phase == "first turn" else STEP),
        side("other", steps=steps),
    ]
    begun = [tmp_path / name / "pid" for name in ("one", "other")]
    awaited = {"first turn": begun[:1], "turns": begun, "rest": [tmp_path / "other" / "done"]}

    def has_come():
        return all(file.exists() and file.read_text() for file in awaited[phase])

    with pytest.raises(KeyboardInterrupt), local.launcher(tmp_path) as launcher:
        launcher.launch_pair(tasks[0], tasks[1], has_come)

    assert find_running_in(tmp_path) == []
    assert list(temporary.iterdir()) == []


def test_copies_end_with_their_parent(side, tmp_path, use_tempdir):
    use_tempdir(tmp_path)  # nobody is left to clean up
    tasks = [side(name, steps=2000) for name in ("one", "other")]
    notes = [tmp_path / name / "pid" for name in ("one", "other")]
    kill_while(lambda: LocalLauncher(tmp_path).launch_pair(*tasks), notes)

    for note in notes:
        wait_until(lambda note=note: not is_alive(int(note.read_text())))

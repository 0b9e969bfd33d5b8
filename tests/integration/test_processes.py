import os
import signal
import subprocess
import sys
import time

import pytest

from ci_perf.system import processes
from tests.processes import is_alive, wait_until

# As many answers as a storm needs to hit a child in the moment before it has a session of its own.
ASKER = """
import signal, sys
from ci_perf.system import processes

signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
codes = {processes.capture([sys.executable, "-S", "-c", ""], timeout_s=60).code for _ in range(100)}
print(codes)
"""


def test_a_storm_of_ctrl_c_ends_no_command():
    asker = subprocess.Popen(
        [sys.executable, "-c", ASKER], stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    assert asker.stdout is not None
    assert asker.stdout.readline() == "ready\n"

    deadline = time.monotonic() + 300
    while asker.poll() is None:
        assert time.monotonic() < deadline, "it has heard nothing but the storm"
        os.killpg(asker.pid, signal.SIGINT)
        time.sleep(0.0003)

    assert asker.communicate()[0] == "{0}\n"


def test_the_whole_answer_is_heard():
    answer = processes.capture(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=60)

    assert answer == processes.Completed(code=3, out="out", err="err")


def test_a_program_that_does_not_end_is_ended(tmp_path):
    note = tmp_path / "pid"

    for timeout_s in (0.5, 5, 50):  # a busy machine may start it late
        with pytest.raises(TimeoutError):
            processes.capture(
                ["sh", "-c", f"echo $$ > {note}; exec sleep 611"], timeout_s=timeout_s
            )
        if note.exists() and note.read_text():
            break

    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_an_interrupt_ends_the_program_too(tmp_path):
    note = tmp_path / "pid"
    script = f"""
from ci_perf.system import processes
words = "echo $$ > {note}.new; mv {note}.new {note}; exec sleep 611"
processes.capture(["sh", "-c", words], timeout_s=600)
"""
    asker = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(note.exists)

    asker.send_signal(signal.SIGINT)
    asker.wait(timeout=60)

    # Whoever inherits it from the asker may leave a zombie.
    wait_until(lambda: not is_alive(int(note.read_text())))


# The signal comes while the program starts, when nothing but `capture` knows of it.
INTERRUPTED_START = """
import os, signal, subprocess
from ci_perf.system import processes

class Interrupted(subprocess.Popen):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        print(self.pid, flush=True)
        os.kill(os.getpid(), signal.SIGINT)

subprocess.Popen = Interrupted
processes.capture(["sleep", "611"], timeout_s=600)
"""


def test_an_interrupt_during_the_start_ends_the_program():
    asker = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_START], capture_output=True, text=True, check=False
    )

    assert "KeyboardInterrupt" in asker.stderr
    wait_until(lambda: not is_alive(int(asker.stdout)))


@pytest.fixture
def sleeper():
    """A process that sleeps, and has a name that /proc must not be read by."""
    child = subprocess.Popen(["bash", "-c", "exec -a 'a) b (c' sleep 611"])
    yield child.pid
    child.kill()
    child.wait()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_a_process_wakes_up_on_one_cpu_and_may_then_run_on_all(sleeper):
    every = os.sched_getaffinity(0)
    for cpu in (min(every), max(every)):
        with processes.wake_on(sleeper, cpu):
            assert os.sched_getaffinity(sleeper) == {cpu}
        assert os.sched_getaffinity(sleeper) == every
    assert processes.last_cpu(sleeper) in every

    with pytest.raises(ValueError, match="within"), processes.wake_on(sleeper, min(every)):
        raise ValueError("within")
    assert os.sched_getaffinity(sleeper) == every


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cpus_that_a_process_has_or_chooses_itself_are_left_to_it(sleeper):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    with processes.wake_on(sleeper, first):
        os.sched_setaffinity(sleeper, {last})
    assert os.sched_getaffinity(sleeper) == {last}

    with processes.wake_on(sleeper, first):
        assert os.sched_getaffinity(sleeper) == {last}
    assert os.sched_getaffinity(sleeper) == {last}


def test_a_process_that_has_ended_wakes_up_nowhere():
    ended = subprocess.Popen(["true"])
    ended.wait()

    with processes.wake_on(ended.pid, 0):
        assert processes.last_cpu(ended.pid) is None

"""CPU time of this process and of those below it, by real processes and the kernel's own clocks."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from subprocess import PIPE

import pytest

from ci_perf.measuring import device
from ci_perf.measuring.device import Device

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="known on Linux only")

WORK_S = 0.1
WORK = f"import time\nwhile time.process_time() < {WORK_S}: pass"
ENDLESS = "while True: pass"


def clock_s():
    """The CPU time used so far, in seconds."""
    used_ns = device.cpu_time_ns()
    assert used_ns is not None
    return used_ns / 1e9


def used_s(function):
    """CPU time that is counted while `function` runs."""
    begin = clock_s()
    function()
    return clock_s() - begin


def work():
    end = time.thread_time() + WORK_S
    while time.thread_time() < end:
        pass


def test_work_counts_and_sleep_does_not():
    assert used_s(work) >= WORK_S
    assert used_s(lambda: time.sleep(0.2)) < WORK_S


def test_all_threads_count():
    def in_a_thread():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert used_s(in_a_thread) >= WORK_S


def test_a_child_counts_once_while_it_lives_and_when_it_has_ended():
    begin = clock_s()
    program = f"{WORK}\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        living_s = clock_s() - begin
        child.communicate(b"\n")
        ended_s = clock_s() - begin

    assert living_s >= 0.9 * WORK_S
    assert living_s <= ended_s < living_s + WORK_S


def test_the_child_of_a_child_counts_while_both_live():
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {ENDLESS!r}])"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as child:
        begin, end = clock_s(), time.monotonic() + 60
        while clock_s() - begin < 10 * WORK_S and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)

    assert time.monotonic() < end


def test_nothing_is_known_on_other_systems(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")

    assert device.cpu_time_ns() is None


def test_a_block_has_the_cpu_time_of_its_steps_beside_that_of_the_wall():
    cpu = itertools.count(step=30_000_000)

    block = Device(cpu_clock=lambda: next(cpu)).time_block(lambda: None, 10)

    assert block.cpu_s == 3e-3


def test_a_block_without_cpu_time_lacks_it():
    assert Device(cpu_clock=lambda: None).time_block(lambda: None, 10).cpu_s is None

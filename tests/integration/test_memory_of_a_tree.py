"""The memory of a workload is that of its process and of all below it, each page once."""

import shlex
import sys

import msgspec
import pytest

from ci_perf.judging import launch_numbers
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import command
from ci_perf.model import metrics
from ci_perf.model.suite import COMMAND_PROTOCOL
from tests.launches import HEAD, result_of

MIB = 2**20
METRICS = '{"took_ms": {"kind": "time", "find": "took (.) ms"}}'
# A child that lives while the step is timed: what it does first, then it tells that it is there.
CHILD = (
    HEAD
    + """
import os, subprocess, sys, time
{before}
def build(context):
    {started}
    return Workload(step=lambda: time.sleep(0.001), teardown=lambda: {ended})
"""
)
OTHER_PROGRAM = CHILD.format(
    before="SOURCE = 'data = bytes(range(256)) * 2**19; print(1, flush=True); input()'",
    started="""child = subprocess.Popen(
        [sys.executable, "-c", SOURCE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.stdout.readline()""",
    ended="child.communicate()",
)
FORK = CHILD.format(
    before="data = bytes(range(256)) * 2**19",
    started="""child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)""",
    ended="(os.kill(child, 9), os.waitpid(child, 0))",
)
A_COMMAND = (
    HEAD
    + """
import subprocess, sys
SOURCE = "import time; data = bytes(range(256)) * 2**19; time.sleep(1.0)"
def build(context):
    return Workload(step=lambda: subprocess.run([sys.executable, "-c", SOURCE], check=True))
"""
)
ALONE = HEAD + "\ndef build(context):\n    return Workload(step=lambda: None)\n"


@pytest.fixture
def launched(task, tmp_path):
    """Launch a source; return what its process recorded."""

    def launch(source, monitor_hz=5.0):
        made = task("it", source, warmup_max_s=1.0, timed_max_s=3.0)
        protocol = msgspec.structs.replace(made.workload.protocol, monitor_hz=monitor_hz)
        workload = msgspec.structs.replace(made.workload, protocol=protocol)
        told = msgspec.structs.replace(made, workload=workload)
        return result_of(LocalLauncher(tmp_path).launch(told)).process

    return launch


@pytest.fixture
def launched_command(task, tmp_path):
    """Launch a program as a command; return its peak host memory in MiB."""

    def launch(program, **parameters):
        made = task("it", ALONE, monitor_hz=5.0, **COMMAND_PROTOCOL)
        words = {"command": shlex.join([sys.executable, "-c", program]), **parameters}
        workload = msgspec.structs.replace(
            made.workload, file=command.__file__, launch="command", parameters=words
        )
        told = msgspec.structs.replace(made, workload=workload)
        process = result_of(LocalLauncher(tmp_path).launch(told)).process
        return launch_numbers.find_own_numbers(process)[metrics.HOST_RSS_PEAK.name] / MIB

    return launch


def test_what_a_command_prints_is_no_memory_of_it(launched_command):
    prints = "for _ in range(100_000): print(1000 * 'x')\nprint('took 5 ms')"

    small = launched_command("print('took 5 ms')", metric="t_ms=took (.) ms")
    large = launched_command(prints, metric="t_ms=took (.) ms", reads="regex", metrics=METRICS)

    assert large == pytest.approx(small, abs=4)


def test_a_command_counts_what_its_largest_process_and_all_together_held(launched_command):
    """A peak that is over before the monitor looks counts, too."""
    one = launched_command("bytearray(range(256)) * 2**20; import time; time.sleep(0.5)")
    both = launched_command(
        "import subprocess, sys; data = bytes(range(256)) * 2**19;"
        "subprocess.run([sys.executable, '-c', "
        "'import time; data = bytes(range(256)) * 2**19; time.sleep(1)'])"
    )

    assert one == pytest.approx(256 + 10, abs=16)
    assert both == pytest.approx(256 + 15, abs=24)


@pytest.mark.parametrize(
    ("source", "mib"),
    [(OTHER_PROGRAM, 132), (A_COMMAND, 132), (FORK, 0)],
    ids=["a server", "a command", "a fork, whose pages count once"],
)
def test_another_program_counts_with_all_that_it_holds(launched, source, mib):
    memory = launched(source).memory

    assert memory.below_by == "pss"
    assert memory.below_bytes == pytest.approx(mib * MIB, abs=8 * MIB)
    assert memory.host_rss_peak_bytes > (0 if mib else 128) * MIB
    assert memory.below_count == 1
    assert memory.below_largest_bytes > 128 * MIB


def test_a_process_by_itself_has_its_own_resident_set(launched):
    process = launched(ALONE)

    assert (process.memory.below_bytes, process.memory.below_by) == (0, "")
    numbers = launch_numbers.find_own_numbers(process)
    assert numbers[metrics.HOST_RSS_PEAK.name] == process.memory.host_rss_peak_bytes


def test_without_a_monitor_nobody_knows_what_children_hold(launched):
    process = launched(FORK, monitor_hz=0.0)

    assert process.memory.below_bytes is None
    assert metrics.HOST_RSS_PEAK.name not in launch_numbers.find_own_numbers(process)

import os

import pytest

from ci_perf.measuring import distrust
from ci_perf.measuring.monitor.server import Mark, Monitor
from ci_perf.model.task import MonitorMark
from tests.clocks import Clock

US = os.getpid()


@pytest.fixture
def clock():
    return Clock(100.0)


@pytest.fixture
def monitor(clock):
    return Monitor((), clock=clock)


@pytest.fixture
def hear(monitor, clock):
    """Let the monitor hear a worker that waits for so long."""

    def say(word, *, pid=US, waits_s=1.0):
        monitor.hear(Mark(word, pid, clock.now + waits_s))

    return say


def test_the_region_lies_between_the_first_begin_and_the_last_end_of_ranks(monitor, hear, clock):
    hear(MonitorMark.HELLO)
    clock.now += 10
    for word in (MonitorMark.BEGIN, MonitorMark.END):
        for pid in (US, os.getppid()):
            hear(word, pid=pid)
            clock.now += 1

    evidence = monitor.evidence()
    assert (evidence.host.wall_s, evidence.trouble) == (3, "")


def test_an_end_without_a_begin_is_no_border(monitor, hear, clock):
    hear(MonitorMark.END)
    clock.now += 5

    assert "never began" in monitor.evidence().trouble


def test_a_region_that_never_ends_lasts_until_now(monitor, hear, clock):
    hear(MonitorMark.BEGIN)
    clock.now += 5

    evidence = monitor.evidence()
    assert evidence.host.wall_s == 5
    assert "never ended" in evidence.trouble


@pytest.mark.parametrize("late", [MonitorMark.BEGIN, MonitorMark.END])
def test_a_border_that_the_worker_did_not_wait_for_is_told(monitor, hear, late):
    for word in (MonitorMark.HELLO, MonitorMark.BEGIN, MonitorMark.END):
        hear(word, waits_s=-1.0 if word == late else 1.0)

    assert "answered late" in monitor.evidence().trouble


def test_a_process_that_is_gone_has_left_no_figures(monitor, hear):
    gone = 2**22 + 1  # more than the kernel gives out
    for word in (MonitorMark.HELLO, MonitorMark.BEGIN, MonitorMark.END):
        hear(word, pid=gone)
    monitor.poll()

    evidence = monitor.evidence()
    assert evidence.host.cpu_s is None
    assert evidence.host_rss_peak_bytes is None


# --- a host of our own


@pytest.fixture
def tree(tmp_path):
    """A /proc and a /sys/fs/cgroup with one process: 7."""

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    for resource in ("cpu", "memory"):
        write(f"proc/pressure/{resource}", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    write("proc/7/cgroup", "0::/job\n")
    write("cgroups/job/cpu.stat", "throttled_usec 0\n")
    return write


@pytest.fixture
def reasons(tree, tmp_path, clock):
    """Time a region of 1 s in which these files change; return what speaks against it."""

    def judge(files=()):
        monitor = Monitor((), clock=clock, proc=tmp_path / "proc", cgroups=tmp_path / "cgroups")
        for word in (MonitorMark.HELLO, MonitorMark.BEGIN):
            monitor.hear(Mark(word, 7, clock.now + 1))
        clock.now += 1
        for name, text in dict(files).items():
            tree(name, text)
        monitor.hear(Mark(MonitorMark.END, 7, clock.now + 1))
        return distrust.distrust_process("w", monitor.evidence(), 1)

    return judge


def test_a_host_that_does_nothing_else_is_trusted(reasons):
    assert reasons() == ()


@pytest.mark.parametrize(
    ("file", "text", "code", "figure"),
    [
        ("proc/pressure/cpu", "some avg10=0 total=450000\n", "host_pressure", "45%"),
        ("proc/pressure/memory", "some avg10=0 total=90000\n", "memory_pressure", "9%"),
        ("cgroups/job/cpu.stat", "throttled_usec 250000\n", "cgroup_throttled", "0.25 s of 1 s"),
    ],
)
def test_what_the_kernel_counts_over_the_timed_region_speaks_against_it(
    reasons, file, text, code, figure
):
    (reason,) = reasons({file: text})

    assert reason.code == code
    assert figure in reason.detail

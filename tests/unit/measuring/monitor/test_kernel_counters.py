import shutil

import pytest

from ci_perf.measuring.monitor import kernel_counters


@pytest.fixture
def tree(tmp_path):
    """A /proc and a /sys/fs/cgroup of our own, with one process: 7."""

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    tmp_path.joinpath("proc").mkdir()
    tmp_path.joinpath("cgroups").mkdir()
    write("proc/7/cgroup", "0::/job/step\n")
    stat(write, user=100, system=50)
    return write


@pytest.fixture
def read(tmp_path):
    def now(*pids):
        return kernel_counters.read(
            pids or (7,), proc=tmp_path / "proc", cgroups=tmp_path / "cgroups"
        )

    return now


def stat(write, *, user, system):
    write("proc/7/stat", f"7 (a ) name) S 1 7 7 0 -1 4194560 1 2 3 4 {user} {system} 0 0 20\n")


def test_time_that_tasks_waited_is_the_total_of_some(tree, read):
    tree("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull total=9")
    tree("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n")

    counters = read()

    assert counters.cpu_wait_s == 2.5
    assert counters.memory_wait_s == 1e-6


def test_processor_time_is_the_difference_of_two_readings(tree, read):
    before = read()
    stat(tree, user=300, system=100)

    seconds = kernel_counters.cpu_s(before, read())

    assert seconds == pytest.approx(250 / kernel_counters._TICKS_PER_S)


@pytest.mark.usefixtures("tree")
def test_a_process_that_has_ended_is_absent(read, tmp_path):
    before = read()
    shutil.rmtree(tmp_path / "proc/7")
    after = read()

    assert after.cpu_s == {}
    assert kernel_counters.cpu_s(before, after) is None


def test_a_kernel_that_says_nothing_leaves_everything_absent(read):
    counters = read()

    assert (counters.cpu_wait_s, counters.memory_wait_s, counters.throttled_s) == (None, None, None)
    assert counters.cpu_s == {}


@pytest.mark.parametrize("text", ["", "7 (x", "7 (x) S 1 2", "7 (x) " + "a " * 20])
def test_a_line_of_another_form_is_absent(tree, read, text):
    tree("proc/7/stat", text)

    assert read().cpu_s == {}


@pytest.mark.parametrize(
    ("groups", "counts", "seconds"),
    [
        # That of the group, and of all above it.
        (
            "0::/job/step\n",
            {
                "cpu.stat": "usage_usec 5\n",
                "job/cpu.stat": "usage_usec 5\nthrottled_usec 1500000\n",
                "job/step/cpu.stat": "nr_throttled 3\nthrottled_usec 250000\n",
            },
            1.75,
        ),
        # Version 1 of control groups.
        (
            "9:memory:/m\n4:cpu,cpuacct:/job\n0::/\n",
            {"cpu/job/cpu.stat": "nr_throttled 3\nthrottled_time 2000000000\n"},
            2,
        ),
        # In a container, the root of what is mounted is asked.
        ("0::/host/path/of/the/container\n", {"cpu.stat": "throttled_usec 1000000\n"}, 1),
    ],
)
def test_throttling_is_that_of_the_control_groups(tree, read, groups, counts, seconds):
    tree("proc/7/cgroup", groups)
    for name, text in counts.items():
        tree(f"cgroups/{name}", text)

    assert read().throttled_s == seconds


def test_the_peak_of_memory_is_that_of_the_process(tree, tmp_path):
    tree("proc/7/status", "Name:\tx\nVmPeak:\t900 kB\nVmHWM:\t  2048 kB\n")

    assert kernel_counters.rss_peak_bytes(7, tmp_path / "proc") == 2 * 2**20
    assert kernel_counters.rss_peak_bytes(8, tmp_path / "proc") is None

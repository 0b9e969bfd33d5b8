"""Whether two processes fit, by the words of a kernel and of a driver that a test writes."""

import msgspec
import pytest

from ci_perf.launch import memory_check
from ci_perf.model.process import Memory
from ci_perf.model.suite import PlannedWorkload, Protocol

GB = 10**9
ONE = PlannedWorkload(id="w", file="w.py", description="", parameters={}, protocol=Protocol())


class Host:
    """The files in which a kernel says what is free, in a folder."""

    def __init__(self, root):
        self.proc, self.cgroups = root / "proc", root / "cgroup"
        self.write(self.proc / "meminfo", f"MemAvailable: {100 * GB // 1024} kB\n")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def version_2(self, folder, limit, *, used, reclaimable=0):
        group = self.cgroups / folder
        self.write(group / "memory.max", f"{limit}\n")
        self.write(group / "memory.current", f"{used}\n")
        self.write(group / "memory.stat", f"anon 7\ninactive_file {reclaimable}\n")

    def version_1(self, folder, limit, *, used):
        group = self.cgroups / "memory" / folder
        self.write(group / "memory.limit_in_bytes", f"{limit}\n")
        self.write(group / "memory.usage_in_bytes", f"{used}\n")

    def has_room(self, *peaks, workload=ONE):
        needed = [Memory(host_rss_peak_bytes=peak, device=None) for peak in peaks]
        return memory_check.has_room(workload, needed, proc=self.proc, cgroups=self.cgroups)


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_two_processes_fit_where_a_fifth_more_than_both_have_needed_is_free(host):
    assert host.has_room(41 * GB, 42 * GB)
    assert not host.has_room(42 * GB, 42 * GB)


def test_a_host_that_does_not_say_what_is_free_is_not_trusted_with_two(host):
    host.write(host.proc / "meminfo", "MemTotal: 7 kB\n")

    assert not host.has_room(1)


@pytest.mark.parametrize("folder", ["", "job", "job/step"])
def test_every_control_group_above_us_has_a_say(host, folder):
    host.write(host.proc / "self/cgroup", "0::/job/step\n")
    host.version_2(folder, 10 * GB, used=5 * GB)

    assert host.has_room(2 * GB, 2 * GB)
    assert not host.has_room(3 * GB, 3 * GB)


def test_pages_of_files_make_room(host):
    host.write(host.proc / "self/cgroup", "0::/job\n")
    host.version_2("job", 10 * GB, used=9 * GB, reclaimable=8 * GB)

    assert host.has_room(3 * GB, 3 * GB)


def test_the_older_control_groups_have_a_say_too(host):
    host.write(host.proc / "self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    host.version_1("", 2**63 - 4096, used=50 * GB)
    host.version_1("job", 10 * GB, used=5 * GB)

    assert host.has_room(2 * GB, 2 * GB)
    assert not host.has_room(3 * GB, 3 * GB)


def test_a_control_group_without_a_limit_says_nothing(host):
    host.write(host.proc / "self/cgroup", "0::/job\n")
    host.version_2("job", "max", used=5 * GB)

    assert host.has_room(3 * GB, 3 * GB)


@pytest.mark.parametrize("ranks", [{"launch": "torchrun"}, {"world_size": 2}])
def test_ranks_are_never_resident_in_pairs(host, ranks):
    workload = msgspec.structs.replace(ONE, **ranks)

    assert not host.has_room(1, workload=workload)

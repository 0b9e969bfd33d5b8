"""Whether two processes fit, by the words of a kernel and of a driver that a test writes."""

import msgspec
import pytest

from ci_perf.launch import memory_check
from ci_perf.launch.memory_check import Peak
from ci_perf.model.process import DeviceMemory, Memory
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.task import GpuState, GpuStates

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

    def reason(self, *peaks, workload=ONE, gpus=None):
        return memory_check.reason_against(
            workload, peaks, gpus, proc=self.proc, cgroups=self.cgroups
        )


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def a_gpu(*, total, used):
    known = {"uuid": "GPU-a", "absent": {}, "total_bytes": total, "used_bytes": used}
    silent = dict.fromkeys(set(GpuState.__struct_fields__) - {*known, "lost"})
    return GpuStates(gpus=(msgspec.convert(silent | known, GpuState),))


def test_two_processes_fit_where_a_fifth_more_than_both_have_needed_is_free(host):
    assert host.reason(Peak(host_bytes=41 * GB), Peak(host_bytes=42 * GB)) == ""
    assert host.reason(Peak(host_bytes=42 * GB), Peak(host_bytes=42 * GB)) == (
        "this host: expected 100.8 GB of free memory for both, found 100.0 GB"
    )


def test_a_host_that_does_not_say_what_is_free_is_not_trusted_with_two(host):
    host.write(host.proc / "meminfo", "MemTotal: 7 kB\n")

    assert host.reason(Peak(host_bytes=1)) == "this host: nobody says how much memory is free"


@pytest.mark.parametrize("folder", ["", "job", "job/step"])
def test_every_control_group_above_us_has_a_say(host, folder):
    host.write(host.proc / "self/cgroup", "0::/job/step\n")
    host.version_2(folder, 10 * GB, used=5 * GB)

    reason = host.reason(Peak(host_bytes=3 * GB), Peak(host_bytes=3 * GB))

    assert reason.startswith(f"the control group {host.cgroups / folder}: expected 7.2 GB")
    assert reason.endswith("found 5.0 GB")


def test_pages_of_files_make_room(host):
    host.write(host.proc / "self/cgroup", "0::/job\n")
    host.version_2("job", 10 * GB, used=9 * GB, reclaimable=8 * GB)

    assert host.reason(Peak(host_bytes=3 * GB), Peak(host_bytes=3 * GB)) == ""


def test_the_older_control_groups_have_a_say_too(host):
    host.write(host.proc / "self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    host.version_1("", 2**63 - 4096, used=50 * GB)
    host.version_1("job", 10 * GB, used=5 * GB)

    assert "found 5.0 GB" in host.reason(Peak(host_bytes=3 * GB), Peak(host_bytes=3 * GB))


def test_a_control_group_without_a_limit_says_nothing(host):
    host.write(host.proc / "self/cgroup", "0::/job\n")
    host.version_2("job", "max", used=5 * GB)

    assert host.reason(Peak(host_bytes=3 * GB), Peak(host_bytes=3 * GB)) == ""


def test_on_a_gpu_both_need_room_and_a_context_each(host):
    peaks = [Peak(host_bytes=GB, device_bytes=30 * GB)] * 2

    assert host.reason(*peaks, gpus=a_gpu(total=80 * GB, used=GB)) == ""
    assert host.reason(*peaks, gpus=a_gpu(total=80 * GB, used=6 * GB)) == (
        "GPU-a: expected 74.6 GB of free memory for both, found 74.0 GB"
    )


def test_a_gpu_whose_driver_does_not_say_is_not_trusted_with_two(host):
    reason = host.reason(Peak(host_bytes=1), gpus=a_gpu(total=None, used=0))

    assert reason == "GPU-a: nobody says how much memory is free"


@pytest.mark.parametrize("ranks", [{"launch": "torchrun"}, {"world_size": 2}])
def test_ranks_are_never_resident_in_pairs(host, ranks):
    workload = msgspec.structs.replace(ONE, **ranks)

    assert "one after the other" in host.reason(Peak(host_bytes=1), workload=workload)


def test_a_peak_is_what_the_allocator_had_reserved_and_the_host_had_resident():
    device = DeviceMemory(
        peak_allocated_bytes=1,
        peak_reserved_bytes=3,
        peak_active_bytes=2,
        alloc_retries=0,
        out_of_memory=0,
    )

    assert memory_check.peak_of(Memory(host_rss_peak_bytes=7, device=device)) == Peak(
        host_bytes=7, device_bytes=3
    )
    assert memory_check.peak_of(Memory(host_rss_peak_bytes=7, device=None)) == Peak(host_bytes=7)

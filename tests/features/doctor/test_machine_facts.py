"""Facts are read from a tree of files; what is not there is absent."""

from pathlib import Path

import pytest

from ci_perf.features.doctor import machine_facts
from ci_perf.features.doctor.machine_facts import Sources
from ci_perf.model import facts
from tests.features.doctor import machines


@pytest.fixture
def gather(tmp_path):
    """Read facts from the files written below `tmp_path`."""

    def read(tree, *, environ=(), programs=("git", "gcc", "g++")):
        for name, text in tree.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return machine_facts.gather(
            Sources(
                root=tmp_path,
                environ=dict(environ),
                temporary=tmp_path,
                torch=machines.a_cpu_torch,
                nvml=machines.an_nvml,
                which=lambda name: f"/usr/bin/{name}" if name in programs else None,
            )
        )

    return read


def test_an_empty_tree_gives_facts_and_no_crash(gather):
    machine = gather({})

    assert machine.host.container is None
    assert machine.host.cpu_pressure_percent is None
    assert machine.host.memory_bytes is None
    assert machine.host.cpu_quota is None
    assert machine.host.shared_memory is None
    assert machine.graphics.pci == ()
    assert machine.graphics.nodes == ()
    assert machine.graphics.kernel_module is None


def test_a_gpu_on_the_bus_is_found_among_other_devices(gather):
    bus = "sys/bus/pci/devices"

    machine = gather(
        {
            f"{bus}/0000:01:00.0/vendor": "0x10de\n",
            f"{bus}/0000:01:00.0/class": "0x030200\n",
            f"{bus}/0000:01:00.1/vendor": "0x10de\n",  # the sound device of the same card
            f"{bus}/0000:01:00.1/class": "0x040300\n",
            f"{bus}/0000:02:00.0/vendor": "0x1002\n",  # another vendor's GPU
            f"{bus}/0000:02:00.0/class": "0x030000\n",
            f"{bus}/0000:03:00.0/vendor": "0x10de\n",  # no class: unreadable
        }
    )

    assert machine.graphics.pci == ("0000:01:00.0",)


def test_the_driver_is_known_by_the_first_line_of_its_version_file(gather):
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15\nGCC version: 12\n"

    machine = gather({"proc/driver/nvidia/version": version, "sys/module/nouveau/version": "1"})

    assert machine.graphics.kernel_module == (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15"
    )
    assert machine.graphics.nouveau


def test_device_nodes_are_opened_and_others_are_ignored(gather, tmp_path):
    (tmp_path / "dev/nvidia1").mkdir(parents=True)  # a folder cannot be opened for writing

    machine = gather(
        {"dev/nvidia0": "", "dev/nvidiactl": "", "dev/nvidia-modeset": "", "dev/sda": ""}
    )

    assert machine.graphics.nodes == (
        facts.DeviceNode(path="/dev/nvidia0", usable=True),
        facts.DeviceNode(path="/dev/nvidia1", usable=False),
        facts.DeviceNode(path="/dev/nvidiactl", usable=True),
    )


@pytest.mark.parametrize(
    ("tree", "environ", "kind"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({"proc/1/cgroup": "0::/kubepods.slice/pod1\n"}, {}, "kubernetes"),
        ({"proc/1/cgroup": "0::/system.slice/docker-4f.scope\n"}, {}, "docker"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"APPTAINER_CONTAINER": "/image.sif"}, "apptainer"),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, None),
    ],
)
def test_a_container_is_known_by_its_marks(gather, tree, environ, kind):
    assert gather(tree, environ=environ).host.container == kind


@pytest.mark.parametrize(
    ("tree", "cores"),
    [
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            2.0,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_a_cpu_quota_is_read_from_both_versions_of_cgroups(gather, tree, cores):
    assert gather(tree).host.cpu_quota == cores


def test_cpu_model_memory_and_pressure_come_from_proc(gather):
    machine = gather(
        {
            "proc/cpuinfo": "processor : 0\nmodel name\t: AMD EPYC 9654\n",
            "proc/meminfo": "MemTotal: 4194304 kB\n",
            "proc/pressure/cpu": "some avg10=12.50 avg60=3.00 avg300=1.00 total=5\n",
        }
    )

    assert machine.host.cpu_model == "AMD EPYC 9654"
    assert machine.host.memory_bytes == 4 * 2**30
    assert machine.host.cpu_pressure_percent == 12.5


def test_a_compiler_named_by_the_environment_is_the_one_that_is_looked_for(gather):
    chosen = {"CC": "icx -O2", "CXX": "icpx"}

    assert not gather({}, environ=chosen).programs.c_compiler
    assert gather({}, environ=chosen, programs=("icx", "icpx")).programs.c_compiler
    assert not gather({}, programs=("git", "gcc")).programs.cxx_compiler


def test_an_empty_cuda_visible_devices_is_not_an_absent_one(gather):
    assert gather({}, environ={"CUDA_VISIBLE_DEVICES": ""}).graphics.visible_devices == ""
    assert gather({}).graphics.visible_devices is None


def test_this_machine_is_read_from_its_root():
    assert machine_facts.this_machine().root == Path("/")

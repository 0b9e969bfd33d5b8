"""Each thing that can be wrong with a machine is named, with the next step."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.doctor.diagnosis import DeviceKind
from ci_perf.model import facts
from ci_perf.model.facts import Level
from tests.features.doctor import machines
from tests.features.doctor.machines import codes, diagnose, finding

MIB, GIB = 2**20, 2**30


NO_GPU = machines.no_graphics()
UNDRIVEN = machines.no_graphics(pci=("0000:01:00.0",))
BOTH = (DeviceKind.CPU, DeviceKind.CUDA)


@pytest.mark.parametrize(
    ("machine", "found", "measures"),
    [
        ({}, ["cpu_works", "cuda_works"], BOTH),
        # NVIDIA's forward compatibility package makes this possible.
        (
            {
                "graphics": machines.graphics(nvml=machines.an_nvml(cuda="12.0")),
                "torch": machines.a_torch(cuda="13.0"),
            },
            ["cpu_works", "cuda_works"],
            BOTH,
        ),
        ({"graphics": NO_GPU, "torch": machines.a_cpu_torch()}, ["no_gpu", "cpu_works"], BOTH[:1]),
        (
            {"graphics": UNDRIVEN, "torch": machines.a_cpu_torch()},
            ["no_driver", "cpu_only_torch", "cpu_works"],
            BOTH[:1],
        ),
        (
            {
                "host": machines.a_host(cpu_pressure_percent=50.0),
                "torch": machines.a_cpu_torch(),
            },
            ["cpu_only_torch", "noisy_machine", "cpu_works"],
            BOTH[:1],
        ),
        ({"torch": facts.TorchMissing()}, ["torch_missing"], ()),
        ({"torch": facts.TorchBroken(reason="OSError: libtorch.so")}, ["torch_broken"], ()),
        (
            {"torch": facts.TorchMissing(), "graphics": UNDRIVEN},
            ["torch_missing", "no_driver"],
            (),
        ),
        (
            {"programs": machines.programs(python="3.10.2")},
            ["python_too_old", "cpu_works", "cuda_works"],
            (),
        ),
    ],
)
def test_what_is_found_comes_worst_first_and_decides_what_can_be_measured(machine, found, measures):
    diagnosis = diagnose(**machine)

    assert codes(diagnosis) == found
    assert diagnosis.can_measure == measures
    assert diagnosis.exit_code == (ExitCode.OK if measures else ExitCode.NO_ANSWER)


OLD = "driver on your system is too old"
TOO_OLD = "CUDA 13.0; the driver 525.60 runs at most CUDA 12.0"
NO_KERNEL = "no kernel image is available for execution"
BUS = ("0000:01:00.0",)
REFUSED = (*machines.nodes(*machines.NODES), *machines.nodes("/dev/nvidia1", usable=False))


def blind(error="unknown error", **more):
    """A torch that sees no GPU, and says this."""
    return machines.a_torch(devices=0, error=f"RuntimeError: {error}", **more)


def silent(trouble, **more):
    """Graphics whose driver does not answer."""
    return machines.graphics(nvml=machines.a_silent_nvml(trouble), **more)


def driver(cuda, version="570.86.15", **more):
    """Graphics whose driver runs at most this CUDA."""
    return machines.graphics(nvml=machines.an_nvml(driver=version, cuda=cuda), **more)


@pytest.mark.parametrize(
    ("code", "graphics", "torch", "what", "next_step"),
    [
        (
            "no_driver",
            machines.no_graphics(pci=BUS, nouveau=True),
            blind(),
            "nouveau holds it",
            "nvidia-smi",
        ),
        ("no_driver", silent("driver_not_loaded", kernel_module=None), blind(), "", ""),
        ("cpu_only_torch", machines.graphics(), machines.a_cpu_torch(), "NVIDIA H200", "12.8"),
        ("driver_too_old", driver("12.0", "525.60"), blind(cuda="13.0"), TOO_OLD, ""),
        ("driver_too_old", silent("not_installed"), blind(f"The NVIDIA {OLD}"), "", ""),
        (
            "driver_too_old",
            driver("11.4", visible_devices="0"),
            machines.a_torch(error=OLD),
            "",
            "",
        ),
        # An older minor version is not to blame, nor is one refused GPU of two.
        (
            "cuda_init_error",
            driver("12.4"),
            machines.a_torch(error="device busy"),
            "device busy",
            "",
        ),
        (
            "cuda_init_error",
            silent("other", nodes=REFUSED),
            machines.a_torch(error="memory"),
            "",
            "",
        ),
        ("cuda_init_error", machines.graphics(), machines.a_torch(devices=0), "", ""),
        (
            "no_device_nodes",
            silent("other", nodes=machines.nodes("/dev/nvidiactl")),
            blind(),
            "/dev/nvidia0, /dev/nvidia-uvm are missing",
            "",
        ),
        ("driver_mismatch", silent("version_mismatch"), blind(), "", "Reboot"),
        ("driver_libraries_missing", silent("library_not_found"), blind(), "", "libnvidia-compute"),
        ("gpu_unsupported", machines.graphics(), machines.a_torch(error=NO_KERNEL), "", ""),
    ],
)
def test_why_a_gpu_cannot_be_used_is_named_with_the_next_step(
    code, graphics, torch, what, next_step
):
    diagnosis = diagnose(graphics=graphics, torch=torch)

    assert codes(diagnosis) == [code, "cpu_works"]
    assert what in finding(code, diagnosis).what
    assert next_step in finding(code, diagnosis).next_step
    assert diagnosis.can_measure == (DeviceKind.CPU,)


def test_a_container_is_told_how_it_gets_a_gpu_or_its_libraries():
    host = machines.a_host(container="docker")

    unseen = diagnose(host=host, graphics=machines.no_graphics(), torch=machines.a_cpu_torch())
    without = diagnose(host=host, graphics=silent("library_not_found"), torch=blind())

    assert "--gpus all" in finding("no_gpu", unseen).next_step
    assert codes(without)[0] == "driver_libraries_missing"
    assert "NVIDIA_DRIVER_CAPABILITIES" in without.findings[0].next_step


@pytest.mark.parametrize(
    ("container", "advice"),
    [
        ("docker", "docker run --gpus all"),
        ("podman", "--device nvidia.com/gpu=all"),
        ("kubernetes", "nvidia.com/gpu: 1"),
        ("apptainer", "--nv"),
    ],
)
@pytest.mark.parametrize("seen", [{"pci": ("0000:01:00.0",)}, {"kernel_module": "NVRM 570"}])
def test_a_container_started_without_its_gpus_is_told_how(container, advice, seen):
    diagnosis = diagnose(
        host=machines.a_host(container=container),
        graphics=machines.no_graphics(**seen),
        torch=machines.a_torch(devices=0, error="RuntimeError: no driver"),
    )

    assert codes(diagnosis)[0] == "container_without_gpus"
    assert advice in finding("container_without_gpus", diagnosis).next_step


@pytest.mark.parametrize("refused", [["/dev/nvidia0"], ["/dev/nvidiactl"], list(machines.NODES)])
def test_device_nodes_that_may_not_be_opened_are_named(refused):
    usable = [path for path in machines.NODES if path not in refused]
    nodes = machines.nodes(*usable) + machines.nodes(*refused, usable=False)

    diagnosis = diagnose(
        graphics=machines.graphics(nodes=nodes, nvml=machines.a_silent_nvml("no_permission")),
        torch=machines.a_torch(devices=0, error="RuntimeError: unknown error"),
    )

    assert codes(diagnosis)[0] == "no_permission"
    assert all(path in finding("no_permission", diagnosis).what for path in refused)


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-00000000"])
def test_cuda_visible_devices_that_hides_all_is_named(visible):
    diagnosis = diagnose(
        graphics=machines.graphics(visible_devices=visible),
        torch=machines.a_torch(devices=0, error="RuntimeError: No CUDA GPUs are available"),
    )

    assert codes(diagnosis)[0] == "devices_hidden"
    assert repr(visible) in finding("devices_hidden", diagnosis).what


def test_without_torch_both_ways_to_have_one_are_named():
    step = finding("torch_missing", diagnose(torch=facts.TorchMissing())).next_step

    assert "pip install 'ci-perf[measure]'`" in step
    assert "`ci-perf doctor --runner docker`" in step


def test_a_gpu_without_nvml_can_be_measured_with_a_warning():
    nvml = machines.a_silent_nvml("not_installed", "No module named 'pynvml'")

    diagnosis = diagnose(graphics=machines.graphics(nvml=nvml))

    assert DeviceKind.CUDA in diagnosis.can_measure
    assert codes(diagnosis)[0] == "nvml_unavailable"
    assert "pip install nvidia-ml-py" in finding("nvml_unavailable", diagnosis).next_step


def test_rocm_works_and_is_called_untested():
    diagnosis = diagnose(
        graphics=machines.no_graphics(), torch=machines.a_torch(cuda=None, hip="6.2")
    )

    assert "ROCm 6.2, untested" in finding("cuda_works", diagnosis).what


def test_whatever_is_not_well_has_a_next_step():
    diagnosis = diagnose(
        host=machines.a_host(container="docker", cpu_pressure_percent=50.0, cpu_quota=1.0),
        graphics=machines.no_graphics(pci=("0000:01:00.0",)),
        torch=machines.a_cpu_torch(),
        programs=machines.programs(git=False, transformers=None, c_compiler=False),
    )

    assert all(one.next_step for one in diagnosis.findings if one.level is not Level.OK)
    assert len(diagnosis.findings) == 8


@pytest.mark.parametrize("torch", [machines.a_torch(devices=1), blind("CUDA error")])
def test_a_lost_gpu_is_named_whether_or_not_another_one_works(torch):
    lost = facts.InstalledGpu(name="GPU 1", memory_bytes=None, trouble="GPU is lost")
    nvml = machines.an_nvml(gpus=(machines.H200, lost))

    diagnosis = diagnose(graphics=machines.graphics(nvml=nvml), torch=torch)

    assert "GPU 1: GPU is lost" in finding("gpu_lost", diagnosis).what
    assert len(codes(diagnosis)) > 1

"""Each thing that can be wrong with a machine is named, with the next step."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.doctor.diagnosis import DeviceKind
from ci_perf.model import facts
from ci_perf.model.facts import Level
from tests.features.doctor import machines
from tests.features.doctor.machines import codes, diagnose, finding

MIB, GIB = 2**20, 2**30


def test_a_sound_gpu_machine_can_measure_both_and_has_no_complaints():
    diagnosis = diagnose()

    assert diagnosis.can_measure == (DeviceKind.CPU, DeviceKind.CUDA)
    assert {finding.level for finding in diagnosis.findings} == {Level.OK}
    assert diagnosis.exit_code == ExitCode.OK


def test_a_machine_without_a_gpu_is_fine_for_cpu_workloads():
    diagnosis = diagnose(graphics=machines.no_graphics(), torch=machines.a_cpu_torch())

    assert diagnosis.can_measure == (DeviceKind.CPU,)
    assert codes(diagnosis) == ["no_gpu", "cpu_works"]
    assert diagnosis.exit_code == ExitCode.OK


def test_a_container_that_shows_no_gpu_is_told_how_it_would_get_one():
    diagnosis = diagnose(
        host=machines.a_host(container="docker"),
        graphics=machines.no_graphics(),
        torch=machines.a_cpu_torch(),
    )

    assert "--gpus all" in finding("no_gpu", diagnosis).next_step


def test_a_gpu_without_a_driver_is_told_to_install_one():
    diagnosis = diagnose(
        graphics=machines.no_graphics(pci=("0000:01:00.0",), nouveau=True),
        torch=machines.a_torch(devices=0, error="RuntimeError: Found no NVIDIA driver"),
    )

    assert codes(diagnosis) == ["no_driver", "cpu_works"]
    assert "nouveau holds it" in finding("no_driver", diagnosis).what
    assert "nvidia-smi" in finding("no_driver", diagnosis).next_step


def test_a_driver_that_is_installed_and_not_loaded_is_no_driver():
    silent = machines.a_silent_nvml("driver_not_loaded")

    diagnosis = diagnose(
        graphics=machines.graphics(kernel_module=None, nvml=silent),
        torch=machines.a_torch(devices=0, error="RuntimeError: no driver"),
    )

    assert codes(diagnosis)[0] == "no_driver"


def test_a_cpu_only_torch_on_a_gpu_machine_is_named_with_the_newest_cuda_it_may_have():
    diagnosis = diagnose(torch=machines.a_cpu_torch())

    assert codes(diagnosis) == ["cpu_only_torch", "cpu_works"]
    assert "NVIDIA H200" in finding("cpu_only_torch", diagnosis).what
    assert "12.8" in finding("cpu_only_torch", diagnosis).next_step
    assert diagnosis.can_measure == (DeviceKind.CPU,)


def test_no_driver_and_a_cpu_only_torch_are_both_named():
    diagnosis = diagnose(
        graphics=machines.no_graphics(pci=("0000:01:00.0",)), torch=machines.a_cpu_torch()
    )

    assert codes(diagnosis)[:2] == ["no_driver", "cpu_only_torch"]


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


def test_a_driver_too_old_for_this_torch_is_named_with_both_versions():
    diagnosis = diagnose(
        graphics=machines.graphics(nvml=machines.an_nvml(driver="525.60", cuda="12.0")),
        torch=machines.a_torch(cuda="13.0", devices=0, error="RuntimeError: cannot"),
    )

    assert codes(diagnosis)[0] == "driver_too_old"
    assert "CUDA 13.0" in finding("driver_too_old", diagnosis).what
    assert "525.60 runs at most CUDA 12.0" in finding("driver_too_old", diagnosis).what


def test_an_older_minor_version_of_cuda_in_the_driver_is_not_blamed():
    diagnosis = diagnose(
        graphics=machines.graphics(nvml=machines.an_nvml(cuda="12.4")),
        torch=machines.a_torch(cuda="12.8", error="RuntimeError: device busy"),
    )

    assert codes(diagnosis)[0] == "cuda_init_error"


def test_torch_saying_that_the_driver_is_too_old_is_believed_without_nvml():
    diagnosis = diagnose(
        graphics=machines.graphics(nvml=machines.a_silent_nvml("not_installed")),
        torch=machines.a_torch(
            devices=0, error="RuntimeError: The NVIDIA driver on your system is too old"
        ),
    )

    assert codes(diagnosis)[0] == "driver_too_old"


def test_a_newer_torch_that_works_on_an_older_driver_is_left_in_peace():
    """NVIDIA's forward compatibility package makes this possible."""
    diagnosis = diagnose(
        graphics=machines.graphics(nvml=machines.an_nvml(cuda="12.0")),
        torch=machines.a_torch(cuda="13.0"),
    )

    assert codes(diagnosis) == ["cpu_works", "cuda_works"]


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


def test_one_refused_gpu_of_two_is_not_why_the_other_fails():
    nodes = machines.nodes(*machines.NODES) + machines.nodes("/dev/nvidia1", usable=False)

    diagnosis = diagnose(
        graphics=machines.graphics(nodes=nodes, nvml=machines.a_silent_nvml("other")),
        torch=machines.a_torch(error="RuntimeError: out of memory"),
    )

    assert codes(diagnosis)[0] == "cuda_init_error"


def test_missing_device_nodes_are_named():
    diagnosis = diagnose(
        graphics=machines.graphics(
            nodes=machines.nodes("/dev/nvidiactl"), nvml=machines.a_silent_nvml("other")
        ),
        torch=machines.a_torch(devices=0, error="RuntimeError: unknown error"),
    )

    assert codes(diagnosis)[0] == "no_device_nodes"
    assert "/dev/nvidia0, /dev/nvidia-uvm are missing" in finding("no_device_nodes", diagnosis).what


def test_a_driver_updated_while_it_ran_needs_a_reboot():
    diagnosis = diagnose(
        graphics=machines.graphics(nvml=machines.a_silent_nvml("version_mismatch")),
        torch=machines.a_torch(devices=0, error="RuntimeError: unknown error"),
    )

    assert codes(diagnosis)[0] == "driver_mismatch"
    assert "Reboot" in finding("driver_mismatch", diagnosis).next_step


@pytest.mark.parametrize(
    ("container", "advice"), [(None, "libnvidia-compute"), ("docker", "NVIDIA_DRIVER_CAPABILITIES")]
)
def test_a_kernel_module_without_its_libraries_is_named(container, advice):
    diagnosis = diagnose(
        host=machines.a_host(container=container),
        graphics=machines.graphics(nvml=machines.a_silent_nvml("library_not_found")),
        torch=machines.a_torch(devices=0, error="RuntimeError: Found no NVIDIA driver"),
    )

    assert codes(diagnosis)[0] == "driver_libraries_missing"
    assert advice in finding("driver_libraries_missing", diagnosis).next_step


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-00000000"])
def test_cuda_visible_devices_that_hides_all_is_named(visible):
    diagnosis = diagnose(
        graphics=machines.graphics(visible_devices=visible),
        torch=machines.a_torch(devices=0, error="RuntimeError: No CUDA GPUs are available"),
    )

    assert codes(diagnosis)[0] == "devices_hidden"
    assert repr(visible) in finding("devices_hidden", diagnosis).what


def test_a_sound_cuda_visible_devices_is_not_blamed_for_an_old_driver():
    diagnosis = diagnose(
        graphics=machines.graphics(visible_devices="0", nvml=machines.an_nvml(cuda="11.4")),
        torch=machines.a_torch(error="RuntimeError: driver on your system is too old"),
    )

    assert codes(diagnosis)[0] == "driver_too_old"


def test_a_torch_without_kernels_for_this_gpu_is_named():
    diagnosis = diagnose(torch=machines.a_torch(error="no kernel image is available for execution"))

    assert codes(diagnosis)[0] == "gpu_unsupported"
    assert diagnosis.can_measure == (DeviceKind.CPU,)


def test_an_init_error_beside_a_working_driver_is_quoted():
    diagnosis = diagnose(torch=machines.a_torch(error="RuntimeError: CUDA error: device busy"))

    assert codes(diagnosis)[0] == "cuda_init_error"
    assert "CUDA error: device busy" in finding("cuda_init_error", diagnosis).what


def test_a_torch_that_sees_no_device_and_gives_no_reason_is_an_init_error():
    assert codes(diagnose(torch=machines.a_torch(devices=0)))[0] == "cuda_init_error"


@pytest.mark.parametrize(
    ("torch", "code"),
    [
        (facts.TorchMissing(), "torch_missing"),
        (facts.TorchBroken(reason="OSError: libtorch.so"), "torch_broken"),
    ],
)
def test_without_a_torch_that_can_be_imported_nothing_can_be_measured(torch, code):
    diagnosis = diagnose(torch=torch)

    assert codes(diagnosis) == [code]
    assert diagnosis.can_measure == ()
    assert diagnosis.exit_code == ExitCode.NO_ANSWER


def test_without_torch_both_ways_to_have_one_are_named():
    step = finding("torch_missing", diagnose(torch=facts.TorchMissing())).next_step

    assert "pip install '.[measure]'` in a checkout of ci_perf" in step
    assert "`ci-perf doctor --runner docker`" in step


def test_a_missing_torch_does_not_hide_a_missing_driver():
    diagnosis = diagnose(
        torch=facts.TorchMissing(), graphics=machines.no_graphics(pci=("0000:01:00.0",))
    )

    assert codes(diagnosis) == ["torch_missing", "no_driver"]


def test_an_old_python_can_measure_nothing():
    diagnosis = diagnose(programs=machines.programs(python="3.10.2"))

    assert codes(diagnosis)[0] == "python_too_old"
    assert diagnosis.can_measure == ()


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


def test_findings_come_worst_first():
    diagnosis = diagnose(
        host=machines.a_host(cpu_pressure_percent=50.0), torch=machines.a_cpu_torch()
    )

    assert codes(diagnosis) == ["cpu_only_torch", "noisy_machine", "cpu_works"]


def test_whatever_is_not_well_has_a_next_step():
    diagnosis = diagnose(
        host=machines.a_host(container="docker", cpu_pressure_percent=50.0, cpu_quota=1.0),
        graphics=machines.no_graphics(pci=("0000:01:00.0",)),
        torch=machines.a_cpu_torch(),
        programs=machines.programs(git=False, transformers=None, c_compiler=False),
    )

    assert all(one.next_step for one in diagnosis.findings if one.level is not Level.OK)
    assert len(diagnosis.findings) == 8

"""Builders of machine facts that name only what a test is about; the default is sound."""

import msgspec

from ci_perf.features.doctor.diagnosis import diagnose as diagnose_facts
from ci_perf.model import facts
from ci_perf.model.run import Tool

GIB = 2**30
H200 = facts.InstalledGpu(name="NVIDIA H200", memory_bytes=141 * GIB)
IMAGE = f"registry.example/perf@sha256:{'1' * 64}"
NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")


def a_host(**more):
    plain = facts.Host(
        system="Linux 6.1.0",
        container=None,
        cpu_model="AMD EPYC",
        logical_cores=8,
        usable_cores=8,
        cpu_quota=None,
        cpu_pressure_percent=0.5,
        memory_bytes=64 * GIB,
        temporary=a_space("/tmp"),
        shared_memory=a_space("/dev/shm"),
    )
    return msgspec.structs.replace(plain, **more)


def a_space(path, *, total=100 * GIB, free=50 * GIB):
    return facts.Space(path=path, total_bytes=total, free_bytes=free)


def nodes(*paths, usable=True):
    return tuple(facts.DeviceNode(path=path, usable=usable) for path in paths)


def an_nvml(*, driver="570.86.15", cuda="12.8", gpus=(H200,)):
    return facts.NvmlAnswer(driver=driver, cuda=cuda, gpus=gpus)


def a_silent_nvml(trouble, detail="NVMLError"):
    return facts.NvmlSilence(trouble=facts.NvmlError(trouble), detail=detail)


def graphics(**more):
    plain = facts.Graphics(
        pci=("0000:01:00.0",),
        kernel_module="NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15",
        nouveau=False,
        nodes=nodes(*NODES),
        visible_devices=None,
        nvml=an_nvml(),
    )
    return msgspec.structs.replace(plain, **more)


def no_graphics(**more):
    """A machine without a GPU and without a driver."""
    silent = a_silent_nvml("library_not_found")
    nothing = {"pci": (), "kernel_module": None, "nodes": (), "nvml": silent}
    return graphics(**{**nothing, **more})


def a_torch(*, cuda="12.8", hip=None, devices=1, error=""):
    return facts.TorchBuild(
        version="2.13.0", cuda=cuda, hip=hip, device_count=devices, cuda_error=error
    )


def a_cpu_torch():
    return a_torch(cuda=None, devices=0)


def programs(**more):
    plain = facts.Programs(
        python="3.12.4", transformers="5.23.0", git=True, c_compiler=True, cxx_compiler=True
    )
    return msgspec.structs.replace(plain, **more)


def a_machine(**more):
    plain = facts.MachineFacts(
        host=a_host(), graphics=graphics(), torch=a_torch(), programs=programs()
    )
    return msgspec.structs.replace(plain, **more)


def containers(**more):
    return facts.Containers(
        **{"engine": "docker", "version": "28.2.2", "image": IMAGE, **more},
    )


def diagnose(**machine):
    """Return what the doctor says of a machine."""
    return diagnose_facts(a_machine(**machine), Tool(version="0.1.0"))


def codes(diagnosis):
    """Return the codes of the findings, in their order."""
    return [finding.code for finding in diagnosis.findings]


def finding(code, diagnosis):
    """Return the finding that has this code."""
    return next(finding for finding in diagnosis.findings if finding.code == code)

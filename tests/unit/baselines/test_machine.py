import pytest

from ci_perf.baselines import machine
from ci_perf.model.environment import CpuMachine, GpuMachine


def a_gpu(model, *, count=1, mig=False):
    return GpuMachine(gpu_model=model, gpu_count=count, gpu_memory_bytes=1, mig=mig)


@pytest.mark.parametrize(
    ("found", "key"),
    [
        (CpuMachine(cpu_model="AMD EPYC", logical_cores=2), "cpu-amd-epyc-2-cores"),
        (
            CpuMachine(cpu_model="Intel(R) Xeon(R) CPU @ 2.20GHz", logical_cores=8),
            "cpu-intel-xeon-8-cores",
        ),
        (CpuMachine(cpu_model="", logical_cores=1), "cpu-unknown-1-cores"),
        (a_gpu("NVIDIA H200"), "nvidia-h200"),
        (a_gpu("NVIDIA A100-SXM4-80GB", count=4), "nvidia-a100-sxm4-80gb-x4"),
        (a_gpu("NVIDIA H100", mig=True), "nvidia-h100-mig"),
        (a_gpu("../../etc"), "etc"),
    ],
)
def test_a_class_of_machines_has_a_readable_name(found, key):
    assert machine.key(found) == key

"""Which machines are the same to the judge."""

import msgspec
import pytest

from ci_perf.model.environment import CpuMachine, GpuMachine, is_same

MIB = 2**20
H100 = GpuMachine(
    gpu_model="NVIDIA H100 80GB HBM3", gpu_count=1, gpu_memory_bytes=81_559 * MIB, mig=False
)
CPU = CpuMachine(cpu_model="AMD EPYC", logical_cores=2)


def changed(**facts):
    return msgspec.structs.replace(H100, **facts)


@pytest.mark.parametrize("mib", [81_556, 81_559, 81_920, 80_100])
def test_boards_of_one_model_are_the_same_though_their_memory_differs_a_little(mib):
    other = changed(gpu_memory_bytes=mib * MIB)

    assert is_same(H100, other)
    assert is_same(other, H100)


@pytest.mark.parametrize(
    "other",
    [
        changed(gpu_memory_bytes=81_559 * MIB * 15 // 16),  # what ECC takes of GDDR memory
        changed(gpu_memory_bytes=40 * 1024 * MIB),
        changed(gpu_memory_bytes=0),
        changed(gpu_count=2),
        changed(mig=True),
        changed(gpu_model="NVIDIA H200"),
        CPU,
    ],
)
def test_another_kind_of_gpu_is_another_machine(other):
    assert not is_same(H100, other)
    assert not is_same(other, H100)


def test_a_cpu_is_the_same_by_all_of_its_facts():
    assert is_same(CPU, CPU)
    assert not is_same(CPU, msgspec.structs.replace(CPU, logical_cores=4))


def test_commands_beside_another_gpu_are_of_another_machine():
    beside = msgspec.structs.replace(CPU, gpus="NVIDIA H200")

    assert not is_same(CPU, beside)
    assert not is_same(beside, msgspec.structs.replace(CPU, gpus="NVIDIA L4"))


def test_a_machine_without_gpus_is_written_as_ever():
    text = msgspec.json.encode(CPU).decode()

    assert text == '{"device":"cpu","cpu_model":"AMD EPYC","logical_cores":2}'

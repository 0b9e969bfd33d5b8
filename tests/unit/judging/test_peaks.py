import msgspec
import pytest

from ci_perf.judging import peaks
from tests.runs import CPU, GPU


def peak(name, precision="bf16", **more):
    return peaks.flop_per_s(msgspec.structs.replace(GPU, gpu_model=name, **more), precision)


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("NVIDIA H200", "bf16", 989.4),
        ("NVIDIA H100 PCIe", "fp16", 756.5),
        ("Tesla T4", "fp16", 65.0),
        ("NVIDIA H100 PCIe", "fp32", 51.0),
        ("Tesla V100-SXM2-16GB", "fp32", 15.7),
        ("NVIDIA A10", "fp32", 31.2),
        ("NVIDIA L40S", "fp32", 91.6),
        ("NVIDIA GeForce RTX 4090", "fp32", 82.6),
    ],
)
def test_a_known_gpu_has_the_dense_peak_of_its_data_sheet(name, precision, tera):
    assert peak(name, precision) == pytest.approx(tera * 1e12)


@pytest.mark.parametrize(
    "name", ["NVIDIA H100", "NVIDIA H100 NVL", "NVIDIA L40G", "NVIDIA H200 MIG 1g.18gb", ""]
)
def test_a_name_that_only_begins_like_a_known_one_has_no_peak(name):
    assert peak(name) is None


def test_a_part_of_a_gpu_has_no_peak():
    assert peak("NVIDIA H200", mig=True) is None


@pytest.mark.parametrize(
    ("name", "precision"), [("Tesla V100-SXM2-16GB", "bf16"), ("NVIDIA H200", "fp64")]
)
def test_a_precision_that_the_gpu_lacks_has_no_peak(name, precision):
    assert peak(name, precision) is None


def test_a_cpu_has_no_peak():
    assert peaks.flop_per_s(CPU, "fp32") is None


@pytest.mark.parametrize("name", peaks._BY_NAME)
def test_fewer_bits_are_never_slower(name):
    """Halves are at least as fast as tf32, tf32 as fp32: a sparse figure in a line would show."""
    found = [peak(name, precision) for precision in ("fp32", "tf32", "fp16")]

    known = [one for one in found if one is not None]
    assert known == sorted(known)
    assert known[-1] / known[0] < 20

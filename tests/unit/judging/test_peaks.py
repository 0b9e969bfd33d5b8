import msgspec
import pytest

from ci_perf.judging import peaks
from tests.runs import CPU, GPU


def peak(name, precision="bf16", **more):
    return peaks.flop_per_s(msgspec.structs.replace(GPU, gpu_model=name, **more), precision)


# TFLOP/s of the data sheets: fp32, tf32, fp16, bf16.
SHEETS = {
    "NVIDIA H200": (66.9, 494.7, 989.4, 989.4),
    "NVIDIA H100 PCIe": (51.0, 378.0, 756.5, 756.5),
    "NVIDIA A100-SXM4-80GB": (19.5, 156.0, 312.0, 312.0),
    "NVIDIA A30": (10.3, 82.0, 165.0, 165.0),
    "NVIDIA A10": (31.2, 62.5, 125.0, 125.0),
    "NVIDIA L4": (30.3, 60.0, 121.0, 121.0),
    "NVIDIA L40": (90.5, 90.5, 181.05, 181.05),
    "NVIDIA L40S": (91.6, 183.0, 362.05, 362.05),
    "Tesla V100-SXM2-16GB": (15.7, None, 125.0, None),
    "Tesla V100-PCIE-16GB": (14.0, None, 112.0, None),
    "Tesla T4": (8.1, None, 65.0, None),
    "NVIDIA GeForce RTX 4090": (82.6, 82.6, 165.2, 165.2),
    "NVIDIA GeForce RTX 3090": (35.6, 35.6, 71.0, 71.0),
    "NVIDIA RTX A6000": (38.7, 77.4, 154.8, 154.8),
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_known_gpu_has_the_dense_peaks_of_its_data_sheet(name):
    peaks_of_gpu = [peak(name, precision) for precision in ("fp32", "tf32", "fp16", "bf16")]

    assert peaks_of_gpu == [tera and pytest.approx(tera * 1e12) for tera in SHEETS[name]]


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

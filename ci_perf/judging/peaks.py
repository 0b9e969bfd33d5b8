"""How many FLOP/s a GPU promises at most, by the name that its driver gives and by precision.

Dense arithmetic only: NVIDIA's data sheets often print twice as much, "with sparsity", for Hopper
and Ada only that. ``fp32`` is that of the ordinary cores, ``tf32``, ``fp16`` and ``bf16`` that of
the tensor cores, accumulating in fp32, as torch does. What is not here has no peak: H100 NVL and
H200 NVL among others, for which NVIDIA's own documents disagree.
"""

from ci_perf.model.environment import GpuMachine, Machine

_Peaks = dict[str, float]


def _tera(fp32: float, tf32: float | None, fp16: float, bf16: float | None) -> _Peaks:
    by_precision = {"fp32": fp32, "tf32": tf32, "fp16": fp16, "bf16": bf16}
    return {name: value * 1e12 for name, value in by_precision.items() if value is not None}


# NVIDIA H100 Tensor Core GPU Architecture, table "H100 and A100 GPU Performance Specs", dense.
_H100_SXM = _tera(66.9, 494.7, 989.4, 989.4)
# NVIDIA H100 Tensor Core GPU data sheet: TF32 756, FP16 1,513 with sparsity.
_H100_PCIE = _tera(51.0, 378.0, 756.5, 756.5)
# NVIDIA A100 Tensor Core GPU data sheet: the same for every form and memory.
_A100 = _tera(19.5, 156.0, 312.0, 312.0)
# NVIDIA A30 Tensor Core GPU data sheet.
_A30 = _tera(10.3, 82.0, 165.0, 165.0)
# NVIDIA A10 Tensor Core GPU data sheet.
_A10 = _tera(31.2, 62.5, 125.0, 125.0)
# NVIDIA L4 Tensor Core GPU data sheet: TF32 120, FP16 242 with sparsity.
_L4 = _tera(30.3, 60.0, 121.0, 121.0)
# NVIDIA L40 data sheet.
_L40 = _tera(90.5, 90.5, 181.05, 181.05)
# NVIDIA L40S data sheet.
_L40S = _tera(91.6, 183.0, 362.05, 362.05)
# NVIDIA V100 Tensor Core GPU data sheet; tensor cores for fp16 only.
_V100_SXM = _tera(15.7, None, 125.0, None)
_V100_PCIE = _tera(14.0, None, 112.0, None)
# NVIDIA T4 Tensor Core GPU data sheet.
_T4 = _tera(8.1, None, 65.0, None)
# NVIDIA Ada GPU Architecture, appendix A: GeForce RTX 4090.
_RTX_4090 = _tera(82.6, 82.6, 165.2, 165.2)
# NVIDIA Ampere GA102 GPU Architecture, appendix A: GeForce RTX 3090.
_RTX_3090 = _tera(35.6, 35.6, 71.0, 71.0)
# NVIDIA Ampere GA102 GPU Architecture, appendix C: RTX A6000.
_RTX_A6000 = _tera(38.7, 77.4, 154.8, 154.8)

# Whole names only: "NVIDIA H100 PCIe" has three quarters of the peak of "NVIDIA H100 80GB HBM3".
_BY_NAME: dict[str, _Peaks] = {
    # The same chip at the same clocks as H100 SXM (NVIDIA H200 data sheet), with other memory.
    "NVIDIA H200": _H100_SXM,
    "NVIDIA H100 80GB HBM3": _H100_SXM,
    "NVIDIA H100 PCIe": _H100_PCIE,
    "NVIDIA A100-SXM4-40GB": _A100,
    "NVIDIA A100-SXM4-80GB": _A100,
    "NVIDIA A100-PCIE-40GB": _A100,
    "NVIDIA A100 80GB PCIe": _A100,
    "NVIDIA A30": _A30,
    "NVIDIA A10": _A10,
    "NVIDIA L4": _L4,
    "NVIDIA L40": _L40,
    "NVIDIA L40S": _L40S,
    "Tesla V100-SXM2-16GB": _V100_SXM,
    "Tesla V100-SXM2-32GB": _V100_SXM,
    "Tesla V100-PCIE-16GB": _V100_PCIE,
    "Tesla V100-PCIE-32GB": _V100_PCIE,
    "Tesla T4": _T4,
    "NVIDIA GeForce RTX 4090": _RTX_4090,
    "NVIDIA GeForce RTX 3090": _RTX_3090,
    "NVIDIA RTX A6000": _RTX_A6000,
}


def flop_per_s(machine: Machine, precision: str) -> float | None:
    """Return the peak of one GPU of `machine`; `None` where it is unknown, or on a part of one."""
    if not isinstance(machine, GpuMachine) or machine.mig:
        return None
    return _BY_NAME.get(machine.gpu_model, {}).get(precision)

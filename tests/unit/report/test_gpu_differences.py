"""The report says what the GPU does otherwise: a planted wait, a lost graph, a kernel in two."""

import msgspec
import pytest

from ci_perf.model.comparison import Verdict
from ci_perf.model.process import (
    Copies,
    DeviceWork,
    GeneratedCode,
    GeneratedKernel,
    KernelCount,
    Profile,
    SideProfile,
)
from ci_perf.report import markdown
from tests.comparisons import a_change, a_comparison, a_numerics


def a_kernel(name, count=1, grid=(1, 1, 1)):
    return KernelCount(name=name, grid=grid, block=(128, 1, 1), shared_bytes=0, count=count)


GEMM = a_kernel("void cutlass::Kernel2<cutlass_80_tensorop>(Params)", 12)
FUSED = a_kernel("triton_per_fused_softmax_0", 800)
BASE = DeviceWork(
    kernels=(FUSED, GEMM),
    launched=812,
    sequence="a",
    host_waits=1,
    graph_replays=1,
    copies={"HtoD": Copies(count=1, bytes=2**20)},
)


def changed(**more):
    return msgspec.structs.replace(BASE, **more)


def report(base, head, verdict=Verdict.REGRESSED, kind="device_work", row=None):
    sides = [SideProfile(step_time_s=1e-3, **{kind: work}) for work in (base, head)]
    profile = Profile(
        workload="w", items_per_step=1, item_unit="step", base=sides[0], head=sides[1]
    )
    comparison = a_comparison(row or a_change("w", verdict, ratio=1.1), profiles=(profile,))
    return markdown.render(comparison).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (BASE, ": the same 812 kernels in the same order"),
        (changed(sequence="b"), ": the same 812 kernels in another order"),
        (changed(host_waits=2), "- waits for the GPU: 1 → 2\n"),
        (changed(graph_replays=0), "- CUDA graphs replayed: 1 → 0\n"),
        (changed(copies={}), "- copies `HtoD`: 1 (1.00 MiB) → none\n"),
        (
            changed(kernels=(FUSED, GEMM, a_kernel("first_half"), a_kernel("other_half"))),
            "- `first_half`: 0 → 1\n- `other_half`: 0 → 1\n",
        ),
        (changed(kernels=(FUSED, msgspec.structs.replace(GEMM, count=13))), "`cutlass::Kernel2`: "),
        (
            changed(kernels=(FUSED, msgspec.structs.replace(GEMM, grid=(2, 1, 1)))),
            "- the same kernels with other grids, blocks or shared memory\n",
        ),
        (DeviceWork(absent="CUPTI is refused"), " is not known: `CUPTI is refused`"),
        (
            changed(kernels=tuple(a_kernel(f"k{number}") for number in range(9))),
            "- 6 more differences\n",
        ),
    ],
)
def test_what_the_gpu_does_otherwise_is_told_by_name_and_count(head, said):
    text = report(BASE, head)

    assert "**What the GPU does in a step of `w`**" in text
    assert said in text


def test_of_a_workload_that_has_not_moved_nothing_is_said():
    assert "What the GPU does" not in report(BASE, changed(host_waits=2), Verdict.UNCHANGED)


def generate(*kernels):
    return GeneratedCode(kernels=kernels)


ADD = GeneratedKernel(name="triton_poi_fused_add", digest="a", registers=32, spills=0)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (generate(ADD), ": the same 1 kernel\n"),
        (
            generate(msgspec.structs.replace(ADD, digest="b")),
            "- `triton_poi_fused_add`: other code\n",
        ),
        (
            generate(msgspec.structs.replace(ADD, registers=1040, spills=8)),
            "- `triton_poi_fused_add`: registers 32 → 1,040, spilled 0 → 8\n",
        ),
        (
            generate(ADD, GeneratedKernel(name="cpp_fused_mul", digest="a")),
            " differs:\n\n- `cpp_fused_mul`: 0 → 1\n\n",
        ),
        (GeneratedCode(absent="gone.py"), " is not known: `gone.py`"),
    ],
)
def test_generated_kernels_that_differ_are_told_by_name(head, said):
    text = report(generate(ADD), head, kind="generated")

    assert "**Code that torch.compile generates for `w`**" in text
    assert said in text


def test_generated_kernels_are_told_where_only_numerics_have_changed():
    row = a_numerics("w", Verdict.NUMERICS_CHANGED)

    assert "`triton_poi_fused_add`: 1 → 0" in report(
        generate(ADD), generate(), kind="generated", row=row
    )

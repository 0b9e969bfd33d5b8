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
        (generate(ADD), ": 1 kernel: 1 with the same code\n"),
        (
            generate(msgspec.structs.replace(ADD, digest="b")),
            ": 1 kernel: 1 other\n\n- `triton_poi_fused_add`: other code\n",
        ),
        (
            generate(msgspec.structs.replace(ADD, registers=1040, spills=8)),
            "- `triton_poi_fused_add`: registers 32 → 1,040, spilled 0 → 8\n",
        ),
        (
            generate(ADD, GeneratedKernel(name="cpp_fused_mul", digest="a")),
            ": 2 kernels: 2 with the same code\n\n",
        ),
        (
            generate(ADD, GeneratedKernel(name="cpp_fused_mul", digest="b")),
            ": 2 kernels: 1 with the same code, 1 other\n\n- `cpp_fused_mul`: only in the head\n\n",
        ),
        (
            generate(GeneratedKernel(name="cpp_fused_mul", digest="b")),
            "- `triton_poi_fused_add` → `cpp_fused_mul`: other code\n\n",
        ),
        (GeneratedCode(absent="gone.py"), " is not known: `gone.py`"),
    ],
)
def test_generated_kernels_that_differ_are_told_by_name(head, said):
    text = report(generate(ADD), head, kind="generated")

    assert "**Code that torch.compile generates for `w`**" in text
    assert said in text


def many(count, *, others=0):
    """Make kernels of which the last ones have a name and code of their own."""
    return generate(
        *(GeneratedKernel(name=f"same_{n}", digest=f"{n}") for n in range(count - others)),
        *(GeneratedKernel(name=f"edited_{n}", digest=f"x{n}") for n in range(others)),
    )


def fold_of(base, head):
    """Return what a report says of the code of a workload that has not moved."""
    page = report(base, head, Verdict.UNCHANGED, kind="generated")
    _, found, after = page.partition("<summary>Code that torch.compile generates: ")
    return after.partition("</details>")[0] if found else ""


def test_all_kernels_are_counted_also_of_a_workload_that_has_not_moved():
    text = fold_of(many(418), many(418, others=6))

    assert text.startswith("418 kernels: 412 with the same code, 6 other</summary>")
    named = ", ".join(f"`edited_{n}`" for n in range(5))
    assert f"- `w`: 418 kernels: 412 with the same code, 6 other ({named} and 1 more)\n" in text
    assert fold_of(many(2), many(2)).startswith("2 kernels: 2 with the same code</summary>")


def test_kernels_of_one_side_alone_are_counted():
    assert fold_of(None, many(2)).startswith("2 kernels: 2 other</summary>")
    assert fold_of(many(2), None).startswith("0 kernels: 2 only in the base</summary>")
    assert fold_of(many(2), many(1)).startswith("1 kernel: 1 with the same code, 1 only in the")


def test_where_nothing_was_compiled_or_recorded_nothing_is_said():
    assert fold_of(None, None) == ""
    assert fold_of(generate(), generate()) == ""


def test_a_side_that_is_not_known_is_not_called_other():
    text = fold_of(many(2), GeneratedCode(absent="out of time"))

    assert text.startswith("not known</summary>")
    assert "- `w` is not known: `out of time`\n" in text


def test_generated_kernels_are_told_where_only_numerics_have_changed():
    row = a_numerics("w", Verdict.NUMERICS_CHANGED)

    assert "`triton_poi_fused_add`: only in the base" in report(
        generate(ADD), generate(), kind="generated", row=row
    )

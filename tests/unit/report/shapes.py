"""One comparison per shape of report: what the golden files show."""

import inspect
import sys

import msgspec

from ci_perf.judging import gate_changes
from ci_perf.model import metrics
from ci_perf.model.comparison import Difference, Drifted, Family, Interval, Verdict
from ci_perf.model.explanation import Explanation
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.process import DeviceMemory, Exhausted, Phase, Profile, SideProfile
from ci_perf.model.run import Source
from ci_perf.model.validity import Status, validity_of
from tests.comparisons import (
    a_change,
    a_comparison,
    a_head,
    a_numerics,
    a_remedy,
    a_side,
    an_interleaved,
    an_uncompared,
)
from tests.plans import a_plan, a_planned
from tests.runs import CPU, GPU, HEAD_COMMIT
from tests.step_profiles import a_cause, a_function
from tests.unit.report import shapes_in_turns, shapes_of_profiles
from tests.unit.report.parts import (
    GIB,
    OWN,
    UNCHANGED,
    a_cleared,
    a_doubt,
    a_loss,
    an_undecided,
    elsewhere,
)

TRACEBACK = """\
Traceback (most recent call last):
  File "workloads/conv.py", line 12, in step
    loss.backward()
RuntimeError: CUDA error: an illegal memory access was encountered
"""
HOSTILE = "`x` | @octocat #1 <img src=x> https://evil.example \u202e\u200b[a](b)"
COLOR = Family(name="test_color.test_rgb_to_xyz", cases=27)
MATMUL = Family(name="matmul", cases=5)
TORCH = Difference(field="torch", base="2.12.0", head="2.13.0")


def families():
    """A test at 27 sizes, all slower; a workload of which two sizes are slower, and one is faster.

    Of a third one, a case of four is not decided.
    """
    sizes = [
        a_loss(f"test_color.test_rgb_to_xyz.{size}-float32", 2.2 + 3.58 * size / 26, family=COLOR)
        for size in range(27)
    ]
    matmul = (
        a_loss("matmul.size=256", 1.2, family=MATMUL),
        a_loss("matmul.size=512", 1.3, family=MATMUL),
        a_change("matmul.size=1024", Verdict.IMPROVED, ratio=0.8, family=MATMUL),
    )
    open_case = an_undecided("conv.size=1", family=Family(name="conv", cases=4))
    return a_comparison(*sizes, *matmul, open_case, *UNCHANGED)


def out_of_memory():
    return a_comparison(
        an_uncompared(
            "gpt",
            Verdict.FAILED,
            "OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.",
            phase=Phase.FIRST_STEP,
            exhausted=Exhausted(
                kind="device",
                host_rss_peak_bytes=3 * GIB,
                device=DeviceMemory(
                    peak_allocated_bytes=138 * GIB,
                    peak_reserved_bytes=139 * GIB,
                    peak_active_bytes=138 * GIB,
                    alloc_retries=1,
                    out_of_memory=1,
                ),
                allocator="| Allocated memory |",
            ),
        ),
        *UNCHANGED,
    )


def regressed():
    return a_comparison(
        an_uncompared(
            "conv",
            Verdict.FAILED,
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            output=TRACEBACK,
            parameters={"batch": 32},
            phase=Phase.TIMED,
        ),
        a_loss("resnet18", 1.061, drift=1.058),
        a_loss("resnet18", 1.19, metric=metrics.PEAK_ALLOCATED, base=3.1 * GIB),
        a_loss("bert", metric=metrics.GRAPH_BREAKS, base=0, head=2, limit=0.0),
        a_loss("bert", 1.9, metric=metrics.FIRST_STEP, base=3.1, limit=0.65, gate=False),
        an_uncompared("vit", Verdict.FAILED, base=OWN, code="missing"),
        an_undecided("loader", base=9.8e-3, pairs=18, remedy=a_remedy()),
        an_uncompared("llama", Verdict.NEW, head=OWN, parameters={"layers": 2}),
        a_change("attention", Verdict.IMPROVED, ratio=0.874, item_unit="token"),
        *UNCHANGED,
        an_undecided(
            "mlp_256",
            metric=metrics.FIRST_STEP,
            ratio=1.1,
            smallest_detectable=0.024,
            gate=False,
        ),
        verdict=Verdict.FAILED,
        differences=(TORCH,),
        head=a_head(source=Source(commit=HEAD_COMMIT, branch="faster-loader", dirty=True)),
        interleaved=an_interleaved(pairs=45),
    )


def unchanged():
    return a_comparison(*UNCHANGED)


def improved():
    return a_comparison(
        a_change("attention", Verdict.IMPROVED, ratio=0.874, item_unit="token"),
        *UNCHANGED,
    )


def failed():
    return a_comparison(
        an_uncompared("conv", Verdict.FAILED, "ended by signal 11 (SIGSEGV)", phase=Phase.BUILD),
        *UNCHANGED,
    )


def missing():
    return a_comparison(an_uncompared("vit", Verdict.FAILED, base=OWN, code="missing"), *UNCHANGED)


def other_machine():
    note = (
        "another machine: device: cuda → cpu, gpu_model: NVIDIA H200 → none, "
        "cpu_model: none → AMD EPYC"
    )
    return a_comparison(
        *(elsewhere(name, note) for name in ("bert", "resnet18")),
        head=a_head(machine=CPU),
        base=a_side(machine=GPU),
    )


def all_new():
    numbers = OWN | {"peak_allocated_bytes": 6 * GIB, "flops": 178.8e9}
    step = SideProfile(step_time_s=12.3e-3)
    return a_comparison(
        an_uncompared("bert", Verdict.NEW, head=numbers),
        an_uncompared("resnet18", Verdict.NEW, head=OWN | {"host_rss_peak_bytes": 2 * GIB}),
        profiles=tuple(
            Profile(workload=name, items_per_step=32, item_unit="image", head=step)
            for name in ("bert", "resnet18")
        ),
        base=a_side(machine=None, sessions=0, oldest="", newest=""),
    )


def nothing():
    return a_comparison()


def inconclusive():
    """By its history alone."""
    return a_comparison(an_undecided("loader"), *UNCHANGED)


def invalid():
    return a_comparison(
        *(
            a_change(name, Verdict.INCONCLUSIVE, ratio=1.061, code="untrusted")
            for name in ("bert", "resnet18")
        ),
        validity=validity_of(
            (
                *a_doubt(Status.INVALID, "canary-drift", "matmul 1.08 x of before").reasons,
                *a_doubt(Status.INVALID, "neighbour", "2 other processes on the GPU").reasons,
            )
        ),
    )


def image_changed():
    """Another image, and with it other software; the driver is the host's own."""
    return a_comparison(
        a_loss("resnet18", 1.051),
        *UNCHANGED,
        differences=(
            Difference(field="cuda", base="12.6", head="13.0"),
            Difference(field="driver", base="570.86", head="580.65"),
            Difference(
                field="image",
                base="pytorch@sha256:417bd75df636",
                head="pytorch@sha256:6acf597eeb8e",
            ),
            TORCH,
        ),
    )


def degraded():
    return a_comparison(
        *UNCHANGED,
        validity=a_doubt(
            Status.DEGRADED,
            "clock-unconfirmed",
            "the SM clock could not be read: driver without permission",
        ),
        differences=(TORCH, Difference(field="driver", base="570.86", head="575.51")),
    )


def hostile():
    source = Source(commit=HOSTILE, branch=HOSTILE, dirty=False)
    cause = a_cause(
        "other_shape",
        HOSTILE,
        ("other_shape", HOSTILE, 1, 1),
        place=a_function(HOSTILE, 1, HOSTILE),
        arguments_base=HOSTILE,
        arguments_head=HOSTILE,
    )
    return a_comparison(
        an_uncompared(HOSTILE, Verdict.FAILED, HOSTILE, output=f"```\n{HOSTILE}\n</details>"),
        a_loss(
            HOSTILE,
            1.061,
            item_unit=HOSTILE,
            explanation=Explanation(causes=(cause,), others=(a_cause("calls", HOSTILE),)),
        ),
        a_change("mlp", ratio=1.01),
        a_change(HOSTILE, Verdict.LIKELY_SLOWER, ratio=1.05, note=HOSTILE),
        an_undecided(HOSTILE, code="base_failed", note=HOSTILE),
        a_cleared(HOSTILE, 1.04, note=HOSTILE, explanation=Explanation(trouble=HOSTILE)),
        a_numerics(HOSTILE, note=HOSTILE),
        drifted=(Drifted(workload=HOSTILE, metric=HOSTILE, ratio=1.1, sessions=6, since=HOSTILE),),
        interleaved=an_interleaved(
            pairs=9, ref=HOSTILE, source=source, notes=(HOSTILE, "::error::" + HOSTILE)
        ),
        suite=HOSTILE,
        differences=tuple(
            Difference(field=name, base=HOSTILE, head=HOSTILE)
            for name in ("image", "torch", HOSTILE)
        ),
        validity=a_doubt(Status.DEGRADED, HOSTILE, HOSTILE),
        head=a_head(
            label=HOSTILE,
            run=HOSTILE,
            source=source,
            machine=type(CPU)(cpu_model=HOSTILE, logical_cores=2),
        ),
    )


SAME = tuple(
    a_numerics(f"mlp_{width}", Verdict.UNCHANGED, head=(2.302585, 2.295412), difference=0.0)
    for width in (256, 512)
)


def numerics_changed():
    """Three times as fast, and wrong: the first word is on the wrong part."""
    return a_comparison(
        a_numerics("attention"),
        a_change("attention", Verdict.IMPROVED, ratio=0.34, item_unit="token"),
        *UNCHANGED,
        *SAME,
    )


def numerics_gated():
    return a_comparison(
        a_numerics("attention", gate=True),
        a_numerics("bert", gate=True, head=(), difference=None),
        a_loss("attention", 1.34, item_unit="token"),
        *UNCHANGED,
    )


def numerics_vary():
    vary = a_numerics("dropout", code="numerics_vary", difference=0.004)
    return a_comparison(vary, *UNCHANGED, *SAME)


def machine_moved():
    detail = (
        "against the 5 sessions since 2026-11-20: copy +4.1 % (limit +3.0 %), "
        "matmul +8.4 % (limit +5.2 %)"
    )
    return a_comparison(
        *(
            a_change(name, Verdict.INCONCLUSIVE, ratio=1.08, code="machine_moved")
            for name in ("bert", "resnet18")
        ),
        a_change("resnet18", metric=metrics.PEAK_ALLOCATED, base=3.1 * GIB, ratio=1.0),
        validity=a_doubt(Status.DEGRADED, "machine_moved", detail),
    )


def machine_moved_and_paired():
    return msgspec.structs.replace(
        machine_moved(),
        rows=(
            a_cleared("bert", 1.08),
            a_loss("resnet18", 1.051, drift=1.14),
            *machine_moved().rows[2:],
        ),
        verdict=Verdict.REGRESSED,
        exit_code=1,
        interleaved=an_interleaved(suspects=2, pairs=18),
    )


def partly_invalid():
    held_down = ("clocks_held_down", "for 3.1 of 5.0 s by heat", "bert")
    return a_comparison(
        a_loss("resnet18", 1.12),
        a_change("bert", Verdict.INCONCLUSIVE, ratio=1.061, code="untrusted"),
        *UNCHANGED,
        validity=a_doubt(Status.INVALID, *held_down),
    )


def scaling():
    """Where higher is better, and where the limit is points of a share."""
    return a_comparison(
        a_loss(
            "finetune.world_size=2",
            0.95 / 0.85,
            metric=metrics.SCALING_EFFICIENCY,
            base=0.95,
            head=0.85,
            interval=Interval(low=1.09, high=1.15),
        ),
        a_loss("loader", metric=metrics.DATA_WAIT, base=0.02, head=0.31, limit=2.5, gate=False),
        a_change("loader", metric=metrics.ENERGY, base=0.25, ratio=1.02, limit=0.1, gate=False),
        *UNCHANGED,
    )


def own_gate():
    """A pull request that passes, and does all that it can to the gate."""
    rows = (
        a_change("gpt", Verdict.IMPROVED, ratio=0.01),
        a_change("gpt", Verdict.IMPROVED, metric=metrics.OPERATORS, base=1200.0, ratio=0.01),
        *UNCHANGED,
    )
    base = a_plan("mlp", "loader", "bert", "gpt", limit=0.05)
    head = a_plan(
        a_planned("gpt", parameters={"size": 8}),
        a_planned("loader-2", file="loader.py"),
        "mlp",
        limit=0.9,
        fail_on="never",
        python_path=("b", HOSTILE),
    )
    edits = (
        BaselineEdit(path="baselines/nvidia-h200/standard/bert.json", before={"x": 1.0}, after={}),
        BaselineEdit(
            path="baselines/nvidia-h200/standard/mlp.json",
            before={"step_time_s": 0.1},
            after={"step_time_s": 0.206},
            accepted=("step_time_s",),
            reason=HOSTILE,
        ),
    )
    found = gate_changes.find(base, head, rows=rows, edits=edits, own_files=["gpt"])
    return a_comparison(*rows, gate_changes=found)


# What any renderer must show: foreign text, rows of all kinds, first numbers.
THREE = (hostile, regressed, all_new)
# Each function of these files that has no parameter is a shape.
ALL = tuple(
    shape
    for module in (sys.modules[__name__], shapes_in_turns, shapes_of_profiles)
    for _, shape in inspect.getmembers(module, inspect.isfunction)
    if shape.__module__ == module.__name__ and not inspect.signature(shape).parameters
)

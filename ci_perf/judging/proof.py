"""The steps of a proof: where each can be tried, how long it takes, and what its figures must be.

A step holds where every bounded figure lies within its bounds. A file is judged again when it is
read: what it says of an outcome is not believed. The words are in report/proof.py.
"""

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from ci_perf.judging import policy
from ci_perf.model import metrics
from ci_perf.model.proof import MOST_DETAIL, Probed, Proof, ProofStep, Why

DeviceKind = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The least and the most that a figure may be, in its own unit.

    A step lacks its verdict without the figure, unless it counts only `if_known`.
    """

    figure: str
    least: float = -math.inf
    most: float = math.inf
    if_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the proof. ``seconds`` is about how long it takes, the import of torch included.

    ``runs_sessions`` is whether it launches workloads like a check, and so takes more time where
    there is more. Beyond ``noise``, what launches differ by would hide what the step looks for.
    """

    name: str
    seconds: float
    bounds: tuple[Bound, ...]
    devices: tuple[DeviceKind, ...] = ("cpu", "cuda")
    runs_sessions: bool = False
    noise: Bound | None = None


# Kernels of milliseconds, timed alike twice, differ by less; a wrong unit or a lost wait by more.
_NEAR = 0.05
# What a suite allows a canary that does not say otherwise.
_CANARY = policy.default_limits()[metrics.CANARY].relative

# The most important first: the others are left out where time is short.
STEPS = (
    Step(
        name="clock_resolution",
        seconds=12,
        devices=("cpu",),
        bounds=(
            Bound(figure="busy_cpu_over_wall", least=1 - _NEAR, most=1 + _NEAR),
            Bound(figure="idle_cpu_over_wall", least=0.0, most=_NEAR),
        ),
    ),
    Step(
        name="events",
        seconds=10,
        devices=("cuda",),
        bounds=(Bound(figure="device_over_wall", least=0.97, most=1.01),),
    ),
    Step(
        name="harness",
        seconds=15,
        bounds=(Bound(figure="timed_over_bare", least=0.99, most=1.01),),
    ),
    Step(
        name="known_kernel",
        seconds=9,
        devices=("cuda",),
        bounds=(
            # NVML tells the clock of a moment, in steps of 15 MHz of some 2000.
            Bound(figure="kernel_over_clock", least=0.9, most=1.1),
            Bound(figure="doubled", least=1.98, most=2.02),
        ),
    ),
    Step(
        name="one_wait",
        seconds=8,
        devices=("cuda",),
        bounds=(
            Bound(figure="waits", least=2, most=2),
            Bound(figure="waits_within", least=0, most=0),
        ),
    ),
    Step(
        name="issue",
        seconds=11,
        devices=("cuda",),
        bounds=(
            # Queuing takes tens of microseconds, the product milliseconds.
            Bound(figure="device_bound", least=0.0, most=0.1),
            # Of a block, the first step is issued and all are timed: they differ a little.
            Bound(figure="launch_bound", least=0.7, most=1.3),
            Bound(figure="with_item", least=0.7, most=1.3),
        ),
    ),
    Step(
        name="nvml",
        seconds=10,
        devices=("cuda",),
        bounds=(
            Bound(figure="uuid_agrees", least=1, most=1),
            Bound(figure="name_agrees", least=1, most=1),
            Bound(figure="mig_agrees", least=1, most=1),
            # torch leaves out what the driver keeps for itself.
            Bound(figure="memory_over_torch", least=0.98, most=1.02, if_known=True),
            # Power may leap over its limit until the board reacts.
            Bound(figure="power_over_limit", least=0.01, most=1.2, if_known=True),
            # Both are averages, over times that do not begin and end together.
            Bound(figure="energy_over_power", least=0.8, most=1.2, if_known=True),
            Bound(figure="clock_over_max", least=0.05, most=1.01, if_known=True),
        ),
    ),
    Step(
        name="allocator",
        seconds=11,
        devices=("cuda",),
        bounds=(
            Bound(figure="allocated", least=1, most=1),
            Bound(figure="active", least=1, most=1),
            # Large blocks are reserved in whole segments, whose size is a setting.
            Bound(figure="reserved", least=1, most=1.5),
            Bound(figure="retries", least=0, most=0),
            Bound(figure="out_of_memory", least=0, most=0),
            Bound(figure="async_zeros", least=0, most=0, if_known=True),
        ),
    ),
    Step(
        name="other_stream",
        seconds=7,
        devices=("cuda",),
        bounds=(
            Bound(figure="clock", least=1 - _NEAR, most=1 + 2 * _NEAR),
            Bound(figure="events_alone", least=0, most=0.2),
            Bound(figure="events_joined", least=1 - _NEAR, most=1 + _NEAR),
        ),
    ),
    Step(
        name="numerics",
        seconds=14,
        bounds=(Bound(figure="losses_differ", least=0, most=0),),
    ),
    Step(
        name="profiler",
        seconds=12,
        bounds=(
            Bound(figure="operators", least=1),
            Bound(figure="linked", least=0.99, most=1, if_known=True),
            # What remains is rounding: the parts are those of the span.
            Bound(figure="busy_and_idle_over_span", least=0.999, most=1.001, if_known=True),
        ),
    ),
    Step(
        name="throughput",
        seconds=11,
        bounds=(
            Bound(figure="autocast_is_bf16", least=1, most=1),
            # A GPU may boost a little above the clock of its data sheet.
            *(
                Bound(figure=f"{name}_of_peak", least=1e-3, most=1.02, if_known=True)
                for name in ("fp32", "tf32", "fp16", "bf16")
            ),
        ),
    ),
    Step(
        name="foreign_process",
        seconds=11,
        devices=("cuda",),
        # Its context takes memory, too.
        bounds=(Bound(figure="memory_over_known", least=1 - _NEAR),),
    ),
    Step(
        name="out_of_memory",
        seconds=9,
        devices=("cuda",),
        bounds=(
            Bound(figure="raised", least=1, most=1),
            Bound(figure="counted", least=1),
            Bound(figure="left", least=0, most=0),
            Bound(figure="free_over_before", least=0.99),
            Bound(figure="after_over_before", least=1 - _NEAR, most=1 + _NEAR),
        ),
    ),
    Step(
        name="canary_power",
        seconds=28,
        devices=("cuda",),
        bounds=tuple(
            Bound(figure=f"{name}_after_load", least=1 / (1 + _CANARY), most=1 + _CANARY)
            for name in ("launch_latency", "matmul_random", "memory_copy")
        ),
    ),
    Step(
        name="two_processes",
        seconds=15,
        devices=("cuda",),
        bounds=(
            Bound(figure="beside_stopped", least=0.98, most=1.02),
            # Two that share a GPU in turns take twice as long.
            Bound(figure="beside_running", least=1.3),
        ),
    ),
    Step(
        name="cuda_graphs",
        seconds=10,
        devices=("cuda",),
        bounds=(
            Bound(figure="differs", least=0, most=0),
            # One launch instead of hundreds.
            Bound(figure="issue_over_eager", least=0, most=0.5),
        ),
    ),
    Step(
        name="memory_snapshot",
        seconds=6,
        devices=("cuda",),
        bounds=(Bound(figure="known_allocations", least=1, most=1),),
    ),
    Step(
        name="compile_caches",
        seconds=28,
        bounds=(
            Bound(figure="warm_over_cold", least=0, most=0.9),
            Bound(figure="steady_over_warm", least=0, most=0.5),
        ),
    ),
    Step(
        name="monitor",
        seconds=30,
        runs_sessions=True,
        # What goes beyond 1 % and beyond what launches without the monitor differ by.
        bounds=(Bound(figure="excess", least=0, most=0.0),),
        # Twice the claim: where chance does more, a monitor that costs as much could hide.
        noise=Bound(figure="by_chance", most=0.02),
    ),
    Step(
        name="planted",
        seconds=45,
        runs_sessions=True,
        bounds=(
            Bound(figure="false_alarms", least=0, most=0),
            Bound(figure="found_5", least=1, most=1),
        ),
    ),
    Step(
        name="launch_noise",
        seconds=90,
        runs_sessions=True,
        # The limit of a time on a CPU: beyond, pairs leave even large changes undecided.
        bounds=(Bound(figure="median_detectable", least=0, most=0.05),),
    ),
    Step(
        name="launch_seconds",
        seconds=20,
        runs_sessions=True,
        # A suite of ten workloads and five launches would take half an hour.
        bounds=(Bound(figure="product_launch_s", least=0, most=30.0),),
    ),
    Step(
        name="resident_pair",
        seconds=20,
        devices=("cpu",),
        runs_sessions=True,
        # Twice: so far apart are the spreads of eight pairs and eight others by chance alone.
        bounds=(Bound(figure="resident_over_launch", least=0, most=2.0),),
    ),
)
_BY_NAME = {step.name: step for step in STEPS}


def of_name(name: str) -> Step:
    """Return a step. Raises KeyError."""
    return _BY_NAME[name]


def judged(step: Step, probed: Probed, seconds: float) -> ProofStep:
    """Hold the figures of a step against its bounds; one that broke does not hold."""
    if probed.broken:
        return ProofStep(
            step=step.name, outcome="did_not_hold", detail=probed.broken, seconds=seconds
        )
    against = (probed.why, probed.not_tried) if probed.not_tried else _against(step, probed)
    if against is not None:
        untried = not_tried(step, *against, seconds)
        return msgspec.structs.replace(untried, figures=probed.figures)
    values = _values(probed)
    known = [bound for bound in step.bounds if bound.figure in values]
    holds = all(bound.least <= values[bound.figure] <= bound.most for bound in known)
    return ProofStep(
        step=step.name,
        outcome="held" if holds else "did_not_hold",
        figures=probed.figures,
        detail=probed.detail,
        seconds=seconds,
    )


def not_tried(step: Step, why: Why, reason: str, seconds: float = 0.0) -> ProofStep:
    """Say why a step could not be tried."""
    detail = reason[:MOST_DETAIL]
    return ProofStep(step=step.name, outcome="not_tried", why=why, detail=detail, seconds=seconds)


def against_device(step: Step, kind: str) -> str:
    """Say why a step cannot be tried on "cpu" or "cuda"; nothing where it can."""
    if kind in step.devices:
        return ""
    return "it needs a GPU" if kind == "cpu" else "it is about CPUs only"


def untested(step: ProofStep) -> list[str]:
    """Name the bounded figures that a step which was tried does not have."""
    if step.outcome == "not_tried" or not step.figures:
        return []
    known = {figure.name for figure in step.figures}
    bounds = _BY_NAME[step.step].bounds if step.step in _BY_NAME else ()
    return [bound.figure for bound in bounds if bound.figure not in known]


def rejudged(proof: Proof) -> Proof:
    """Judge every step of a file by its own figures, and say where the file says otherwise."""
    return msgspec.structs.replace(
        proof, steps=tuple(_again(written, proof.kind) for written in proof.steps)
    )


def _again(written: ProofStep, kind: str) -> ProofStep:
    step = _BY_NAME.get(written.step)
    if step is None:
        return msgspec.structs.replace(
            written,
            outcome="not_tried",
            why="unknown",
            detail="this version of ci-perf does not know the step, and cannot judge its figures",
        )
    if written.outcome != "held" and not written.figures:
        return written
    probed = Probed(
        figures=written.figures,
        detail=written.detail,
        not_tried=against_device(step, kind),
        why="device",
    )
    again = judged(step, probed, written.seconds)
    if again.outcome == written.outcome:
        return msgspec.structs.replace(again, detail=written.detail)
    said = written.outcome.replace("_", " ")
    detail = f"the file says: {said}; its figures do not. {again.detail}".strip()
    return msgspec.structs.replace(again, detail=detail[:MOST_DETAIL])


def is_proven(proof: Proof) -> bool:
    """Whether something held, and everything that could be tried."""
    outcomes = {step.outcome for step in proof.steps}
    return "held" in outcomes and "did_not_hold" not in outcomes


def _against(step: Step, probed: Probed) -> tuple[Why, str] | None:
    """Say why the figures of a step allow no verdict."""
    values = _values(probed)
    missing = [b.figure for b in step.bounds if b.figure not in values and not b.if_known]
    if missing:
        return "missing", f"there is no figure {', '.join(missing)}"
    noise = step.noise
    if noise is None or values.get(noise.figure, 0.0) <= noise.most:
        return None
    return "noise", (
        f"launches of the same code differ by {100 * values[noise.figure]:.1f} % by chance, which "
        "would hide what is looked for; prove again on a quiet machine, or with more --minutes"
    )


def _values(probed: Probed) -> dict[str, float]:
    return {figure.name: figure.value for figure in probed.figures}

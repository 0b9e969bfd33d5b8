"""The steps of a proof: where each can be tried, how long it takes, and what its figures must be.

A step holds where every bounded figure lies within its bounds. The words are in report/proof.py.
"""

import math
from dataclasses import dataclass
from typing import Literal

import msgspec

from ci_perf.judging import policy
from ci_perf.model import metrics
from ci_perf.model.proof import Probed, Proof, ProofStep

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
    there is more.
    """

    name: str
    seconds: float
    bounds: tuple[Bound, ...]
    devices: tuple[DeviceKind, ...] = ("cpu", "cuda")
    runs_sessions: bool = False


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
        # The margin of the widest preset: beyond, pairs leave even large changes undecided.
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
    if probed.not_tried:
        untried = not_tried(step, probed.not_tried, seconds)
        return msgspec.structs.replace(untried, figures=probed.figures)
    values = {figure.name: figure.value for figure in probed.figures}
    bounds = [bound for bound in step.bounds if bound.figure in values or not bound.if_known]
    missing = [bound.figure for bound in bounds if bound.figure not in values]
    if missing:
        return not_tried(step, f"there is no figure {', '.join(missing)}", seconds)
    holds = all(bound.least <= values[bound.figure] <= bound.most for bound in bounds)
    return ProofStep(
        step=step.name,
        outcome="held" if holds else "did_not_hold",
        figures=probed.figures,
        detail=probed.detail,
        seconds=seconds,
    )


def is_proven(proof: Proof) -> bool:
    """Whether something held, and everything that could be tried."""
    outcomes = {step.outcome for step in proof.steps}
    return "held" in outcomes and "did_not_hold" not in outcomes


def not_tried(step: Step, reason: str, seconds: float = 0.0) -> ProofStep:
    """Say why a step has no figures."""
    return ProofStep(step=step.name, outcome="not_tried", detail=reason, seconds=seconds)

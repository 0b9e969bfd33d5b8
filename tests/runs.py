"""Builders of runs that name only what a test is about."""

import msgspec

from ci_perf.model import run as runs
from ci_perf.model.environment import CpuMachine, Environment, GpuMachine, Noted, Software
from ci_perf.model.suite import Protocol

MIB = 2**20
CPU = CpuMachine(cpu_model="AMD EPYC", logical_cores=2)
GPU = GpuMachine(gpu_model="NVIDIA H200", gpu_count=1, gpu_memory_bytes=141 * 2**30, mig=False)
SOFT = Software(
    python="3.11.7",
    torch="2.13.0",
    transformers="5.23.0",
    cuda=None,
    cudnn=None,
    driver=None,
    image=None,
    cpu_model="AMD EPYC",
    threads=1,
    kernel="6.1.0",
)
NOTED = Noted(host_hash="0" * 12, memory_total_bytes=24 * 2**30, load_average=0.1, allocator="")
VALID = runs.Validity(status=runs.Status.VALID)
# Step times of three quiet processes, and of the same code at half its speed.
STEADY = (1e-3, 1.001e-3, 0.999e-3)
SLOW = tuple(2 * s for s in STEADY)
BASE_COMMIT, HEAD_COMMIT = "a1b2c3d4" * 5, "d4e5f6a7" * 5


def an_environment(*, hard=CPU, **soft):
    return Environment(hard=hard, soft=msgspec.structs.replace(SOFT, **soft), noted=NOTED)


def a_process(
    index=0,
    *,
    step_s=1e-3,
    rss=300 * MIB,
    device=None,
    first_step_s=0.1,
    graphs=0,
    breaks=0,
    statistic="median",
):
    """One launch whose blocks all took `step_s` per step; a list gives the blocks themselves."""
    blocks = tuple(step_s) if isinstance(step_s, list | tuple) else (step_s,) * 5
    return runs.Process(
        index=index,
        phases=runs.PhaseTimes(
            import_s=2.0,
            build_s=0.1,
            first_step_s=first_step_s,
            warmup_s=0.3,
            timed_s=1.0,
            memory_s=0.1,
        ),
        warmup=runs.Warmup(steps=10, stopped="stable"),
        timed=runs.Timed(steps_per_block=50, stopped="quiet", statistic=statistic, block_s=blocks),
        memory=runs.Memory(host_rss_peak_bytes=rss, device=device),
        compiles=runs.CompileCounts(graphs=graphs, graph_breaks=breaks, recompiles=0),
        losses=(),
    )


def a_measured(workload, *step_s, parameters=None, **process):
    """A workload with one process per step time."""
    return runs.Measured(
        workload=workload,
        description=f"About {workload}.",
        parameters=parameters or {},
        protocol=Protocol(processes=len(step_s)),
        items_per_step=8.0,
        item_unit="image",
        processes=tuple(a_process(i, step_s=s, **process) for i, s in enumerate(step_s)),
    )


def a_failed(workload, reason="RuntimeError: boom", *, phase=runs.Phase.TIMED, output=""):
    return runs.Failed(
        workload=workload,
        description="",
        parameters={},
        phase=phase,
        reason=reason,
        output=output,
    )


def a_run(*workloads, commit=HEAD_COMMIT, environment=None, validity=VALID, selection=(), **more):
    return runs.Run(
        tool=runs.Tool(version="0.1.0"),
        id=more.pop("id", "0123456789ab"),
        started_at="2026-11-21T10:00:00Z",
        duration_s=60.0,
        source=runs.Source(commit=commit, branch="main", dirty=False),
        suite=more.pop("suite", "smoke"),
        selection=selection,
        environment=environment or an_environment(),
        validity=validity,
        measured=tuple(w for w in workloads if isinstance(w, runs.Measured)),
        failed=tuple(w for w in workloads if isinstance(w, runs.Failed)),
        **more,
    )

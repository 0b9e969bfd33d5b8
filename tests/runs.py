"""Builders of runs that name only what a test is about."""

import msgspec

from ci_perf.model import process as processes
from ci_perf.model import run as runs
from ci_perf.model.container import Image
from ci_perf.model.environment import CpuMachine, Environment, GpuMachine, Noted, Software
from ci_perf.model.suite import Protocol
from ci_perf.model.validity import (
    Canary,
    Evidence,
    GpuEvidence,
    HostEvidence,
    Reason,
    Span,
    Status,
    Validity,
)

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
VALID = Validity(status=Status.VALID)
# Step times of three quiet processes, and of the same code at half its speed.
STEADY = (1e-3, 1.001e-3, 0.999e-3)
SLOW = tuple(2 * s for s in STEADY)
BASE_COMMIT, HEAD_COMMIT = "a1b2c3d4" * 5, "d4e5f6a7" * 5


def an_environment(*, hard=CPU, node=NOTED.host_hash, **soft):
    """Describe a machine; an empty `node` is that of a file of an earlier version."""
    noted = msgspec.structs.replace(NOTED, host_hash=node)
    return Environment(hard=hard, soft=msgspec.structs.replace(SOFT, **soft), noted=noted)


def an_image(**more):
    """Name the image of a container, which a registry has, unless told."""
    plain = Image(
        reference=f"ghcr.io/us/perf:2.13@sha256:{'fedcba9876543210' * 4}",
        digest=f"sha256:{'fedcba9876543210' * 4}",
        config=f"sha256:{'0123456789abcdef' * 4}",
        is_pinned=True,
        engine="docker",
        engine_version="28.0",
    )
    return msgspec.structs.replace(plain, **more)


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
    cache="empty",
    operators=None,
    flops=None,
    losses=(),
    checksums=(),
    varies="",
    **more,
):
    """One launch whose blocks all took `step_s` per step; a list gives the blocks themselves."""
    blocks = tuple(step_s) if isinstance(step_s, list | tuple) else (step_s,) * 5
    return processes.Process(
        index=index,
        phases=processes.PhaseTimes(
            import_s=2.0,
            build_s=0.1,
            first_step_s=first_step_s,
            fingerprint_s=0.1,
            warmup_s=0.3,
            timed_s=1.0,
            memory_s=0.1,
            counters_s=0.1,
        ),
        warmup=processes.Warmup(steps=10, stopped="stable"),
        timed=a_timed(*blocks, statistic=statistic, **more.pop("timed", {})),
        memory=more.pop("memory", processes.Memory(host_rss_peak_bytes=rss, device=device)),
        compiles=processes.CompileCounts(
            graphs=graphs, graph_breaks=breaks, recompiles=0, cache=cache
        ),
        work=processes.Work(
            operators=operators, flops=flops, parameters=None, absent="not counted"
        ),
        fingerprint=processes.Fingerprint(
            losses=tuple(losses), checksums=tuple(checksums), varies=varies
        ),
        **more,
    )


def a_timed(
    *block_s,
    statistic="median",
    device_s=None,
    issue_s=None,
    cpu_s=None,
    tasks=None,
    steps_per_block=50,
):
    """A timed region, by the step times of its blocks."""
    return processes.Timed(
        steps_per_block=steps_per_block,
        stopped="enough",
        statistic=statistic,
        block_s=block_s,
        device_s=device_s,
        issue_s=issue_s,
        cpu_s=cpu_s,
        tasks=tasks,
        steps=processes.Quantiles(
            p05=min(block_s), p50=sorted(block_s)[len(block_s) // 2], p95=max(block_s)
        ),
    )


def a_device_memory(**more):
    """What torch's CUDA allocator counted."""
    plain = processes.DeviceMemory(
        peak_allocated_bytes=MIB,
        peak_reserved_bytes=2 * MIB,
        peak_active_bytes=MIB,
        alloc_retries=0,
        out_of_memory=0,
    )
    return msgspec.structs.replace(plain, **more)


def a_gpu_evidence(**more):
    """What the monitor saw of a healthy GPU that was busy for a second."""
    plain = GpuEvidence(
        uuid="GPU-0",
        readings=5,
        utilization=Span(low=0.9, mean=0.95, high=1.0),
        sm_clock_mhz=Span(low=1980.0, mean=1980.0, high=1980.0),
        temperature_c=None,
        power_w=Span(low=480.0, mean=500.0, high=520.0),
        power_limit_w=700.0,
        energy_j=500.0,
        violations_s={},
        event_reasons=(),
        processes=1,
        used_before_bytes=0,
        used_peak_bytes=None,
        ecc_errors=0,
        pcie=None,
        absent={},
    )
    return msgspec.structs.replace(plain, **more)


def an_evidence(*gpus, trouble="", **host):
    """What the monitor saw of a host, a quiet one unless told, and of these GPUs."""
    quiet = HostEvidence(
        wall_s=1.0,
        cpu_s=1.0,
        cpu_pressure=0.0,
        memory_pressure=0.0,
        throttled_s=0.0,
    )
    return Evidence(
        host=msgspec.structs.replace(quiet, **host),
        gpus=gpus,
        host_rss_peak_bytes=None,
        overhead_cpu_s=0.01,
        trouble=trouble,
    )


def a_measured(
    workload, *step_s, parameters=None, precision="", items_per_step=8.0, knobs=None, **process
):
    """A workload with one process per step time."""
    return runs.Measured(
        workload=workload,
        description=f"About {workload}.",
        parameters=parameters or {},
        launch="torchrun" if "world_size" in (parameters or {}) else "process",
        world_size=(parameters or {}).get("world_size", 1),
        protocol=Protocol(processes=len(step_s)),
        items_per_step=items_per_step,
        item_unit="image",
        precision=precision,
        knobs=knobs or {},
        processes=tuple(a_process(i, step_s=s, **process) for i, s in enumerate(step_s)),
    )


def a_failed(workload, reason="RuntimeError: boom", *, phase=processes.Phase.TIMED, output=""):
    return runs.Failed(
        workload=workload,
        description="",
        parameters={},
        launch="process",
        world_size=1,
        protocol=Protocol(),
        phase=phase,
        reason=reason,
        output=output,
    )


def a_reason(code="clocks_held_down", workload="", status=Status.INVALID):
    """Why a run, or one workload of it, is not to be trusted."""
    return Reason(code=code, status=status, detail="nothing left", workload=workload)


def some_canaries(*, before=1e-3, after=None, name="matmul"):
    """A canary before and after the workloads; it stayed as it was unless told."""
    after = before if after is None else after
    return (
        Canary(name=name, position="before", median_s=before),
        Canary(name=name, position="after", median_s=after),
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

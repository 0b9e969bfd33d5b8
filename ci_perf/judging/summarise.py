"""A run as the judge sees it: one number per process and metric, and what is only shown."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ci_perf.judging import canaries, comparability, launch_numbers
from ci_perf.model.base import MOST_SECONDS
from ci_perf.model.process import (
    BreakEven,
    GeneratedCode,
    GpuUse,
    Phase,
    Process,
    Profile,
    SideProfile,
    StepPhase,
)
from ci_perf.model.run import Failed, Measured, NodeSession, Paired, Run
from ci_perf.model.summary import (
    Cost,
    EarlierPairs,
    PairedNumbers,
    SessionNumbers,
    Subject,
    Summary,
)
from ci_perf.model.validity import GpuEvidence


def run(measured: Run, *, label: str) -> Summary:
    """Reduce a run to one number per process and metric.

    Each workload has what its own session knows: each node has canaries of its own.
    """
    sessions = {name: session for session in measured.sessions for name in session.workloads}
    subjects = [
        _subject(measured, workload, sessions[workload.workload]) for workload in measured.measured
    ]
    # Pairs of different work are none.
    other = {each.workload: why for each in subjects if (why := _describe_other_work(each))}
    interleaved = measured.interleaved
    if interleaved is not None and other:
        incomparable = interleaved.incomparable | other
        interleaved = msgspec.structs.replace(interleaved, incomparable=incomparable)
    return Summary(
        label=label,
        source=measured.source,
        run=measured.id,
        suite=measured.suite,
        selection=measured.selection,
        validity=measured.validity,
        subjects=tuple(
            msgspec.structs.replace(each, paired=None) if each.workload in other else each
            for each in subjects
        ),
        failed=measured.failed,
        machine=measured.environment.hard,
        image=measured.environment.image,
        interleaved=interleaved,
        checks=measured.checks,
        check=measured.check,
        profiles=tuple(_profile(workload, measured) for workload in measured.measured),
        same=measured.same,
        touched=measured.touched,
        profiled=measured.profiled,
        cost=_cost(measured),
    )


def _cost(measured: Run) -> Cost:
    """Add up all launches. Both sides of a resident pair exist at once."""
    launchable: list[Measured | Failed] = [*measured.measured, *measured.failed]
    sizes = {each.workload: each.world_size for each in launchable}
    launched = [
        (each.workload, launch_numbers.process_s(process))
        for each in launchable
        for process in each.processes
    ]
    for paired in measured.paired:
        for pair in paired.pairs:
            share = 0.5 if pair.resident else 1.0
            both = (pair.base, pair.head)
            launched += [(paired.workload, share * launch_numbers.process_s(p)) for p in both]
    seconds = math.fsum(sizes.get(workload, 1) * launch_s for workload, launch_s in launched)
    return Cost(
        started_at=measured.started_at,
        launches=len(launched),
        launched_s=round(min(MOST_SECONDS, seconds), 3),
        held_s=measured.duration_s,
        waited_s=measured.waited_s,
        saved=sum(each.is_proven for each in measured.same),
    )


def _subject(measured: Run, workload: Measured, session: NodeSession) -> Subject:
    return Subject(
        workload=workload.workload,
        parameters=workload.parameters,
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        statistic=workload.protocol.statistic,
        threads=workload.describe_threads(),
        machine=measured.environment.hard,
        sessions=(
            SessionNumbers(
                commit=measured.source.commit,
                recorded_at=session.started_at,
                node=session.node,
                soft=session.soft,
                processes=launch_numbers.list_workload_numbers(workload, measured),
                # The different ones, in launch order.
                fingerprints=tuple(dict.fromkeys(each.fingerprint for each in workload.processes)),
                canaries=canaries.readings(session.canaries),
            ),
        ),
        paired=_find_paired(measured, workload),
    )


def _find_paired(measured: Run, workload: Measured) -> PairedNumbers | None:
    """Return the pairs of a workload whose base was launched beside it, now or in earlier runs."""
    earlier = [
        (run, paired)
        for run in measured.earlier
        if (paired := _find_workload(run.paired, workload.workload)) and paired.pairs
    ]
    today = _find_workload(measured.paired, workload.workload)
    known = [each for each in (today, *(paired for _, paired in earlier)) if each]
    if not known:
        return None
    bases = [pair.base.fingerprint for paired in known for pair in paired.pairs]
    return PairedNumbers(
        pairs=launch_numbers.list_pair_numbers(today, workload, measured) if today else (),
        base_fingerprints=tuple(dict.fromkeys(filter(comparability.numeric_values, bases))),
        own_file=any(paired.file == "base" for paired in known),
        failure=today.trouble if today else "",
        earlier=tuple(
            EarlierPairs(
                run=run.run,
                pairs=launch_numbers.list_pair_numbers(paired, workload, measured),
                said=run.said.get(workload.workload, {}),
            )
            for run, paired in earlier
        ),
    )


def _describe_other_work(subject: Subject) -> str:
    """Say why pairs compare different work; empty where they do not."""
    pairs = subject.paired.pairs if subject.paired else ()
    return comparability.describe_other_times(*zip(*pairs, strict=True)) if pairs else ""


def _find_workload(all_paired: Iterable[Paired], name: str) -> Paired | None:
    return next((paired for paired in all_paired if paired.workload == name), None)


# --- what is shown beside the judged metrics: epochs, the use of GPUs, when compiling pays


def _profile(workload: Measured, run: Run) -> Profile:
    paired = _find_workload(run.paired, workload.workload)
    pairs = paired.pairs if paired else ()
    return Profile(
        workload=workload.workload,
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        items_per_epoch=workload.items_per_epoch,
        head=_side([pair.head for pair in pairs] or workload.processes),
        base=_side([pair.base for pair in pairs]) if pairs else None,
        break_evens=tuple(_break_evens(workload, run)),
    )


def _side(processes: Sequence[Process]) -> SideProfile:
    return SideProfile(
        step_time_s=statistics.median(_steps_s(processes)),
        phases=_phases(processes),
        gpus=tuple(_gpus(processes)),
        device_work=next(filter(None, (process.device_work for process in processes)), None),
        generated=_find_generated(processes),
    )


def _find_generated(processes: Sequence[Process]) -> GeneratedCode | None:
    """Return the code of the first launch that has any, else why one that compiled has none."""
    names = ("generated", Phase.COUNTERS.value)
    compiled = [each for each in processes if each.compiles and each.compiles.graphs]
    reasons = [each.absent[name] for each in compiled for name in names if name in each.absent]
    known = (each.generated for each in processes if each.generated)
    return next(known, GeneratedCode(absent=reasons[0]) if reasons else None)


def _steps_s(processes: Iterable[Process]) -> list[float]:
    return [
        launch_numbers.reduce_blocks(process.timed.block_s, process.timed.statistic)
        for process in processes
    ]


def _phases(processes: Iterable[Process]) -> dict[str, StepPhase]:
    """Return the parts of a step, each by its means over the processes."""
    by_name: dict[str, list[StepPhase]] = {}
    for process in processes:
        for name, part in process.step_phases.phases.items() if process.step_phases else ():
            by_name.setdefault(name, []).append(part)
    return {
        name: StepPhase(
            host_s=statistics.fmean(part.host_s for part in parts),
            device_s=_mean(part.device_s for part in parts if part.device_s is not None),
        )
        for name, parts in by_name.items()
    }


def _gpus(processes: Iterable[Process]) -> Iterator[GpuUse]:
    """Yield the use of each GPU, by its UUID."""
    by_uuid: dict[str, list[GpuEvidence]] = {}
    for process in processes:
        for gpu in process.evidence.gpus if process.evidence else ():
            by_uuid.setdefault(gpu.uuid, []).append(gpu)
    for uuid, gpus in by_uuid.items():
        peaks = [gpu.used_peak_bytes for gpu in gpus if gpu.used_peak_bytes is not None]
        yield GpuUse(
            uuid=uuid,
            utilization=_mean(gpu.utilization.mean for gpu in gpus if gpu.utilization),
            power_w=_mean(gpu.power_w.mean for gpu in gpus if gpu.power_w),
            memory_peak_bytes=max(peaks, default=None),
            absent={name: said for gpu in reversed(gpus) for name, said in gpu.absent.items()},
        )


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.fmean(known) if known else None


def _break_evens(compiled: Measured, run: Run) -> Iterator[BreakEven]:
    """Compare a compiled workload with the same one that is not, once per state of the caches."""
    eager = _eager(compiled, run)
    if eager is None:
        return
    eager_s, compiled_s = _steps_s(eager.processes), _steps_s(compiled.processes)
    gain_s = statistics.median(eager_s) - statistics.median(compiled_s)
    is_faster = max(compiled_s) < min(eager_s)
    states: tuple[Literal["empty", "filled"], ...] = ("empty", "filled")
    for cache in states:
        first_s = [
            process.phases.first_step_s
            for process in compiled.processes
            if process.compiles and process.compiles.cache == cache
        ]
        if first_s:
            eager_first_s = [process.phases.first_step_s for process in eager.processes]
            yield BreakEven(
                eager=eager.workload,
                cache=cache,
                cost_s=statistics.median(first_s) - statistics.median(eager_first_s),
                gain_s=gain_s,
                is_faster=is_faster,
            )


def _eager(compiled: Measured, run: Run) -> Measured | None:
    """Return the workload that differs in one parameter and makes no graph."""
    if not any(launch.compiles and launch.compiles.graphs for launch in compiled.processes):
        return None
    for name in compiled.parameters:
        wanted = launch_numbers.family(compiled.workload, compiled.parameters, name)
        for other in launch_numbers.list_session_numbers(compiled, run):
            shared = launch_numbers.family(other.workload, other.parameters, name)
            counts = [launch.compiles for launch in other.processes]
            is_eager = all(known and not known.graphs for known in counts)
            if shared == wanted and name in other.parameters and is_eager:
                return other
    return None

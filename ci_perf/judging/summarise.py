"""A run as the judge sees it: one number per process and metric, and what is only shown."""

import math
import statistics
from collections.abc import Iterable, Iterator
from typing import Literal

from ci_perf.judging import canaries, comparability, launch_numbers
from ci_perf.model.process import BreakEven, Fingerprint, GpuUse, Profile
from ci_perf.model.run import Earlier, Measured, NodeSession, Paired, Run
from ci_perf.model.summary import EarlierPairs, PairedNumbers, SessionNumbers, Subject, Summary
from ci_perf.model.validity import GpuEvidence


def run(measured: Run, *, label: str) -> Summary:
    """Reduce a run to one number per process and metric."""
    return Summary(
        label=label,
        source=measured.source,
        run=measured.id,
        suite=measured.suite,
        selection=measured.selection,
        validity=measured.validity,
        subjects=tuple(_subjects(measured)),
        failed=measured.failed,
        machine=measured.environment.hard,
        image=measured.environment.image,
        interleaved=measured.interleaved,
        checks=measured.checks,
        check=measured.check,
        profiles=_profiles(measured),
        same=measured.same,
        touched=measured.touched,
        profiled=measured.profiled,
    )


def _subjects(measured: Run) -> Iterator[Subject]:
    """Yield each workload with what its own session knows: each node has canaries of its own."""
    sessions = {name: session for session in measured.sessions for name in session.workloads}
    for workload in measured.measured:
        yield _subject(measured, workload, sessions[workload.workload])


def _subject(measured: Run, workload: Measured, session: NodeSession) -> Subject:
    return Subject(
        workload=workload.workload,
        parameters=workload.parameters,
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        statistic=workload.protocol.statistic,
        machine=measured.environment.hard,
        sessions=(
            SessionNumbers(
                commit=measured.source.commit,
                recorded_at=session.started_at,
                node=session.node,
                soft=session.soft,
                processes=launch_numbers.of_workload(workload, measured),
                fingerprints=_each_once(workload),
                canaries=canaries.readings(session.canaries),
            ),
        ),
        paired=_paired(measured, workload),
    )


def _paired(measured: Run, workload: Measured) -> PairedNumbers | None:
    """Return the pairs of a workload whose base was launched beside it, now or in earlier runs."""
    earlier = tuple(_earlier(measured, workload))
    today = _of_workload(measured.paired, workload.workload)
    known = [each for each in (today, *(paired for _, paired in earlier)) if each]
    if not known:
        return None
    bases = [pair.base.fingerprint for paired in known for pair in paired.pairs]
    return PairedNumbers(
        pairs=launch_numbers.of_pairs(today, workload, measured) if today else (),
        base_fingerprints=tuple(dict.fromkeys(filter(comparability.numeric_values, bases))),
        own_file=any(paired.file == "base" for paired in known),
        failure=today.trouble if today else "",
        earlier=tuple(
            EarlierPairs(
                run=run.run,
                pairs=launch_numbers.of_pairs(paired, workload, measured),
                said=run.said.get(workload.workload, {}),
            )
            for run, paired in earlier
        ),
    )


def _earlier(measured: Run, workload: Measured) -> Iterator[tuple[Earlier, Paired]]:
    """Yield what each earlier run of the same commits has launched of a workload."""
    for run in measured.earlier:
        paired = _of_workload(run.paired, workload.workload)
        if paired is not None and paired.pairs:
            yield run, paired


def _of_workload(all_paired: Iterable[Paired], name: str) -> Paired | None:
    return next((paired for paired in all_paired if paired.workload == name), None)


def _each_once(workload: Measured) -> tuple[Fingerprint, ...]:
    """Return the different fingerprints, in launch order."""
    return tuple(dict.fromkeys(process.fingerprint for process in workload.processes))


# --- what is shown beside the judged metrics: epochs, the use of GPUs, when compiling pays


def _profiles(run: Run) -> tuple[Profile, ...]:
    """Describe every measured workload, in the order of the run."""
    return tuple(_profile(workload, run) for workload in run.measured)


def _profile(workload: Measured, run: Run) -> Profile:
    step_s = statistics.median(_steps_s(workload))
    epoch = workload.items_per_epoch
    return Profile(
        workload=workload.workload,
        step_time_s=step_s,
        items_per_step=workload.items_per_step,
        item_unit=workload.item_unit,
        epoch_s=None if epoch is None else step_s * epoch / workload.items_per_step,
        gpus=tuple(_gpus(workload)),
        break_evens=tuple(_break_evens(workload, run)),
    )


def _steps_s(workload: Measured) -> list[float]:
    return [
        launch_numbers.of_blocks(process.timed.block_s, process.timed.statistic)
        for process in workload.processes
    ]


def _gpus(workload: Measured) -> Iterator[GpuUse]:
    """Yield the use of each GPU, by its UUID."""
    by_uuid: dict[str, list[GpuEvidence]] = {}
    for process in workload.processes:
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
    eager_s, compiled_s = _steps_s(eager), _steps_s(compiled)
    gain_s = statistics.median(eager_s) - statistics.median(compiled_s)
    is_faster = max(compiled_s) < min(eager_s)
    states: tuple[Literal["empty", "filled"], ...] = ("empty", "filled")
    for cache in states:
        first_s = [
            process.phases.first_step_s
            for process in compiled.processes
            if process.compiles and process.compiles.cache == cache
        ]
        if not first_s:
            continue
        eager_first_s = [process.phases.first_step_s for process in eager.processes]
        cost_s = statistics.median(first_s) - statistics.median(eager_first_s)
        yield BreakEven(
            eager=eager.workload,
            cache=cache,
            cost_s=cost_s,
            gain_s=gain_s,
            steps=_steps_to_break_even(cost_s, gain_s) if is_faster else None,
        )


def _steps_to_break_even(cost_s: float, gain_s: float) -> int:
    """Return after how many steps the compiled workload is ahead, the first step included."""
    return 1 + max(0, math.ceil(cost_s / gain_s))


def _eager(compiled: Measured, run: Run) -> Measured | None:
    """Return the workload that differs in one parameter and makes no graph."""
    if not _is_compiled(compiled):
        return None
    for name in compiled.parameters:
        wanted = launch_numbers.family(compiled.workload, compiled.parameters, name)
        for other in launch_numbers.of_session(compiled, run):
            shared = launch_numbers.family(other.workload, other.parameters, name)
            if shared == wanted and name in other.parameters and _is_eager(other):
                return other
    return None


def _is_compiled(workload: Measured) -> bool:
    return any(launch.compiles and launch.compiles.graphs for launch in workload.processes)


def _is_eager(workload: Measured) -> bool:
    """Whether every process is known to have made no graph."""
    return all(launch.compiles and not launch.compiles.graphs for launch in workload.processes)

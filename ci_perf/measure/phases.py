"""One process, phase by phase, in the order of docs/measuring.md."""

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

from ci_perf.measure import (
    compiles,
    device,
    distributed,
    fingerprint,
    knobs,
    peaks,
    slowdown,
    step_phases,
    timing,
    turns,
    user_code,
)
from ci_perf.measure.after_timing import AfterTiming
from ci_perf.measure.distributed import Group
from ci_perf.measure.instruments import Instruments, TimeLeft
from ci_perf.measure.monitor.marks import Marks
from ci_perf.measure.stopwatch import Stopwatch
from ci_perf.model import task
from ci_perf.model.process import Phase, Process, Work, WorkerResult
from ci_perf.model.suite import PlannedWorkload
from ci_perf.workload import Context


def go_through(
    todo: task.Task, stopwatch: Stopwatch, marks: Marks, keep: Callable[[WorkerResult], object]
) -> None:
    """Measure, and `keep` the result: as soon as it has its times, and whenever it knows more.

    Of several ranks, rank 0 keeps that of all.
    """
    protocol = todo.workload.protocol
    stopwatch.turns = turns.of(todo.turns)
    left = TimeLeft(protocol.timeout_s, stopwatch.turns.clock)
    cache = compiles.cache()
    knobs.fix_process(protocol)
    watcher = step_phases.Watcher()
    with stopwatch.phase(Phase.IMPORT):
        loaded = user_code.load(Path(todo.workload.file), Path(todo.root), todo.python_path)
        knobs.fix_libraries(protocol)
        group, name = _join(todo)
        here = stopwatch.device = device.open_device(name, _cards(todo.workload))
    with stopwatch.phase(Phase.BUILD):
        workload = loaded.build(_context(todo, name, group, watcher))
        compiles.keep_all_records()
    with stopwatch.phase(Phase.FIRST_STEP):
        first_step_s = group.maximum(here.time_block(workload.step, 1).step_s)
    with stopwatch.phase(Phase.FINGERPRINT):
        numbers = fingerprint.take(
            workload, here, protocol.fingerprint_steps, left.before_timing(group)
        )
    with stopwatch.phase(Phase.WARMUP):
        warmup, step_s = timing.warm_up(here, workload.step, protocol, slowest=group.maximum)
        step = slowdown.of(workload.step, todo.workload.slowdown, here, step_s=step_s)
    with stopwatch.phase(Phase.TIMED), _no_collector():
        marks.begin()
        timed = timing.time_blocks(
            here, step, protocol, step_s=step_s, slowest=group.maximum, turns=stopwatch.turns
        )
        marks.end()
    process = Process(
        index=todo.index,
        phases=stopwatch.times(first_step_s),
        warmup=warmup,
        timed=timed,
        memory=peaks.of_host(group),
        compiles=None,
        work=Work(operators=None, flops=None, parameters=workload.parameter_count),
        fingerprint=numbers,
        ranks=group.describe(None),
    )
    after = AfterTiming(todo, workload, here, group, Instruments(left, step_s, group))
    after.go_through(process, stopwatch, watcher, cache, keep)


def _join(todo: task.Task) -> tuple[Group, str]:
    """Join the other ranks, where there are some, and name the device of this one."""
    if todo.workload.launch == "process":
        return distributed.Solo(), todo.device
    name = distributed.device_of_rank(todo.device, distributed.local_rank())
    return distributed.join(name, timeout_s=todo.workload.protocol.timeout_s), name


def _cards(workload: PlannedWorkload) -> int:
    """Return how many cards one process of a workload serves; each rank has one of its own."""
    return workload.world_size if workload.launch == "process" else 1


def _context(todo: task.Task, name: str, group: Group, watcher: step_phases.Watcher) -> Context:
    return Context(
        device=name,
        parameters=todo.workload.parameters,
        seed=todo.workload.protocol.seed,
        data_dir=todo.data_dir,
        rank=group.rank,
        world_size=group.world_size,
        phase=watcher.phase,
    )


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector out of the timed region."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()

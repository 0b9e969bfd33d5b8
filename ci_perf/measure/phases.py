"""One process, phase by phase, in the order of docs/measuring.md."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from ci_perf.measure import (
    compiles,
    counters,
    device,
    distributed,
    fingerprint,
    foreign_code,
    host,
    knobs,
    slowdown,
    step_phases,
    task,
    timing,
    turns,
    user_code,
)
from ci_perf.measure.device import Device
from ci_perf.measure.distributed import Group
from ci_perf.measure.monitor.marks import Marks
from ci_perf.measure.turns import Turns
from ci_perf.model.base import Scalar
from ci_perf.model.process import (
    DeviceMemory,
    Memory,
    Phase,
    PhaseTimes,
    Process,
    WorkerResult,
)
from ci_perf.workload import Context, Workload


class Stopwatch:
    """Times the phases apart, and leaves a note of the current one for the parent."""

    def __init__(self, note: Path) -> None:
        self._note = note
        self.current = Phase.LAUNCH
        self.seconds: dict[Phase, float] = {}
        # What had been opened when things went wrong.
        self.device: Device | None = None
        self.turns: Turns = turns.Alone()

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Enter a phase, in its turn; a crash that kills the process leaves its name behind."""
        self.turns.take()
        self.current = phase
        self._note.write_text(phase.value)
        start = self.turns.clock()
        yield
        self.seconds[phase] = self.turns.clock() - start


def go_through(todo: task.Task, stopwatch: Stopwatch, marks: Marks) -> WorkerResult | None:
    """Measure; `None` for a rank that leaves the telling to rank 0."""
    protocol = todo.workload.protocol
    stopwatch.turns = turns.of(todo.turns)
    cache = compiles.cache()
    knobs.fix_process(protocol)
    watcher = step_phases.Watcher()
    with stopwatch.phase(Phase.IMPORT):
        loaded = user_code.load(Path(todo.workload.file), Path(todo.root), todo.python_path)
        knobs.fix_libraries(protocol)
        group, name = _join(todo)
        here = stopwatch.device = device.open_device(name)
    with stopwatch.phase(Phase.BUILD):
        workload = loaded.build(_context(todo, name, group, watcher))
        compiles.keep_all_records()
    with stopwatch.phase(Phase.FIRST_STEP):
        first_step_s = group.maximum(here.time_block(workload.step, 1).step_s)
    with stopwatch.phase(Phase.FINGERPRINT):
        numbers = fingerprint.take(workload, here, protocol.fingerprint_steps)
    with stopwatch.phase(Phase.WARMUP):
        warmup, step_s = timing.warm_up(here, workload.step, protocol, slowest=group.maximum)
        step = slowdown.of(workload.step, todo.workload.slowdown, here, step_s=step_s)
    with stopwatch.phase(Phase.TIMED), _no_collector():
        marks.begin()
        timed = timing.time_blocks(
            here, step, protocol, step_s=step_s, slowest=group.maximum, turns=stopwatch.turns
        )
        marks.end()
    held, compiled = knobs.held(), compiles.counts(cache)
    with stopwatch.phase(Phase.MEMORY):
        memory = _memory(here, workload, protocol.memory_steps, group)
    with stopwatch.phase(Phase.COUNTERS):
        parts = watcher.watch(here, workload.step, protocol.phase_steps)
        skew_s = distributed.arrival_skew(group, here, workload.local_step, protocol.phase_steps)
        work = counters.count(workload.step, here, workload.parameter_count)
    with stopwatch.phase(Phase.TEARDOWN):
        _call(workload.teardown)
        ranks = group.describe(skew_s)
        group.leave()
        foreign_code.check(todo.foreign_root, root=todo.root, file=todo.workload.file)
    process = Process(
        index=todo.index,
        phases=_times(stopwatch.seconds, first_step_s),
        warmup=warmup,
        timed=timed,
        memory=memory,
        compiles=compiled,
        work=work,
        fingerprint=numbers,
        step_phases=parts,
        ranks=ranks,
    )
    return None if group.rank else _result(workload, held, process)


def _times(seconds: Mapping[Phase, float], first_step_s: float) -> PhaseTimes:
    return PhaseTimes(
        import_s=seconds[Phase.IMPORT],
        build_s=seconds[Phase.BUILD],
        first_step_s=first_step_s,
        fingerprint_s=seconds[Phase.FINGERPRINT],
        warmup_s=seconds[Phase.WARMUP],
        timed_s=seconds[Phase.TIMED],
        memory_s=seconds[Phase.MEMORY],
        counters_s=seconds[Phase.COUNTERS],
    )


def _result(workload: Workload, held: dict[str, Scalar], process: Process) -> WorkerResult:
    return WorkerResult(
        items_per_step=float(workload.items_per_step),
        item_unit=workload.item_unit,
        precision=workload.precision,
        knobs=held,
        process=process,
    )


def _join(todo: task.Task) -> tuple[Group, str]:
    """Join the other ranks, where there are some, and name the device of this one."""
    if todo.workload.launch == "process":
        return distributed.Solo(), todo.device
    name = distributed.device_of_rank(todo.device, distributed.local_rank())
    return distributed.join(name, timeout_s=todo.workload.protocol.timeout_s), name


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


def _memory(here: Device, workload: Workload, steps: int, group: Group) -> Memory:
    """Read the peaks over `steps` steps; of several ranks, each peak is the highest of any."""
    here.reset_peaks()
    here.time_block(workload.step, steps)
    found = here.memory()
    return Memory(
        host_rss_peak_bytes=round(group.maximum(host.rss_peak_bytes())),
        device=None if found is None else _highest(found, group),
    )


def _highest(memory: DeviceMemory, group: Group) -> DeviceMemory:
    peaks = msgspec.structs.asdict(memory)
    return DeviceMemory(**{name: round(group.maximum(value)) for name, value in peaks.items()})


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


def _call(function: Callable[[], object] | None) -> None:
    if function is not None:
        function()

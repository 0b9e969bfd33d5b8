"""Measure one workload in one process: every phase, in the order of docs/measuring.md."""

import contextlib
import functools
import gc
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ci_perf import hooks
from ci_perf.errors import UsageError
from ci_perf.measuring import (
    clocks,
    counters,
    device,
    distributed,
    fingerprint,
    knobs,
    memory,
    planting,
    timing,
    turn_client,
    user_code,
)
from ci_perf.measuring.device import CudaDevice, Device, ReportedSteps
from ci_perf.measuring.device_work import record_device_work
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.generated_kernels import read_generated
from ci_perf.measuring.instruments import Instruments, Stopwatch, TimeLeft
from ci_perf.measuring.monitor import Marks
from ci_perf.measuring.own_code import ForeignCodeError
from ci_perf.measuring.recording import recorder
from ci_perf.measuring.step_phases import Watcher
from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.measuring.user_code import Builder
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import Fingerprint, Phase, Process, Warmup, Work, WorkerResult
from ci_perf.model.task import Task
from ci_perf.workload import Context, Workload

Keep = Callable[[WorkerResult | StepProfile], object]

_ENDED = "the process ended before"


def go_through(
    todo: Task,
    stopwatch: Stopwatch,
    marks: Marks,
    keep: Keep,
    *,
    alone: Callable[[], object] = lambda: None,
    is_forked: bool = False,
) -> None:
    """Measure, and `keep` the result: as soon as it has its times, and whenever it knows more.

    Of several ranks, rank 0 keeps that of all. A launch that is to profile what a step does times
    no blocks. `alone` is called once no other launch imports meanwhile. Where `is_forked`, what
    launches share is imported.
    """
    protocol = todo.workload.protocol
    stopwatch.turn_taker = turn_client.open_turn_taker(todo, stopwatch.folder)
    left = TimeLeft(todo.workload.protocol.timeout_s, stopwatch.turn_taker.clock)
    knobs.fix_process(protocol)
    planting.announce(todo)
    watcher = Watcher()
    with stopwatch.phase(Phase.IMPORT):

        def take() -> None:
            stopwatch.turn_taker.take()
            alone()

        file, root = Path(todo.workload.file), Path(todo.root)
        user_code.add_paths(file, root, todo.python_path)
        late = user_code.LateImports()
        with knobs.pause_collector():
            loaded = user_code.load(
                file, root, todo.python_path, after_libraries=take if todo.only_libraries else None
            )
        knobs.fix_libraries(protocol)
        _collect_in_pair(todo, loaded, stopwatch.turn_taker, is_forked=is_forked)
        take()
        if todo.imports_ahead:
            marks.hello()
        cache = counters.compile_cache()
        group, name = _join(todo)
        # Each rank has a card of its own.
        cards = 1 if todo.workload.launch == "torchrun" else todo.workload.world_size
        here = stopwatch.device = device.open_device(name, cards)
    context = _context(todo, name, group, watcher)
    if todo.profiler:

        def build() -> Workload:
            return loaded.build(context)

        hooks.load(todo.profiler)(todo, build, here, group, watcher, left, stopwatch, keep)
        return
    with stopwatch.phase(Phase.BUILD):
        workload = planting.plant(loaded.build(context), todo, here.synchronize)
        counters.keep_all_compile_records()
        here = stopwatch.device = _wrap_device(here, workload)
    with stopwatch.phase(Phase.FIRST_STEP):
        first_step_s = math.inf
        if not workload.is_fresh:
            first_step_s = group.maximum(here.time_block(workload.step, 1).step_s)
        late_libraries = late.find()

    def take_fingerprint() -> Fingerprint:
        with stopwatch.phase(Phase.FINGERPRINT):
            refusal = left.before_timing(group)
            return fingerprint.take(workload, here, protocol.fingerprint_steps, refusal)

    numbers = Fingerprint() if workload.is_fresh else take_fingerprint()
    with stopwatch.phase(Phase.WARMUP):
        if workload.is_fresh:
            warmup, step_s = Warmup(steps=0, stopped="stable"), first_step_s
        else:
            warmup, step_s = timing.warm_up(
                here,
                workload.step,
                protocol,
                slowest=group.maximum,
                in_pair=stopwatch.turn_taker.is_shared,
            )
    with (
        stopwatch.phase(Phase.TIMED),
        memory.note_children(group) as had_children,
        _no_collector(),
    ):
        marks.begin()
        if todo.command_turn and workload.run_by_turn:
            taker = stopwatch.turn_taker
            run = functools.partial(workload.run_by_turn, todo.command_turn, taker)
            timed = timing.time_by_turn(here, run, protocol, taker)
        else:
            timed = timing.time_blocks(
                here,
                workload.step,
                protocol,
                step_s=step_s,
                start_s=stopwatch.start_s(math.inf if todo.forks_next else todo.imports_ahead),
                slowest=group.maximum,
                turn_taker=stopwatch.turn_taker,
                is_fresh=workload.is_fresh,
            )
        marks.end()
    if workload.is_fresh:
        first_step_s = step_s = timed.block_s[0]
        numbers = take_fingerprint()
    process = Process(
        index=todo.index,
        phases=stopwatch.times(first_step_s),
        warmup=warmup,
        timed=timed,
        memory=msgspec.structs.replace(
            memory.host_peak(group), below_bytes=None if had_children() else 0
        ),
        compiles=None,
        work=Work(operators=None, flops=None, parameters=workload.parameter_count),
        fingerprint=numbers,
        ranks=group.describe(None),
        replaced=clocks.find_replaced(),
    )
    after = AfterTiming(
        todo, workload, here, group, Instruments(left, step_s, group), late_libraries
    )
    after.go_through(process, stopwatch, watcher, cache, keep)


def _collect_in_pair(todo: Task, loaded: Builder, taker: TurnTaker, *, is_forked: bool) -> None:
    """Collect a test while the other side of its pair does: that imports, and nothing is timed."""
    is_in_pair = taker.is_shared and not todo.imports_ahead
    if todo.workload.launch == "fork" and is_in_pair and not is_forked:
        with contextlib.suppress(Exception):  # `build` says what is wrong
            loaded.prepare([str(todo.workload.parameters["node"])])


def _wrap_device(here: Device, workload: Workload) -> Device:
    """Return the device, by whose steps are what the workload reports where it does."""
    if workload.reported_s is None:
        return here
    if isinstance(here, CudaDevice):
        raise UsageError("reported_s: expected --device cpu, found another device")
    return ReportedSteps(workload.reported_s)


def _join(todo: Task) -> tuple[Group, str]:
    """Join the other ranks, where there are some, and name the device of this one."""
    if todo.workload.launch != "torchrun":
        return Group(), todo.device
    name = distributed.device_of_rank(todo.device, distributed.local_rank())
    group = distributed.join(name, timeout_s=todo.workload.protocol.timeout_s)
    return group, name


def _context(todo: Task, name: str, group: Group, watcher: Watcher) -> Context:
    return Context(
        device=name,
        parameters=todo.workload.parameters,
        seed=todo.workload.protocol.seed,
        data_dir=todo.data_dir,
        rank=group.rank,
        world_size=group.world_size,
        launch=todo.index,
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


Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class Instrument:
    """Reads fields of a process, in so many steps. One that `may_crash` comes after a save."""

    name: str
    steps: int
    read: Callable[[], Facts]
    may_crash: bool = False


@dataclass(frozen=True, slots=True)
class AfterTiming:
    """The phases after the timed region: memory, counters, teardown. Each can only lose itself."""

    todo: Task
    workload: Workload
    here: Device
    group: Group
    instruments: Instruments
    late_libraries: tuple[str, ...] = ()

    def go_through(
        self,
        process: Process,
        stopwatch: Stopwatch,
        watcher: Watcher,
        cache: Literal["empty", "filled"],
        keep: Keep,
    ) -> None:
        """Add to `process` what the phases show, and keep it after each of them.

        Raises ForeignCodeError and, where there are several ranks, what a step raises.
        """
        held = self.instruments.take("knobs", knobs.read_knobs, steps=0) or {}
        compiled = self.instruments.take(
            "compiles", lambda: counters.count_compiles(cache), steps=0
        )
        process = msgspec.structs.replace(process, compiles=compiled)
        first_step_s = process.phases.first_step_s

        def keep_so_far(*to_come: str) -> None:
            if self.group.rank == 0:
                absent = self.instruments.absent | dict.fromkeys(to_come, _ENDED)
                times = stopwatch.times(first_step_s)
                measured = msgspec.structs.replace(process, phases=times, absent=absent)
                keep(self._result(measured, held))

        to_come = self._list_instruments(process.memory.below_bytes, watcher)
        with contextlib.suppress(ForeignCodeError):  # raised at the end
            recorder.check_code(self.todo)
            keep_so_far(*(phase.value for phase in to_come))
        for phase in list(to_come):
            with stopwatch.phase(phase):
                for each in to_come.pop(phase):
                    if each.may_crash:
                        keep_so_far(each.name, *(phase.value for phase in to_come))
                    shown = self.instruments.take(each.name, each.read, steps=each.steps) or {}
                    process = msgspec.structs.replace(process, **shown)
            keep_so_far(*(phase.value for phase in to_come))
        with stopwatch.phase(Phase.TEARDOWN):
            self.instruments.take("teardown", self._tear_down, steps=0)
            recorder.check_code(self.todo)
        keep_so_far()

    def _list_instruments(
        self, below_bytes: int | None, watcher: Watcher
    ) -> dict[Phase, list[Instrument]]:
        """Return what is read in each phase, in the order in which it is entered."""
        here, workload, group = self.here, self.workload, self.group
        if workload.is_fresh:
            return {Phase.MEMORY: [], Phase.COUNTERS: []}
        protocol, step = self.todo.workload.protocol, workload.step
        # Arrivals are compared by the clock of one host.
        local_step = workload.local_step
        watched = protocol.phase_steps + 1  # the first one may compile

        def read_peaks() -> Facts:
            peaks = memory.read_peaks(here, step, protocol.memory_steps, group)
            return {"memory": msgspec.structs.replace(peaks, below_bytes=below_bytes)}

        def watch_phases() -> Facts:
            return {"step_phases": watcher.watch(here, step, protocol.phase_steps)}

        def read_skew() -> Facts:
            skew_s = distributed.arrival_skew(group, here, local_step, protocol.phase_steps)
            return {"ranks": group.describe(skew_s)}

        def count_work() -> Facts:
            return {"work": counters.count_work(step, here, workload.parameter_count)}

        def find_generated() -> Facts:
            return {"generated": read_generated(keeps_sources=self.todo.keeps_sources)}

        def profile() -> Facts:
            return {"device_work": record_device_work(step, here)}

        has_skew = local_step is not None and group.world_size > 1
        counting = [
            Instrument("step_phases", watched, watch_phases),
            Instrument("arrival_skew", watched if has_skew else 0, read_skew),
            Instrument("work", 1, count_work),
        ]
        if self.todo.index < metrics.PROFILED_LAUNCHES:
            counting += [
                Instrument("generated", 0, find_generated),
                # torch's profiler has crashed processes
                Instrument("device_work", 1, profile, may_crash=True),
            ]
        peaks = Instrument("memory", protocol.memory_steps, read_peaks)
        return {Phase.MEMORY: [peaks], Phase.COUNTERS: counting}

    def _tear_down(self) -> None:
        if self.workload.teardown is not None:
            self.workload.teardown()
        self.group.leave()

    def _result(self, process: Process, held: dict[str, Scalar]) -> WorkerResult:
        epoch = self.workload.items_per_epoch
        own = self.workload.metrics() if self.workload.metrics else {}
        process = msgspec.structs.replace(process, metrics=metrics.round_own(own))
        result = WorkerResult(
            items_per_step=float(self.workload.items_per_step),
            items_per_epoch=None if epoch is None else float(epoch),
            item_unit=self.workload.item_unit,
            precision=self.workload.precision,
            knobs=held,
            process=process,
            late_libraries=self.late_libraries,
        )
        add_report = self.workload.add_report
        return result if add_report is None else add_report(result)

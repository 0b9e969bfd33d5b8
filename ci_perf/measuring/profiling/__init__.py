"""Profile what a step does, in a launch that no verdict depends on: operators, functions, memory.

All launches of a workload count the same steps, by their number since `build`: the two sides of a
comparison would otherwise count steps that differ by design, such as every tenth one that logs.
Times come from further steps, as many as there is time for: what counts would slow them.
"""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ci_perf.measuring import foreign_code
from ci_perf.measuring.device import Device, Step
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import Instruments, Stopwatch, TimeLeft
from ci_perf.measuring.profiling import memory_snapshot, storages
from ci_perf.measuring.profiling.memory_snapshot import CudaMemory, MemorySnapshot
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.passes import LOCAL_STEPS, STEPS, Passes
from ci_perf.measuring.profiling.storages import UnfollowedGroup
from ci_perf.measuring.profiling.timeline import Timeline
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.process import Phase
from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import Task
from ci_perf.workload import Workload

# The first step, which allocates and compiles, and two more.
_WARMUP_STEPS = 3
# Of the time of the launch: what is followed is slower, and other passes come after it.
_FOLLOWING_SHARE = 0.5
_NOT_FOLLOWED = "torch had not been imported before `build`, or following its tensors took too long"


@dataclass(frozen=True, slots=True)
class ProfilingLaunch:
    """One launch, from `build` on."""

    todo: Task
    build: Callable[[], Workload]
    here: Device
    group: Group
    watcher: Watcher
    left: TimeLeft

    def go_through(self, stopwatch: Stopwatch, keep: Callable[[StepProfile], object]) -> None:
        """Build, warm up, profile, and `keep` what rank 0 has found.

        Raises what `build` and the first steps raise, and ForeignCodeError.
        """
        cuda = memory_snapshot.of_device(self.here) if self.todo.snapshot_to else None
        code = AuthorCode(self.todo.root)
        end = time.monotonic() + _FOLLOWING_SHARE * self.left.seconds
        with storages.follow(code, end) as followed:
            group = UnfollowedGroup(self.group, followed) if followed else self.group
            with memory_snapshot.noting_what_stays(cuda):
                with stopwatch.phase(Phase.BUILD), _eager():
                    workload = self.build()
                    if followed is not None:
                        followed.built()
                passes = Passes(workload.step, code, self.here, group, self.watcher, self.left)
                with stopwatch.phase(Phase.FIRST_STEP), _eager():
                    step_s = max(passes.run() for _ in range(_WARMUP_STEPS))
            instruments = Instruments(self.left, step_s, group)
            with stopwatch.phase(Phase.COUNTERS), _eager():
                counts = instruments.take(
                    "counts", lambda: passes.count(followed), steps=2 * STEPS
                ) or StepProfile(steps=0, absent=instruments.absent.pop("counts"))
        with stopwatch.phase(Phase.COUNTERS), _eager():
            profile = (
                counts
                if counts.absent
                else _with_times(counts, passes, instruments, workload.local_step)
            )
        with stopwatch.phase(Phase.COUNTERS):
            foreign_code.check(self.todo)
            for last in self._last_passes(passes, stopwatch.folder, cuda):
                # It may crash the process: what was found until here is kept.
                self._keep(keep, last.missing(profile))
                profile = last.added_to(profile, instruments)
        with stopwatch.phase(Phase.TEARDOWN):
            if workload.teardown is not None:
                instruments.take("teardown", workload.teardown, steps=0)
            instruments.take("group", self.group.leave, steps=0)
            foreign_code.check(self.todo)
        if not profile.absent:
            missing = profile.missing | instruments.absent
            profile = msgspec.structs.replace(profile, missing=missing)
        self._keep(keep, profile)

    def _last_passes(
        self, passes: Passes, folder: Path, cuda: CudaMemory | None
    ) -> Iterator[Timeline | MemorySnapshot]:
        todo = self.todo
        yield Timeline(passes, folder, todo.root, keeps=bool(todo.trace_to), tracing=todo.tracing)
        if todo.snapshot_to:
            yield MemorySnapshot(passes, cuda, folder, todo.root)

    def _keep(self, keep: Callable[[StepProfile], object], profile: StepProfile) -> None:
        if self.group.rank == 0:
            keep(profile)


def _with_times(
    profile: StepProfile, passes: Passes, instruments: Instruments, local_step: Step | None
) -> StepProfile:
    """Add the times of further steps; a pass that fails loses only its own."""
    step_s, working_s = instruments.take("step_s", passes.unwatched, steps=1) or (None, None)
    counted = msgspec.structs.replace(profile, step_s=step_s)
    timed = instruments.take("operators", lambda: passes.time_operators(counted), steps=1)
    profile = timed or counted
    timed = instruments.take(
        "functions", lambda: passes.time_functions(profile, working_s), steps=1
    )
    profile = timed or profile
    timed = instruments.take("library_times", lambda: passes.time_library_calls(profile), steps=1)
    profile = timed or profile
    if passes.group.world_size > 1:
        ranks = instruments.take(
            "ranks", lambda: passes.times_of_ranks(local_step, working_s), steps=LOCAL_STEPS
        )
        profile = msgspec.structs.replace(profile, ranks=ranks)
    missing = profile.missing | instruments.absent
    if profile.memory is None:
        missing["memory"] = _NOT_FOLLOWED
    return msgspec.structs.replace(profile, missing=missing)


@contextlib.contextmanager
def _eager() -> Iterator[None]:
    """Run compiled functions as the Python that they were compiled from, where torch can.

    A compiled step calls kernels of its own, of which a dispatch mode sees nothing, and it would be
    compiled again for each thing that watches it. Where nothing has been compiled yet, the first
    `torch.compile` decides: to import the compiler takes seconds.
    """
    torch: Any = sys.modules.get("torch")
    set_stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
    with contextlib.ExitStack() as stack:
        if set_stance is None:
            pass
        elif "torch._dynamo" in sys.modules:
            stack.enter_context(set_stance("force_eager"))
        else:
            compile_ = torch.compile

            @functools.wraps(compile_)
            def compile_eagerly(*args: object, **kwargs: object) -> object:
                torch.compile = compile_
                stack.enter_context(set_stance("force_eager"))
                return compile_(*args, **kwargs)

            torch.compile = compile_eagerly
            stack.callback(setattr, torch, "compile", compile_)
        yield

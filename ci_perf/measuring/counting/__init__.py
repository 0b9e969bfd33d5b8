"""Count what a step does, in a launch that is never timed: operators of torch, and functions.

All launches of a workload count the same steps, by their number since `build`: the two sides of a
comparison would otherwise count steps that differ by design, such as every tenth one that logs.
"""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ci_perf.measuring import memory, user_code
from ci_perf.measuring.counting import functions, operators
from ci_perf.measuring.counting.author import AuthorCode
from ci_perf.measuring.counting.tables import Counted, Operation, joined
from ci_perf.measuring.device import Device
from ci_perf.measuring.distributed import Group, Solo
from ci_perf.measuring.instruments import Instruments, Stopwatch, TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.process import (
    Fingerprint,
    Phase,
    PhaseTimes,
    Process,
    Quantiles,
    Timed,
    Warmup,
    Work,
    WorkerResult,
)
from ci_perf.model.step_counts import AuthorFunction, StepCounts
from ci_perf.model.task import Task
from ci_perf.workload import Workload

# The first step, which allocates and compiles, and two more.
_WARMUP_STEPS = 3
_STEPS = 2
# Of the time that is left to the launch: the rest of a step, and further steps, need some, too.
_SHARE = 0.4
_SHORTEST_S = 1e-9
_NOT_TIMED = "a launch that counts is not timed"


@dataclass(frozen=True, slots=True)
class CountingLaunch:
    """One launch, from its first step on."""

    todo: Task
    workload: Workload
    here: Device
    group: Group
    watcher: Watcher
    left: TimeLeft

    def go_through(self, stopwatch: Stopwatch, keep: Callable[[WorkerResult], object]) -> None:
        """Warm up, count, and `keep` what rank 0 has counted.

        Raises what the first steps raise, and ForeignCodeError.
        """
        with stopwatch.phase(Phase.FIRST_STEP), _eager():
            step_s = max(self._run(self.workload.step) for _ in range(_WARMUP_STEPS))
        instruments = Instruments(self.left, step_s, self.group)
        with stopwatch.phase(Phase.COUNTERS):
            counts = instruments.take("counts", self._count, steps=2 * _STEPS)
            absent = instruments.absent.get("counts", "")
        with stopwatch.phase(Phase.TEARDOWN):
            if self.workload.teardown is not None:
                instruments.take("teardown", self.workload.teardown, steps=0)
            instruments.take("group", self.group.leave, steps=0)
            todo = self.todo
            user_code.check_imports(todo.foreign_root, root=todo.root, file=todo.workload.file)
        if self.group.rank == 0:
            keep(self._result(counts or StepCounts(steps=0, absent=absent), step_s))

    def _run(self, step: Callable[[], object]) -> float:
        """Run one step, and return how many seconds it took."""
        start = time.monotonic()
        step()
        self.here.synchronize()
        return max(time.monotonic() - start, _SHORTEST_S)

    def _count(self) -> StepCounts:
        """Count operators and functions in steps of their own: each would count the other's."""
        code = AuthorCode(self.todo.root)
        may_take_s = _SHARE * self.left.seconds
        end = time.monotonic() + may_take_s
        of_operators: list[Counted[Operation]] = []
        with _eager(), self.watcher.following(self.here):
            for _ in range(_STEPS):
                of_operators.append(self._operators(code, end))
                # All ranks must do the same steps.
                if self.group.maximum(float(of_operators[-1].is_late)):
                    absent = f"counting the operators of a step took more than {may_take_s:.0f} s"
                    return StepCounts(steps=0, absent=absent)
            of_functions = [self._functions(code) for _ in range(_STEPS)]
        return joined(of_operators, of_functions)

    def _operators(self, code: AuthorCode, end: float) -> Counted[Operation]:
        if "torch" not in sys.modules:
            return Counted()
        with operators.watch(code, lambda: self.watcher.current, end=end) as counted:
            self._run(self.workload.step)
        return counted

    def _functions(self, code: AuthorCode) -> Counted[AuthorFunction]:
        with functions.watch(code) as counted:
            self._run(self.workload.step)
        return counted

    def _result(self, counts: StepCounts, step_s: float) -> WorkerResult:
        workload, protocol = self.workload, self.todo.workload.protocol
        epoch = workload.items_per_epoch
        process = Process(
            index=self.todo.index,
            phases=PhaseTimes(
                import_s=0.0,
                build_s=0.0,
                first_step_s=step_s,
                fingerprint_s=0.0,
                warmup_s=0.0,
                timed_s=0.0,
                memory_s=0.0,
                counters_s=0.0,
            ),
            warmup=Warmup(steps=_WARMUP_STEPS, stopped="cap"),
            timed=Timed(
                steps_per_block=1,
                stopped="cap",
                statistic=protocol.statistic,
                block_s=(step_s,),
                device_s=None,
                issue_s=None,
                steps=Quantiles(p05=step_s, p50=step_s, p95=step_s),
            ),
            memory=memory.host_peak(Solo()),
            compiles=None,
            work=Work(
                operators=None, flops=None, parameters=workload.parameter_count, absent=_NOT_TIMED
            ),
            fingerprint=Fingerprint(absent=_NOT_TIMED),
            ranks=self.group.describe(None),
        )
        return WorkerResult(
            items_per_step=float(workload.items_per_step),
            items_per_epoch=None if epoch is None else float(epoch),
            item_unit=workload.item_unit,
            precision=workload.precision,
            knobs={},
            process=process,
            counts=counts,
        )


@contextlib.contextmanager
def _eager() -> Iterator[None]:
    """Run compiled functions as the Python that they were compiled from, where torch can.

    A compiled step calls kernels of its own, of which a dispatch mode sees nothing, and it would be
    compiled again for each thing that watches it.
    """
    compiler: Any = getattr(sys.modules.get("torch"), "compiler", None)
    if "torch._dynamo" in sys.modules and hasattr(compiler, "set_stance"):
        with compiler.set_stance("force_eager"):
            yield
    else:
        yield

"""Profile what a step does, in a launch that no verdict depends on: operators, functions, times.

The measured process loads this, where it is asked to profile instead of timing.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ci_perf.features.explain.worker import trace
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.features.explain.worker.passes import STEPS, Passes
from ci_perf.features.explain.worker.trace import note_missing
from ci_perf.measuring import own_code
from ci_perf.measuring.device import Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.instruments import Instruments, Stopwatch, TimeLeft
from ci_perf.measuring.step_phases import Watcher
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import Phase
from ci_perf.model.task import Task
from ci_perf.workload import Workload

# The first step, which allocates and compiles, and two more.
_WARMUP_STEPS: Final = 3


def profile(
    todo: Task,
    build: Callable[[], Workload],
    here: Device,
    group: Group,
    watcher: Watcher,
    left: TimeLeft,
    stopwatch: Stopwatch,
    keep: Callable[[StepProfile], object],
) -> None:
    """Build, warm up, profile, and `keep` what rank 0 has found.

    Raises what `build` and the first steps raise, and ForeignCodeError.
    """
    code = AuthorCode(todo.root)
    keep_first = keep if group.rank == 0 else lambda _: None
    with stopwatch.phase(Phase.BUILD), _run_eagerly():
        workload = build()
    passes = Passes(workload.step, code, here, group, watcher, left)
    with stopwatch.phase(Phase.FIRST_STEP), _run_eagerly():
        step_s = max(passes.run() for _ in range(_WARMUP_STEPS))
    instruments = Instruments(left, step_s, group)
    with stopwatch.phase(Phase.COUNTERS):
        with _run_eagerly():
            counts = instruments.take("counts", passes.count, steps=2 * STEPS)
            result = counts or StepProfile(steps=0, absent=instruments.absent.pop("counts"))
            if not result.absent:
                result = _add_times(result, passes, instruments)
        own_code.check(todo)
        if not result.absent and "torch" not in sys.modules:
            result = note_missing(result, "trace", "torch was not imported")
        elif not result.absent:
            # It may crash the process: what was found until here is kept.
            keep_first(note_missing(result, "trace", trace.ENDED))
            result = trace.add_trace(result, passes, todo, stopwatch.folder, instruments)
    with stopwatch.phase(Phase.TEARDOWN):
        if workload.teardown is not None:
            instruments.take("teardown", workload.teardown, steps=0)
        instruments.take("group", group.leave, steps=0)
        own_code.check(todo)
    if not result.absent:
        result = msgspec.structs.replace(result, missing=result.missing | instruments.absent)
    keep_first(result)


def _add_times(result: StepProfile, passes: Passes, instruments: Instruments) -> StepProfile:
    """Add the times of further steps; a pass that fails loses only its own."""
    timed: dict[str, Any] = {
        "step_s": instruments.take("step_s", passes.time_unwatched, steps=1),
        "operators": instruments.take(
            "operators", lambda: passes.time_operators(result.operators), steps=1
        ),
        "functions": instruments.take(
            "functions", lambda: passes.time_functions(result.functions), steps=1
        ),
    }
    known = {name: value for name, value in timed.items() if value is not None}
    return msgspec.structs.replace(result, missing=result.missing | instruments.absent, **known)


@contextlib.contextmanager
def _run_eagerly() -> Iterator[None]:
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

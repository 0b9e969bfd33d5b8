"""Trace some steps with torch.profiler, and read why the device was idle and where time goes.

The last pass of a launch: the profiler has crashed processes, and CUPTI is not to be had
everywhere. What it takes is short of 200,000 events, which a viewer opens and a person reads.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_perf.features.explain.worker import kept_trace, timeline
from ci_perf.features.explain.worker.passes import STEPS, Passes
from ci_perf.measuring.device import CudaDevice
from ci_perf.measuring.instruments import Instruments
from ci_perf.model.explanation import HostTimes, OperatorUse, StepProfile
from ci_perf.model.task import TRACE, Task

MOST_STEPS: Final = 20
MOST_EVENTS: Final = 200_000
# Steps that the profiler skips, and those that it throws away: it is slower at first.
WAIT, WARMUP = 1, 2
# How long tracing may take, and which share of the time that is left to the launch.
_MOST_S: Final = 15.0
_SHARE: Final = 0.4
# To write and to read the events of a step takes as long again as to trace it.
_READING: Final = 2.0
ENDED: Final = (
    "the process ended while torch's profiler ran: it crashed, or the step runs a profiler, too"
)
_NO_DEVICE: Final = (
    "the profiler has seen no work of the GPU: CUPTI is missing or refused "
    "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), or another profiler has it"
)


def add_trace(
    profile: StepProfile, passes: Passes, todo: Task, folder: Path, instruments: Instruments
) -> StepProfile:
    """Return the profile with what a trace of further steps says, or why there is none.

    A trace that is asked for is kept in `folder`. Of several ranks, raises what a step raises.
    """
    traced = instruments.take("trace", lambda: _trace(profile, passes, todo, folder), steps=STEPS)
    if traced is None:
        return note_missing(profile, "trace", instruments.absent["trace"])
    return traced


def note_missing(profile: StepProfile, what: str, why: str) -> StepProfile:
    """Return the profile without something, and why."""
    return msgspec.structs.replace(profile, missing=profile.missing | {what: why})


def _trace(profile: StepProfile, passes: Passes, todo: Task, folder: Path) -> StepProfile:
    """Run steps, the same on all ranks, of which rank 0 is traced. Raises what a step raises."""
    from torch import profiler

    with passes.watcher.marking(passes.here, profiler.record_function):
        passes.run()  # compiles what ran eagerly until here
        step_s = passes.run()
        with _profile_passes(passes, todo):
            pass  # the profiler's own start takes seconds, once
        start = time.monotonic()
        with _profile_passes(passes, todo) as running:
            passes.run()
        traced_s = time.monotonic() - start
        events = len(running.profiler.kineto_results.events()) if running else 0
        may_take_s = min(_MOST_S, _SHARE * passes.left.seconds) - (WAIT + WARMUP) * step_s
        in_time = int(may_take_s / (_READING * traced_s))
        fewest = min(MOST_STEPS, in_time, MOST_EVENTS // max(events, 1))
        steps = round(-passes.group.maximum(-float(max(fewest, 0))))
        if steps == 0:
            why = f"a step of {step_s:.3g} s and {events:,} events is too much to trace"
            return note_missing(profile, "trace", why)
        schedule = profiler.schedule(wait=WAIT, warmup=WARMUP, active=steps, repeat=1)
        with _profile_passes(passes, todo, schedule=schedule) as running:
            for _ in range(WAIT + WARMUP + steps):
                # Waiting after each step would empty the queue, which is what is asked about.
                passes.step()
                if running:
                    running.step()
    passes.here.synchronize()
    if running is None:
        return profile
    missing: dict[str, str] = {}
    if todo.trace_to and (why := _keep(running, folder, todo.root)):
        missing["trace_file"] = why
    host, device = timeline.read_times(running.events(), running.key_averages(), steps)
    if device is None and isinstance(passes.here, CudaDevice):
        missing["device"] = _NO_DEVICE
    return msgspec.structs.replace(
        profile,
        operators=scale_to_trace(profile.operators, host if device else None),
        host=host,
        device=device,
        missing=profile.missing | missing,
    )


def scale_to_trace(uses: Sequence[OperatorUse], host: HostTimes | None) -> tuple[OperatorUse, ...]:
    """Return the operators of a GPU's step with the seconds that device or host work for them.

    The longer of both counts: it is what an operator adds where either limits the step. Without
    times by the trace, they stay as they are.

    Calls were timed one by one, each with a wait for the idle device, which a step does not have.
    The trace has the seconds of each operator, and the calls say how arguments share them.
    """
    traced_s = {
        each.operator: max(each.device_s, each.host_s) for each in (host.operators if host else ())
    }
    timed_s: dict[str, float] = defaultdict(float)
    for use in uses:
        timed_s[use.operator] += use.calls * (use.call_s or 0.0)
    return tuple(
        use
        if use.call_s is None or not traced_s.get(use.operator)
        else msgspec.structs.replace(
            use, call_s=use.call_s * min(1.0, traced_s[use.operator] / timed_s[use.operator])
        )
        for use in uses
    )


@contextlib.contextmanager
def _profile_passes(
    passes: Passes,
    todo: Task,
    schedule: Any = None,  # noqa: ANN401  torch is untyped
) -> Iterator[Any]:
    """Run torch's profiler within; on other ranks than 0 nothing."""
    if passes.group.rank != 0:
        yield None
        return
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if isinstance(passes.here, CudaDevice):
        activities.append(ProfilerActivity.CUDA)
    with profile(
        activities=activities,
        schedule=schedule,
        record_shapes=True,
        profile_memory=bool(todo.trace_to),
    ) as running:
        yield running


def _keep(running: Any, folder: Path, root: str) -> str:  # noqa: ANN401  torch is untyped
    """Keep a trace for people; else return why not."""
    raw, target = folder / "trace.json", folder / TRACE
    try:
        running.export_chrome_trace(str(raw))
        return kept_trace.write(raw, target, root)
    except OSError as error:
        target.unlink(missing_ok=True)
        return f"the trace cannot be kept: {error.strerror}"
    finally:
        raw.unlink(missing_ok=True)

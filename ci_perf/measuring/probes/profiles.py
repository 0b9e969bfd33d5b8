"""Whether torch.profiler sees what runs, and links what runs on a GPU to the host's calls."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ci_perf.measuring.device import Step
from ci_perf.measuring.probes import Bench, CannotTryError
from ci_perf.measuring.probes.steps import warm
from ci_perf.measuring.profiling import device_trace, host_trace, trace_events
from ci_perf.measuring.profiling.trace_events import Events
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure
from ci_perf.model.step_profile import DeviceTimes

_STEPS = 5
_WIDTH = 256


def profiler(bench: Bench) -> Iterator[Figure]:
    """Trace some training steps, and read the trace as `explain` does."""
    step = training(bench)
    warm(bench, step)

    def steps() -> None:
        for _ in range(_STEPS):
            step()

    events = traced(bench, steps)
    operators = sum(map(len, events.operators.values()))
    yield Figure(name="operators", value=operators, unit=Unit.COUNT)
    if bench.is_cpu:
        return
    device = device_trace.digest(events, steps=_STEPS).device
    if device is None:
        raise CannotTryError(f"the trace has no work of the GPU: {NO_CUPTI}")
    yield Figure(name="work", value=device.work * _STEPS, unit=Unit.COUNT)
    yield Figure(name="linked", value=_linked(events), unit=Unit.SHARE)
    yield Figure(name="busy_and_idle_over_span", value=_covered(device))


NO_CUPTI = (
    "CUPTI is missing or refused (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), or another profiler has it"
)


def _linked(events: Events) -> float:
    """Return the share of the GPU's work whose launch lies in an operator."""
    operator_of = host_trace.of(events).operator_of
    return sum(bool(operator_of.get(work.correlation)) for work in events.work) / len(events.work)


def _covered(device: DeviceTimes) -> float:
    return (device.busy_s + sum(part.idle_s for part in device.idle)) / device.span_s


def training(bench: Bench) -> Step:
    """Return a training step of two layers, with fixed seeds; it returns the loss."""
    torch = bench.torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.GELU(), torch.nn.Linear(_WIDTH, 1)
    ).to(bench.name)
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn((_WIDTH, _WIDTH), device=bench.name)

    def step() -> object:
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def traced(bench: Bench, work: Callable[[], object]) -> Events:
    """Return the trace of some work. Raises CannotTryError: the profiler has left none."""
    profiling = bench.torch.profiler
    activities = [profiling.ProfilerActivity.CPU]
    if not bench.is_cpu:
        activities.append(profiling.ProfilerActivity.CUDA)
    with profiling.profile(activities=activities):
        pass  # the profiler's own start takes seconds, once
    with profiling.profile(activities=activities) as running:
        work()
        bench.device.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        running.export_chrome_trace(str(path))
        try:
            return trace_events.read(path.read_bytes())
        except ValueError as error:
            raise CannotTryError(str(error)) from None

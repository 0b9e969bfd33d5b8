"""How often the host waits for the GPU, and what it costs the host to queue work."""

from collections.abc import Iterator

from ci_perf.measuring.device import Block, Step
from ci_perf.measuring.probes import Bench, CannotTryError
from ci_perf.measuring.probes.profiles import NO_CUPTI, traced
from ci_perf.measuring.probes.steps import median, median_s, product, tiny, warm
from ci_perf.measuring.profiling.trace_events import Events, HostSpan
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

_BLOCK = "ci_perf block"
_STEPS = 20
_OPERATORS = 200


def one_wait(bench: Bench) -> Iterator[Figure]:
    """Trace a timed block, and count where the host waits for the GPU."""
    step = tiny(bench, operators=1)
    bench.device.time_block(step, _STEPS)

    def block() -> None:
        with bench.torch.profiler.record_function(_BLOCK):
            bench.device.time_block(step, _STEPS)

    calls = _calls_of_block(traced(bench, block))
    launches = [call for call in calls if "Launch" in call.name]
    if not launches:
        raise CannotTryError(f"the trace has no launch: {NO_CUPTI}")
    waits = [call for call in calls if "Synchronize" in call.name]
    within = [wait for wait in waits if launches[0].start < wait.start < launches[-1].start]
    yield Figure(name="waits", value=len(waits), unit=Unit.COUNT)
    yield Figure(name="waits_within", value=len(within), unit=Unit.COUNT)
    yield Figure(name="launches", value=len(launches), unit=Unit.COUNT)


def _calls_of_block(events: Events) -> list[HostSpan]:
    """Return the calls of the driver within the block: the profiler itself waits after it."""
    (block,) = (span for span in events.annotations if span.name == _BLOCK)
    calls = (call for many in events.calls.values() for call in many)
    return sorted(call for call in calls if block.start <= call.start < block.end)


def issue(bench: Bench) -> Iterator[Figure]:
    """Compare steps that the GPU bounds, that the host bounds, and that wait by themselves."""
    multiply = product(bench)
    last = bench.torch.zeros(1, device=bench.name)

    def with_item() -> None:
        multiply()
        last.item()

    steps = {
        "device_bound": multiply,
        "launch_bound": tiny(bench, _OPERATORS),
        "with_item": with_item,
    }
    for name, step in steps.items():
        count = warm(bench, step)
        yield Figure(name=name, value=_issue_share(bench, step, count), unit=Unit.SHARE)


def _issue_share(bench: Bench, step: Step, count: int) -> float:
    return median(lambda: _issue_s(block := bench.device.time_block(step, count)) / block.step_s)


def _issue_s(block: Block) -> float:
    assert block.issue_s is not None
    return block.issue_s


def cuda_graphs(bench: Bench) -> Iterator[Figure]:
    """Capture a launch-bound step, replay it, and compare numbers and costs with the step."""
    torch = bench.torch
    values = torch.randn(1024, device=bench.name)
    start = values.clone()

    def step() -> None:
        for _ in range(_OPERATORS):
            values.mul_(0.999).add_(0.001)

    replay = _captured(bench, step)
    results = []
    for run in (step, replay):
        values.copy_(start)
        run()
        results.append(values.clone())
    yield Figure(name="differs", value=(results[0] - results[1]).abs().max().item())
    costs = [_costs(bench, run) for run in (step, replay)]
    yield Figure(name="issue_over_eager", value=costs[1][0] / costs[0][0])
    yield Figure(name="step_over_eager", value=costs[1][1] / costs[0][1])


def _captured(bench: Bench, step: Step) -> Step:
    """Return what replays a step; CUDA wants it warm, and on a stream of its own."""
    cuda = bench.torch.cuda
    other = cuda.Stream(bench.name)
    other.wait_stream(cuda.current_stream())
    with cuda.stream(other):
        step()
    cuda.current_stream().wait_stream(other)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        step()
    replay: Step = graph.replay
    return replay


def _costs(bench: Bench, step: Step) -> tuple[float, float]:
    """Return seconds to queue a step, and seconds per step."""
    count = warm(bench, step)
    issue_s = median(lambda: _issue_s(bench.device.time_block(step, count)))
    return issue_s, median_s(bench, step, count)

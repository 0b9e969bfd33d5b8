"""What probes find on simulated streams, where all is well and where it is not."""

import contextlib
import types

import pytest

from ci_perf.judging import proof
from ci_perf.measuring import probes
from ci_perf.measuring.probes import elsewhere, memory, profiles, waiting
from ci_perf.model.proof import Figure, Probed
from tests.fakes.cuda import Cuda, Torch
from tests.probed import a_bench, figures, judged, tried


@pytest.fixture
def without_another_process(monkeypatch):
    """Leave out what a step asks a further process for."""
    answer = Probed(not_tried="no further process here")
    monkeypatch.setattr(elsewhere, "probed", lambda *_, **__: answer)


def test_every_step_of_one_process_has_a_probe_and_every_probe_a_step():
    steps = {step.name for step in proof.STEPS if not step.runs_sessions}
    parts = {"async_peaks", "first_step", "training_losses"}

    assert steps | parts == probes.PROBES.keys()
    for step in probes.PROBES:
        assert callable(probes.of_step(step))


@pytest.mark.parametrize(
    "step", ["events", "harness", "one_wait", "issue", "other_stream", "cuda_graphs"]
)
def test_a_step_holds_where_the_device_does_what_it_should(step):
    assert tried(step).outcome == "held"


def test_events_that_a_slow_clock_times_do_not_hold(monkeypatch):
    torch = Torch()
    bench = a_bench(torch)
    monkeypatch.setattr(torch.cuda, "Event", with_clock(torch.cuda.Event, rate=0.9))

    assert tried("events", bench).outcome == "did_not_hold"


def with_clock(make, rate):
    """Make events whose clock runs at another rate."""

    def event(*, enable_timing):
        made = make(enable_timing=enable_timing)
        elapsed_time = made.elapsed_time
        made.elapsed_time = lambda end: rate * elapsed_time(end)
        return made

    return event


def test_waits_are_counted_at_both_ends_and_within():
    well = figures(tried("one_wait"))
    torch = Torch()
    torch.cuda.blocking = True  # as CUDA_LAUNCH_BLOCKING=1 has it
    blocking = tried("one_wait", a_bench(torch))

    assert (well["waits"], well["waits_within"], well["launches"]) == (2, 0, 20)
    assert blocking.outcome == "did_not_hold"
    assert figures(blocking)["waits_within"] == 19


def test_without_cupti_waits_cannot_be_counted():
    torch = Torch()
    torch.profiler.is_refused = True
    step = tried("one_wait", a_bench(torch))

    assert step.outcome == "not_tried"
    assert "CUPTI is missing or refused" in step.detail


def test_launches_that_wait_make_every_step_look_launch_bound():
    torch = Torch()
    torch.cuda.blocking = True

    assert figures(tried("issue", a_bench(torch)))["device_bound"] > 0.9


def test_a_graph_that_computes_other_numbers_does_not_hold(monkeypatch):
    captured = waiting._captured

    def wrong(bench, step):
        replay = captured(bench, step)
        return lambda: (replay(), step())

    monkeypatch.setattr(waiting, "_captured", wrong)

    assert figures(tried("cuda_graphs"))["differs"] > 0


@pytest.mark.usefixtures("without_another_process")
def test_peaks_are_those_of_the_known_allocations():
    step = tried("allocator", a_bench(Torch(counts_memory=True)))

    assert step.outcome == "held"
    assert (figures(step)["allocated"], figures(step)["reserved"]) == (1, 1)
    assert step.detail == "the other allocator was not asked: no further process here"


@pytest.mark.usefixtures("without_another_process")
def test_an_allocator_that_does_not_count_has_no_known_peaks(monkeypatch):
    torch = Torch(Cuda(allocator="cudaMallocAsync"), counts_memory=True)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _device: {"allocated_bytes.all.peak": 0})

    step = tried("allocator", a_bench(torch))

    assert step.outcome == "not_tried"
    assert "the allocator does not count peak_allocated_bytes" in step.detail


def test_zeros_of_the_other_allocator_are_counted_as_absent(monkeypatch):
    torch = Torch(Cuda(allocator="cudaMallocAsync"), counts_memory=True)
    stats = {"allocated_bytes.all.peak": 2**26, "active_bytes.all.peak": 0}
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _device: stats)
    counts = {figure.name: figure.value for figure in memory.async_peaks(a_bench(torch))}

    assert counts == {"async_zeros": 0, "async_absent": 2}


def test_an_allocator_that_was_not_taken_says_so():
    with pytest.raises(probes.CannotTryError, match="torch uses native"):
        list(memory.async_peaks(a_bench()))


def test_memory_that_runs_out_is_counted_and_free_again():
    step = tried("out_of_memory", a_bench(Torch(counts_memory=True)))

    assert step.outcome == "held"
    assert (figures(step)["raised"], figures(step)["left"]) == (1, 0)


def test_memory_that_never_runs_out_does_not_hold():
    step = tried("out_of_memory", a_bench(Torch(counts_memory=False)))

    assert (step.outcome, figures(step)["raised"]) == ("did_not_hold", 0)


def test_a_snapshot_holds_the_known_allocation():
    size = memory._KNOWN[0]
    traces = [[{"action": "alloc", "size": size}, {"action": "free_completed", "size": size}]]
    assert tried("memory_snapshot", a_bench(with_snapshot(traces))).outcome == "held"
    assert tried("memory_snapshot", a_bench(with_snapshot([[]]))).outcome == "did_not_hold"


def with_snapshot(traces):
    torch = Torch()
    torch.cuda.memory = types.SimpleNamespace(
        _record_memory_history=lambda *_, **__: None,
        _snapshot=lambda: {"device_traces": traces, "segments": []},
    )
    return torch


def test_rates_are_held_against_the_peaks_of_a_known_gpu():
    step = tried("throughput")

    assert step.outcome == "held"
    assert figures(step)["tf32_of_peak"] == pytest.approx(400 / 494.7, rel=0.01)
    assert figures(step)["autocast_over_bf16"] == pytest.approx(1, rel=0.01)


def test_a_rate_above_the_peak_does_not_hold():
    assert tried("throughput", a_bench(Torch(fp32=80e12))).outcome == "did_not_hold"


def test_an_unknown_gpu_has_rates_and_no_peaks():
    torch = Torch()
    torch.cuda.name = "NVIDIA of tomorrow"
    step = tried("throughput", a_bench(torch))

    assert step.outcome == "held"
    assert "fp16" in figures(step)
    assert not [name for name in figures(step) if name.endswith("_of_peak")]


def test_autocast_that_does_nothing_does_not_hold(monkeypatch):
    torch = Torch()
    monkeypatch.setattr(torch, "autocast", lambda _, *, dtype: contextlib.nullcontext(dtype))

    assert figures(tried("throughput", a_bench(torch)))["autocast_is_bf16"] == 0


def test_canaries_that_a_load_does_not_move_hold():
    torch = Torch(Cuda(launch_ns=50_000))
    torch.ones_gain = 1.15
    step = tried("canary_power", a_bench(torch))

    assert step.outcome == "held"
    assert figures(step)["random_over_ones"] == pytest.approx(1.15, rel=0.01)


def test_a_gpu_that_heat_slows_does_not_hold():
    torch = Torch(Cuda(launch_ns=50_000))
    torch.slowdown = lambda: 1.1 if torch.cuda.now > 10e9 else 1.0

    assert figures(tried("canary_power", a_bench(torch)))["matmul_random_after_load"] > 1.05


def test_work_of_a_trace_is_linked_to_operators(monkeypatch):
    monkeypatch.setattr(profiles, "training", bench_step)
    step = tried("profiler")

    assert step.outcome == "held"
    assert (figures(step)["linked"], figures(step)["work"]) == (1, 5)


def bench_step(bench):
    number = bench.torch.zeros(1, device=bench.name)
    return lambda: number.add_(1)


def test_a_trace_without_work_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(profiles, "training", bench_step)
    torch = Torch()
    torch.profiler.is_refused = True
    step = tried("profiler", a_bench(torch))

    assert step.outcome == "not_tried"
    assert step.detail.startswith("the trace has no work of the GPU: CUPTI is missing")


def test_a_figure_that_counts_only_if_known_may_lack():
    with_peak = Probed(
        figures=(
            Figure(name="autocast_is_bf16", value=1),
            Figure(name="fp32_of_peak", value=1.5),
        )
    )
    without = Probed(figures=with_peak.figures[:1])

    assert judged("throughput", with_peak).outcome == "did_not_hold"
    assert judged("throughput", without).outcome == "held"

"""What a step made an H100 do, in traces that torch 2.11 recorded there, cut to what is read."""

import copy
import json
from pathlib import Path

import pytest
import torch

from ci_perf.measuring import device_work
from ci_perf.measuring.device import Device
from ci_perf.model.process import Copies

TRACES = Path(__file__).parent / "traces"


def read_events(name):
    return json.loads((TRACES / f"h100_{name}.json").read_text())["traceEvents"]


@pytest.fixture
def training():
    """A step that copies a batch, trains a perceptron with AdamW and reads the loss."""
    return read_events("eager")


def within(events, end):
    """The same events, with the mark of a step that ends at this call of the runtime."""
    last = next(event for event in reversed(events) if event["name"] == end)
    mark = {"ph": "X", "cat": "user_annotation", "name": device_work._STEP, "ts": 0, "args": {}}
    gpu = {**mark, "cat": "gpu_user_annotation", "dur": 1}
    return [gpu, {**mark, "dur": last["ts"]}, *events]


def test_a_training_step_has_its_kernels_copies_and_waits(training):
    work = device_work.count_events(within(training, "cudaStreamSynchronize"))

    assert work.launched == sum(kernel.count for kernel in work.kernels) == 27
    assert work.copies == {"HtoD": Copies(count=1, bytes=65_536), "DtoH": Copies(count=1, bytes=4)}
    assert (work.graph_replays, work.spills, work.absent) == (0, None, "")
    assert work.host_waits == 2  # for the copy from pageable memory, and for the loss
    assert any("multi_tensor_apply" in kernel.name for kernel in work.kernels)


def test_what_comes_after_the_step_is_not_its_wait(training):
    whole = device_work.count_events(training)
    step = device_work.count_events(within(training, "cudaStreamSynchronize"))

    assert whole.host_waits - step.host_waits == 2  # the profiler's
    assert whole.launched == step.launched


def test_a_replayed_graph_counts_with_its_kernels():
    work = device_work.count_events(read_events("graph"))

    assert (work.graph_replays, work.launched) == (1, 10)


def test_the_sequence_tells_order_and_shape_and_no_number_of_a_stream(training):
    kernels = [event for event in training if event["cat"] == "kernel"]
    other_stream, other_grid = copy.deepcopy(kernels), copy.deepcopy(kernels)
    for event in other_stream:
        event["args"]["stream"] += 13
    other_grid[-1]["args"]["grid"][0] += 1
    digest = device_work.count_events(kernels).sequence

    assert device_work.count_events(reversed(kernels)).sequence == digest
    assert device_work.count_events(other_stream).sequence == digest
    assert device_work.count_events(other_grid).sequence != digest
    assert device_work.count_events(kernels[1:]).sequence != digest


def test_a_trace_without_kernels_says_so(training):
    calls = [event for event in training if event["cat"] != "kernel"]

    assert "saw no kernel" in device_work.count_events(calls).absent


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_where_the_profiler_sees_no_gpu_the_reason_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    calls = []

    work = device_work.record_device_work(lambda: calls.append(torch.ones(3).sum()), Device())

    assert len(calls) == 1
    assert work is not None
    assert "saw no kernel" in work.absent


def test_a_cpu_has_none():
    assert device_work.record_device_work(lambda: None, Device()) is None

"""The instruments of one process, held against torch itself."""

import math
import subprocess
import sys
import time
import warnings

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ci_perf.measuring import counters, fingerprint
from ci_perf.measuring.device import Device
from ci_perf.measuring.step_phases import Watcher
from ci_perf.measuring.user_code import WorkloadError
from ci_perf.workload import Workload

CPU = Device()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def training_step(model, batch=8):
    inputs = torch.randn(batch, 64)

    def step():
        model(inputs).square().mean().backward()

    return step


def test_flops_are_two_per_multiplication_forward_and_backward(model):
    work = counters.count_work(training_step(model), CPU, None)

    # The gradient of the input is needed by every layer but the first.
    first, second = 2 * 8 * 64 * 32, 2 * 8 * 32 * 10
    assert work.flops == 2 * first + 3 * second


@pytest.mark.parametrize("is_training", [False, True])
def test_fused_attention_on_a_cpu_counts_as_the_products_that_it_is_made_of(is_training):
    query, key, value = (torch.randn(2, 4, 64, 16, requires_grad=is_training) for _ in range(3))

    def fused():
        return nn.functional.scaled_dot_product_attention(query, key, value)

    def by_products():
        return (query @ key.transpose(-1, -2) / 4).softmax(-1) @ value

    def trained(attention):
        return (lambda: attention().sum().backward()) if is_training else attention

    found, expected = (
        counters.count_work(trained(each), CPU, None).flops or 0 for each in (fused, by_products)
    )

    # The fused backward pass computes the scores once more.
    recomputed = 2 * 2 * 4 * 64 * 64 * 16
    assert found == expected + recomputed * is_training > 0


def test_operators_are_counted_once_each():
    numbers = torch.ones(3)

    work = counters.count_work(lambda: numbers.add(1).mul(2).sum(), CPU, 7)

    assert (work.operators, work.flops, work.parameters, work.absent) == (3, 0, 7, "")


def test_a_compiled_step_profile_as_the_program_it_was_compiled_from(model):
    step = training_step(model)
    compiled = training_step(torch.compile(model, backend="aot_eager"))
    compiled()

    eager, found = counters.count_work(step, CPU, None), counters.count_work(compiled, CPU, None)

    assert (found.operators, found.flops) == (eager.operators, eager.flops)


def test_a_step_of_a_gpu_that_calls_no_operator_has_no_counts(monkeypatch):
    nothing = counters.count_work(lambda: None, CPU, 7)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    replayed = counters.count_work(lambda: None, CPU, 7)

    assert (nothing.operators, nothing.flops) == (0, 0)
    assert (replayed.operators, replayed.flops, replayed.parameters) == (None, None, 7)
    assert "CUDA graph" in replayed.absent


def test_a_step_that_cannot_be_watched_has_no_counts_and_a_reason():
    def step():
        raise RuntimeError("not under a mode")

    work = counters.count_work(step, CPU, 7)

    assert (work.operators, work.flops, work.parameters) == (None, None, 7)
    assert work.absent == "RuntimeError: not under a mode"


def test_a_named_part_breaks_no_graph_and_the_watching_does_not_time_a_compilation():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    watcher = Watcher()

    @torch.compile(backend="eager")
    def compiled(tensor):
        with watcher.phase("forward"):
            return tensor * 2

    numbers = torch.ones(3)
    for _ in range(3):
        compiled(numbers)
    found = counters.count_compiles("empty")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dynamo says that it cannot trace a clock
        parts = watcher.watch(CPU, lambda: compiled(numbers), 4)

    assert (found.graphs, found.graph_breaks, found.recompiles) == (1, 0, 0)
    assert parts is not None
    # Nearly all of the pass is the compilation, which is none of the four steps.
    assert 4 * parts.step_s < 0.5 * (time.perf_counter() - start)


def test_a_checksum_is_the_mean_size_and_a_mean_weighted_by_place():
    size, places = fingerprint.checksums(torch.tensor([1.0, -2.0]))

    assert size == pytest.approx(1.5)
    assert places == pytest.approx((1.0 - 2.0 * math.cos(1)) / 2)


def test_a_large_tensor_sums_up_as_if_it_were_taken_at_once():
    large = torch.randn(300_000, dtype=torch.float64)

    size, places = fingerprint.checksums(large)

    weights = torch.arange(300_000).double().cos()
    assert size == pytest.approx(float(large.abs().mean()))
    assert places == pytest.approx(float((large * weights).mean()))


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, dtype=torch.bool),
        torch.ones(2, dtype=torch.complex64),
        torch.ones(2).to_sparse(),
        torch.ones(0),
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        [1.0, torch.ones(2)],
        {"a": (torch.ones(1),), "b": None},
    ],
    ids=lambda output: type(output).__name__,
)
def test_whatever_holds_tensors_has_finite_checksums(output):
    assert all(math.isfinite(value) for value in fingerprint.checksums(output))


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (torch.tensor([math.nan]), "checksum of tensor 0 of output: expected a finite number"),
        ([torch.ones(1), object()], "output: expected tensors, numbers, .*, found object"),
        ([torch.ones(1)] * 101, "expected at most 100 tensors"),
    ],
)
def test_an_output_that_is_no_result_is_refused(output, reason):
    with pytest.raises(WorkloadError, match=reason):
        fingerprint.checksums(output)


def test_a_fingerprint_has_the_first_losses_and_the_output_after_them():
    values = iter([3.0, 2.0, 1.0])
    latest = [next(values)]

    def step():
        latest[0] = next(values)

    workload = Workload(step=step, loss=lambda: latest[0], output=lambda: latest[0] * 2)

    found = fingerprint.take(workload, CPU, 3)

    assert found.losses == (3.0, 2.0, 1.0)
    assert found.checksums == (2.0, 2.0)


def test_no_steps_mean_no_fingerprint():
    workload = Workload(step=lambda: None, loss=lambda: 1.0, varies="atomics")

    found = fingerprint.take(workload, CPU, 0)

    assert (found.losses, found.checksums, found.varies) == ((), (), "atomics")


@pytest.mark.parametrize("grad", [True, False])
def test_flops_are_those_that_torch_counts_itself(model, grad):
    inputs = torch.randn(8, 64)

    def step():
        with torch.set_grad_enabled(grad):
            torch.nn.functional.scaled_dot_product_attention(*[model(inputs)[None, None]] * 3)

    with FlopCounterMode(display=False) as theirs:
        step()

    assert counters.count_work(step, CPU, None).flops == theirs.get_total_flops() > 0


def test_inference_mode_hides_no_part_of_a_composite_operator(model):
    inputs = torch.randn(8, 64)

    def step():
        model(inputs)

    with torch.inference_mode():
        found = counters.count_work(step, CPU, None)
    with torch.no_grad():
        expected = counters.count_work(step, CPU, None)

    assert found == expected


def test_profiling_does_not_import_the_compiler():
    code = """
import sys, torch
from ci_perf.measuring import counters
from ci_perf.measuring.device import Device
ones = torch.ones(3, 3)
assert counters.count_work(lambda: ones @ ones, Device(), None).flops == 54
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )

    assert done.stdout == "False\n"

"""What a launch that counts finds in a step, for real: small workloads, one process each."""

import dataclasses

import msgspec
import pytest

from ci_perf.model.explanation import StepProfile
from tests import profiled
from tests.launches import BUILD, HEAD, result_of

TRAINING = """
import random
import torch
from torch.utils.checkpoint import checkpoint
from ci_perf.workload import Workload

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, values):
        return self.activate(self.linear(values))
    def activate(self, values):
        return Double.apply(values.sin())

def again(values):
    return values.tanh()

def one_by_one(values):
    at = random.randrange(3)
    return sum([row.cos() for row in values[at:at + 1]])

def by_chance():
    return torch.ones(random.randrange(1, 10**6))

def compiled(values):
    return values.exp()

def build(context):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)
    inputs = torch.ones(3, 4)
    fast = torch.compile(compiled, backend="aot_eager")
    fast(inputs)  # which would compile it for a minute
    def step():
        with context.phase("forward"):
            output = fast(checkpoint(again, net(inputs), use_reentrant=False))
            by_chance()
            one_by_one(inputs)
        output.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return Workload(step=step)
"""
PLAIN = """
def helper(number):
    return [str(number) for _ in range(2)]
def step():
    for number in range(3):
        helper(number)
    sorted([3, 1, 2], key=lambda number: -number)
"""


@pytest.fixture
def launch(tmp_path):
    """Launch a workload that consists of this source, to profile it."""
    return profiled.launcher(tmp_path / "repository")


@dataclasses.dataclass
class Calls:
    """The counts by operator, function and direction."""

    counts: StepProfile

    def of(self, operator, function, *, backward=False):
        return sum(
            use.calls
            for use in self.counts.operators
            if use.operator == operator
            and use.is_backward == backward
            and (use.caller.function if use.caller else "") == function
        )


def test_operators_belong_to_the_function_of_their_forward_line_and_launches_agree(launch):
    counts = result_of(launch(TRAINING))
    calls = Calls(counts)

    assert (counts.steps, counts.absent, counts.cut, counts.missing) == (2, "", 0, {})
    assert calls.of("aten::addmm", "Net.forward") == 1
    assert calls.of("aten::mm", "Net.forward", backward=True) == 1
    assert calls.of("aten::sin", "Net.activate") == 1
    assert calls.of("aten::cos", "Net.activate", backward=True) == 1
    assert calls.of("aten::mul", "Double.forward") == 1
    assert calls.of("aten::mul", "Double.backward", backward=True) == 1
    # The checkpoint computes it again in the backward pass.
    assert calls.of("aten::tanh", "again") == calls.of("aten::tanh", "again", backward=True) == 1
    assert calls.of("aten::exp", "compiled") == 1
    # Of the function around the comprehension; the position of a slice says nothing.
    assert calls.of("aten::cos", "one_by_one") == calls.of("aten::slice", "one_by_one") == 1
    assert calls.of("aten::_foreach_add_", "build.<locals>.step") == 1
    ((operator, function),) = [(each.operator, each.caller.function) for each in counts.varies]
    assert (operator, function) == ("aten::ones", "by_chance")
    sin = next(use for use in counts.operators if use.operator == "aten::sin")
    assert (sin.arguments, sin.caller.file) == ("float32[3,4]", "it.py")
    lines = TRAINING.splitlines()
    assert "sin()" in lines[sin.line - 1]
    assert "def activate" in lines[sin.caller.line - 1]
    by_function = {use.function.function: use.calls for use in counts.functions}
    assert (by_function["again"], by_function["Net.forward"]) == (2, 1)
    again = result_of(launch(TRAINING))
    assert [(use.function, use.calls) for use in again.functions] == [
        (use.function, use.calls) for use in counts.functions
    ]
    assert [msgspec.structs.replace(use, call_s=None) for use in again.operators] == [
        msgspec.structs.replace(use, call_s=None) for use in counts.operators
    ]


def test_in_inference_mode_the_same_operators_are_counted_as_in_the_metric(launch):
    source = f"""{HEAD}
import torch
weight, x = torch.ones(4, 3), torch.ones(2, 3)
@torch.inference_mode()
def step():
    product = torch.nn.functional.linear(x, weight)
    torch.nn.functional.dropout(product, training=False).matmul(weight)
{BUILD}"""

    counts = result_of(launch(source))
    work = result_of(launch(source, profile=False)).process.work

    operators = {use.operator for use in counts.operators}
    assert "aten::mm" in operators
    assert not operators & {"aten::linear", "aten::matmul", "aten::dropout"}
    assert sum(use.calls for use in counts.operators) == work.operators


def test_without_torch_functions_of_the_repository_are_counted_alone(launch):
    counts = result_of(launch(HEAD + PLAIN + BUILD))

    assert counts.operators == ()
    calls = {use.function.function: use.calls for use in counts.functions}
    assert (calls["step"], calls["helper"], calls["step.<locals>.<lambda>"]) == (1, 3, 3)
    assert "build" not in calls


def test_ranks_count_together_and_the_first_one_tells(launch):
    source = f"""{HEAD}
import torch
from torch import distributed
def build(context):
    def step():
        if context.rank:
            sum(range(300_000))
        distributed.all_reduce(torch.ones(4))
    return Workload(step=step)
"""

    profile = result_of(launch(source, launch="torchrun", world_size=2))

    assert {use.operator for use in profile.operators} == {"aten::ones", "c10d::allreduce_"}
    assert all(use.call_s for use in profile.operators)
    assert [use.function.function for use in profile.functions if use.own_s is not None] == [
        "build.<locals>.step"
    ]
    assert profile.missing == {}


def test_a_launch_that_is_timed_does_not_load_what_counts(launch, tmp_path):
    seen = tmp_path / "modules"
    source = f"""{HEAD}
import sys
def step():
    with open({str(seen)!r}, "w") as file: file.write(" ".join(sys.modules))
{BUILD}"""

    result_of(launch(source))
    assert "ci_perf.features.explain.worker" in seen.read_text().split()
    result_of(launch(source, profile=False))
    assert "ci_perf.features.explain.worker" not in seen.read_text()

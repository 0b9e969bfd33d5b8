"""Graph breaks are counted where torch's own `explain` finds them, with their file and line."""

import logging
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import _dynamo

from ci_perf.measuring import counters


@_dynamo.disable
def helper(tensor):
    return tensor + 5


def branch(tensor):
    return tensor * 2 if tensor.sum() > 0 else tensor


def unbroken(tensor):
    return tensor * 2 + 1


def in_a_branch(tensor):
    tensor = tensor + 1
    if tensor.sum() > 0:  # the break
        tensor = tensor * 2
    return tensor - 1


def in_a_condition_of_a_loop(tensor):
    while tensor.sum() < 10:  # the break
        tensor = tensor + 1
    return tensor


def in_a_call_that_branches(tensor):
    tensor = tensor + 1
    tensor = branch(tensor)
    return tensor - 1


def on_request(tensor):
    tensor = tensor * 2
    _dynamo.graph_break()  # the break
    return tensor + 1


def at_a_number(tensor):
    tensor = tensor * 2
    return tensor * int(tensor.sum().item())  # the break


def at_a_function_that_is_not_compiled(tensor):
    tensor = tensor * 2
    tensor = helper(tensor)  # the break
    return tensor + 1


def in_a_loop(tensor):
    for _ in range(3):
        tensor = tensor + 1
        _dynamo.graph_break()  # the break
    return tensor


def in_a_guarded_block(tensor):
    try:
        if tensor.sum() > 0:  # the break
            tensor = tensor * 2
    except ValueError:
        tensor = tensor + 1
    return tensor


BREAKS = [
    in_a_branch,
    in_a_condition_of_a_loop,
    on_request,
    at_a_number,
    at_a_function_that_is_not_compiled,
]


@pytest.fixture(autouse=True)
def fresh_dynamo():
    logging.disable(logging.WARNING)  # dynamo tells of each break in a paragraph
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forget()
        yield
        forget()
    logging.disable(logging.NOTSET)


def forget():
    _dynamo.reset()
    _dynamo.utils.counters.clear()
    _dynamo.utils.clear_compilation_metrics()


def counted(function):
    """Return what is counted of three calls; only the first compiles."""
    compiled = torch.compile(function, backend="eager")
    for _ in range(3):
        compiled(torch.ones(3))
    return counters.count_compiles("empty")


def place(function):
    """Return the file and line of a function that end in "# the break"."""
    code = function.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    first = code.co_firstlineno
    marked = (n for n, line in enumerate(lines, 1) if n > first and "# the break" in line)
    return f"tests/integration/test_graph_breaks.py:{next(marked)}: "


@pytest.mark.parametrize("function", [*BREAKS, in_a_call_that_branches, unbroken])
def test_as_many_breaks_are_counted_as_torch_explains_each_with_its_file_and_line(function):
    found = counted(function)
    explained = _dynamo.explain(function)(torch.ones(3))

    assert found.graph_breaks == len(explained.break_reasons)
    assert found.graphs == explained.graph_count
    if function in BREAKS:
        (reason,) = found.break_reasons
        assert reason.startswith(place(function))
        if function is in_a_branch:
            words = "a branch depends on the values of a tensor (generic_jump TensorVariable())"
            assert reason.endswith(f": {words}")


@pytest.mark.parametrize("function", [in_a_loop, in_a_guarded_block])
def test_a_function_that_is_not_compiled_at_all_counts_as_a_break(function):
    """`explain` knows neither graphs nor breaks of it."""
    found = counted(function)

    assert (found.graphs, found.graph_breaks) == (0, 1)
    assert found.break_reasons[0].startswith(place(function))
    assert found.break_reasons[0].endswith("; the whole function runs in Python")


def test_records_of_another_version_of_torch_count_without_a_place(monkeypatch):
    dynamo = SimpleNamespace(
        graph_break_reasons=[SimpleNamespace(reason="generic_jump", user_stack=[])],
        get_compilation_metrics=lambda: [SimpleNamespace()],
        counters={"stats": {"unique_graphs": 0}},
    )
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", dynamo)

    counts = counters.count_compiles("empty")

    assert (counts.graph_breaks, counts.recompiles) == (1, 0)
    assert counts.break_reasons[0].startswith("a branch depends on")


def test_a_file_of_a_package_is_named_without_the_folder_of_installed_packages():
    path = "/opt/venv/lib/python3.12/site-packages/transformers/models/bert.py"

    assert counters._short_path(path) == "transformers/models/bert.py"

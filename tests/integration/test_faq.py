"""The Python in docs/faq.md runs as it is printed, after the session by hand of the guide."""

import ast
import json
import operator
import re
from pathlib import Path

import pytest
import torch

from tests.processes import run_python

DOCS = Path(__file__).parents[2] / "docs"


def find_block(document, part):
    """Return the block of Python that has this part."""
    text = (DOCS / document).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return next(block for block in blocks if part in block)


WORKLOAD = find_block("workloads.md", "def build(")
BY_HAND = find_block("workloads.md", "import attention\n")
ANSWER = find_block("faq.md", "torch.profiler.profile(")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_the_answer_records_stacks_and_memory(tmp_path, device):
    (tmp_path / "attention.py").write_text(WORKLOAD)
    session = BY_HAND.replace('"cpu"', f'"{device}"') + ANSWER

    done = run_python("-c", session, cwd=tmp_path, PYTHONPATH=str(tmp_path))

    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "stacks.json").read_text())["traceEvents"]
    names = {event["name"] for event in events}
    line = 1 + next(i for i, text in enumerate(WORKLOAD.splitlines()) if "step=" in text)
    assert {"aten::scaled_dot_product_attention", "[memory]"} <= names
    assert any(name.endswith(f"attention.py({line}): <lambda>") for name in names)
    has_cuda = torch.cuda.is_available()
    assert ("no CUDA" in done.stdout) is not has_cuda
    assert ("PyTorch CUDA memory summary" in done.stdout) is has_cuda
    assert (tmp_path / "memory.pickle").exists() is has_cuda


def test_torch_has_each_function_of_cuda_that_the_answer_calls():
    calls = [node.func for node in ast.walk(ast.parse(ANSWER)) if isinstance(node, ast.Call)]
    names = [name for name in map(ast.unparse, calls) if name.startswith("torch.cuda.")]

    assert names
    assert all(callable(operator.attrgetter(name.removeprefix("torch."))(torch)) for name in names)

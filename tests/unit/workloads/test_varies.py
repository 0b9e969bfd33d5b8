"""Training says why its numbers vary on a GPU, or has no operator that adds up in any order."""

import ast

import pytest

from tests.ranks import WORKLOADS

# Matrix products and element-wise operators, whose backward passes add up in a fixed order.
FIXED_ORDER = {"mlp_mnist_train"}


def calls(name):
    """Return the calls in a workload file, by the name of what is called."""
    tree = ast.parse((WORKLOADS / f"{name}.py").read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func).rpartition(".")[2], node) for node in found]


def trains(path):
    return any(name in {"backward", "training"} for name, _ in calls(path.stem))


TRAINING = sorted(
    path.stem for path in WORKLOADS.glob("*.py") if path.name[0] != "_" and trains(path)
)


def test_the_training_workloads_are_known():
    assert "bert_base_finetune" in TRAINING
    assert FIXED_ORDER.issubset(TRAINING)


@pytest.mark.parametrize("workload", TRAINING)
def test_a_training_workload_says_why_its_numbers_vary_on_a_gpu(workload):
    (made,) = [node for name, node in calls(workload) if name in {"Workload", "training"}]
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in made.keywords}

    if workload in FIXED_ORDER:
        assert "varies" not in given
    else:
        assert given["varies"].endswith(" if device.type == 'cuda' else ''")

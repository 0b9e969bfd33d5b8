"""The fine-tuning workload in one process; what its ranks do is in test_ranks.py."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.processes import run_python

ROOT = Path(__file__).parents[2]

# Builds each of the variants and takes some steps, or tells what was wrong.
SOURCE = """
import contextlib, json, sys, torch
import bert_base_finetune
from ci_perf.workload import Context
torch.set_num_threads(1)
def tried(parameters, rank=0, world_size=1, seed=0):
    torch.manual_seed(seed)
    entered = []
    context = Context(
        device="cpu", parameters={"model": "tiny", "batch": 2, "seq": 8, **parameters},
        seed=seed, data_dir="", rank=rank, world_size=world_size,
        phase=lambda name: entered.append(name) or contextlib.nullcontext(),
    )
    try:
        workload = bert_base_finetune.build(context)
    except ValueError as error:
        return {"error": str(error)}
    losses = []
    for _ in range(12):
        workload.step()
        losses.append(workload.loss())
    return {
        "losses": losses, "phases": entered[:5],
        "all phases": entered[: len(entered) // 12], "shape": list(workload.output().shape),
        "items": workload.items_per_step, "unit": workload.item_unit,
        "epoch": workload.items_per_epoch,
        "precision": workload.precision, "parameters": workload.parameter_count,
    }
print(json.dumps({name: tried(**given) for name, given in json.loads(sys.argv[1]).items()}))
"""
VARIANTS = {
    "single": {"parameters": {}},
    "again": {"parameters": {}},
    "another seed": {"parameters": {}, "seed": 1},
    "bf16": {"parameters": {"amp": "bf16"}},
    "fp16": {"parameters": {"amp": "fp16"}},
    "compiled": {"parameters": {"compile": "aot_eager"}},
    "accumulated": {"parameters": {"gradient_accumulation": 3}},
    "fsdp alone": {"parameters": {"strategy": "fsdp"}},
    "ddp alone": {"parameters": {"strategy": "ddp"}},
    "data_parallel": {"parameters": {"strategy": "data_parallel", "world_size": 2}},
    "single of two": {"parameters": {"world_size": 2}, "world_size": 2},
    "two devices": {"parameters": {"world_size": 2}},
    "no such": {"parameters": {"strategy": "pipeline"}},
}


@pytest.fixture(scope="module")
def seen():
    """What one process saw of every variant, with warnings as errors."""
    done = run_python(
        *("-W", "error", "-c", SOURCE, json.dumps(VARIANTS)),
        PYTHONPATH=os.pathsep.join([str(ROOT / "workloads"), str(ROOT)]),
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_step_learns_from_its_samples_by_its_seed(seen):
    losses = seen["single"]["losses"]

    assert sum(losses[-4:]) < sum(losses[:4])  # the same four batches, again and again
    assert seen["again"]["losses"] == losses
    assert seen["another seed"]["losses"] != losses
    assert seen["compiled"]["losses"] == pytest.approx(losses, rel=1e-3)


def test_the_workload_says_what_it_is(seen):
    found = seen["single"]

    assert (found["items"], found["unit"], found["shape"]) == (2, "sample", [2, 2])
    assert found["phases"] == ["data", "h2d", "forward", "backward", "optimizer"]
    assert found["epoch"] == 67_349
    assert 500_000 < found["parameters"] < 1_000_000


def test_mixed_precision_is_named_and_rounds_the_losses(seen):
    for amp in ("bf16", "fp16"):
        exact, rounded = seen["single"], seen[amp]

        assert (exact["precision"], rounded["precision"]) == ("fp32", amp)
        assert rounded["losses"][0] != exact["losses"][0]
        assert rounded["losses"][0] == pytest.approx(exact["losses"][0], rel=0.1)


def test_a_step_that_accumulates_gradients_takes_several_batches_and_updates_once(seen):
    found = seen["accumulated"]

    assert found["items"] == 3 * 2
    assert found["all phases"] == [*3 * ["data", "h2d", "forward", "backward"], "optimizer"]


REFUSED = {
    "ddp alone": 'expected ranks that torchrun started, .* set `launch = "torchrun"`',
    "fsdp alone": "strategy 'fsdp': expected ranks that torchrun started",
    "data_parallel": "strategy 'data_parallel': expected CUDA devices, found 'cpu'",
    "single of two": "expected a process of its own, found 2 ranks; take 'ddp' or 'fsdp'",
    "two devices": "expected world_size = 1, the number of ranks here, found 2",
    "no such": "'strategy': expected one of 'single', 'ddp', 'fsdp', 'data_parallel', found 'pipe",
}


def test_a_strategy_that_cannot_work_is_refused_with_what_to_do(seen):
    for variant, words in REFUSED.items():
        assert re.search(words, seen[variant]["error"]), variant

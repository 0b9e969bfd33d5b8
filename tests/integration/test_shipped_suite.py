"""What the shipped suite says of itself, and what its workloads refuse: nothing is stepped."""

import importlib
import os
import re
from pathlib import Path

import pytest

import _parameters
import dataloader_pipeline
import gpt_decode
from ci_perf import suite
from ci_perf.workload import Context
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
FILES = sorted(file for file in WORKLOADS.glob("*.py") if not file.name.startswith("_"))
SUITES = {
    name: suite.plan(WORKLOADS, name, root=ROOT).workloads for name in suite.load(WORKLOADS).suites
}
LARGER = [workload for name in SUITES if name != "smoke" for workload in SUITES[name]]
# Too large for a CPU in any form that would still be this workload.
GPU_ONLY = {"resnet50_imagenet_train"}
# Another transformer that trains, after BERT: smoke and its baselines need no second one.
STANDARD_ONLY = {"vit_base_imagenet_train"}
# Only ci_perf's own pull requests are judged by it.
SELF_ONLY = {"ci_perf_commands"}


def test_every_workload_says_what_it_does_and_is_in_the_suites():
    """All are in a suite for GPUs, and nearly all in smoke."""
    names = {file.stem for file in FILES}

    assert all(re.fullmatch(r".{30,}\.", suite.describe(file)) for file in FILES)
    assert {Path(workload.file).stem for workload in LARGER} == names
    assert {
        Path(workload.file).stem for workload in SUITES["smoke"]
    } == names - GPU_ONLY - STANDARD_ONLY - SELF_ONLY


def test_listing_the_suite_imports_neither_a_workload_nor_torch():
    code = (
        "import sys; from pathlib import Path; from ci_perf import suite;"
        f"suite.plan(Path({str(WORKLOADS)!r}), 'standard', root=Path('.'));"
        "print(*sorted(sys.modules))"
    )
    paths = os.pathsep.join([str(WORKLOADS), str(ROOT)])
    imported = set(run_python("-c", code, PYTHONPATH=paths).stdout.split())

    assert "ci_perf.suite" in imported
    assert not imported & {"torch", "transformers", "numpy", *(file.stem for file in FILES)}


def test_the_parameters_of_the_larger_suites_are_accepted():
    for workload in LARGER:
        module = importlib.import_module(Path(workload.file).stem)
        read = _parameters.read(workload.parameters, module.Parameters)

        assert {name: getattr(read, name) for name in workload.parameters} == workload.parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"samples": 50_001}, "'samples': expected at most 50000, found 50001"),
        ({"persistent": True}, "'persistent': expected false without workers, found True"),
        ({"pinned": True}, "'pinned': expected false on the CPU, found True"),
        ({"worker": 1}, "'worker': unknown; this workload has: batch, persistent"),
    ],
)
def test_options_of_the_loader_that_do_not_fit_are_named(tmp_path, parameters, message):
    context = Context(device="cpu", parameters=parameters, seed=0, data_dir=str(tmp_path))

    with pytest.raises(ValueError, match=message):
        dataloader_pipeline.build(context)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("prompt", "new_tokens"), [(200, 57), (1, 256)])
def test_a_text_longer_than_the_positions_of_the_model_is_refused(prompt, new_tokens):
    parameters = {"model": "tiny", "prompt": prompt, "new_tokens": new_tokens}
    context = Context(device="cpu", parameters=parameters, seed=0, data_dir="")

    with pytest.raises(ValueError, match=r"'tiny', found 257"):
        gpt_decode.build(context)

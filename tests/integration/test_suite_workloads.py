"""The shipped suite for real: every smoke workload is built and stepped on the CPU."""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import _parameters
import dataloader_pipeline
from ci_perf import suite
from ci_perf.workload import Context

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
FILES = sorted(file for file in WORKLOADS.glob("*.py") if not file.name.startswith("_"))
SMOKE = suite.plan(WORKLOADS, "smoke", root=ROOT).workloads
STANDARD = suite.plan(WORKLOADS, "standard", root=ROOT).workloads
SMOKE_IDS = [workload.id for workload in SMOKE]

TINY_RESNET = {"model": "tiny", "batch": 8}
TINY_BERT = {"model": "tiny", "batch": 4, "seq": 16}
# What the smoke suite leaves out, at its size: parameter values of the standard suite.
VARIANTS = {
    "matmul bf16": ("matmul", {"size": 256, "dtype": "bf16"}),
    "matmul tf32": ("matmul", {"size": 256, "dtype": "tf32"}),
    "mlp adam": ("mlp_mnist_train", {"optimizer": "adam"}),
    "mlp adamw": ("mlp_mnist_train", {"optimizer": "adamw"}),
    "mlp batch": ("mlp_mnist_train", {"batch": 32}),
    "resnet cifar": ("resnet18_cifar10_train", {**TINY_RESNET, "stem": "cifar"}),
    "resnet imagenet": ("resnet18_cifar10_train", {**TINY_RESNET, "stem": "imagenet"}),
    "resnet bf16": ("resnet18_cifar10_train", {**TINY_RESNET, "amp": "bf16"}),
    "resnet channels": ("resnet18_cifar10_train", {**TINY_RESNET, "channels_last": True}),
    "resnet 18": ("resnet18_cifar10_train", {"stem": "imagenet", "batch": 4}),
    "bert fp32": ("bert_base_infer", TINY_BERT),
    "bert fp16": ("bert_base_infer", {**TINY_BERT, "dtype": "fp16"}),
    "bert padded": ("bert_base_infer", {**TINY_BERT, "padded": True}),
    "loader respawning": ("dataloader_pipeline", {"workers": 1, "samples": 64}),
}


@pytest.fixture(scope="module")
def data_dir():
    with tempfile.TemporaryDirectory() as folder:  # 180 MB: pytest would keep three of them
        yield folder


@pytest.fixture(scope="module")
def seen(data_dir):
    """What one process saw: the smoke suite with seed 0, and the variants."""
    variants = [
        (name, str(WORKLOADS / f"{file}.py"), parameters, 0)
        for name, (file, parameters) in VARIANTS.items()
    ]
    return {found["id"]: found for found in stepped([*smoke_jobs(seed=0), *variants], data_dir)}


@pytest.fixture(scope="module")
def seen_again(data_dir):
    """What another process saw: the smoke suite with seed 0 and with seed 1."""
    found = stepped([*smoke_jobs(seed=0), *smoke_jobs(seed=1)], data_dir)
    return {(result["id"], result["seed"]): result for result in found}


def smoke_jobs(*, seed):
    return [(workload.id, workload.file, workload.parameters, seed) for workload in SMOKE]


def stepped(jobs, data_dir):
    """What a fresh process saw of the jobs, with one thread and every warning an error."""
    done = run_stepper(jobs, data_dir)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_stepper(jobs, data_dir):
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "tests/fakes/stepper.py"), data_dir],
        input=json.dumps(jobs),
        env=environment(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def environment(**extra):
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(WORKLOADS), str(ROOT)]), **extra}


@pytest.mark.parametrize("workload", SMOKE_IDS)
def test_every_smoke_workload_builds_and_steps(seen, workload):
    found = seen[workload]

    assert all(math.isfinite(loss) and loss > 0 for loss in found["losses"])
    assert found["items"] > 0
    assert found["unit"] in {"flop", "image", "token"}


@pytest.mark.parametrize("workload", SMOKE_IDS)
def test_the_same_seed_gives_the_same_losses_in_another_process(seen, seen_again, workload):
    assert seen_again[workload, 0]["losses"] == seen[workload]["losses"]


@pytest.mark.parametrize("workload", SMOKE_IDS)
def test_another_seed_gives_other_losses(seen, seen_again, workload):
    assert seen_again[workload, 1]["losses"] != seen[workload]["losses"]


@pytest.mark.parametrize("workload", SMOKE_IDS)
def test_teardown_leaves_no_process_behind(seen, workload):
    assert seen[workload]["children_after"] == 0


def test_the_size_of_a_matmul_sets_its_work(seen):
    assert seen["matmul.size=256"]["items"] == 2 * 256**3
    assert seen["matmul.size=512"]["items"] == 2 * 512**3


def test_a_matmul_in_bf16_has_fewer_bits_and_nearly_the_same_product(seen):
    exact, rounded = seen["matmul.size=256"]["losses"][0], seen["matmul bf16"]["losses"][0]

    assert rounded != exact
    # Another random matrix is drawn for bf16; the norm of a product of this size varies by 1 %.
    assert rounded == pytest.approx(exact, rel=0.05)


def test_a_matmul_in_tf32_gives_nearly_the_product_of_the_same_matrices(seen):
    exact = seen["matmul.size=256"]["losses"][0]

    assert seen["matmul tf32"]["losses"][0] == pytest.approx(exact, rel=1e-2)


def test_each_optimizer_goes_its_own_way_from_the_same_start(seen):
    paths = [seen[name]["losses"] for name in ("mlp_mnist_train", "mlp adam", "mlp adamw")]

    assert paths[0][0] == paths[1][0] == paths[2][0]
    assert len({path[-1] for path in paths}) == 3


def test_a_smaller_batch_has_fewer_images(seen):
    assert seen["mlp_mnist_train"]["items"] == 64
    assert seen["mlp batch"]["items"] == 32


def test_only_the_compiled_resnet_has_a_graph_and_it_learns_the_same(seen):
    eager = seen["resnet18_cifar10_train.compile=eager"]
    compiled = seen["resnet18_cifar10_train.compile=aot_eager"]

    assert (eager["graphs"], compiled["graphs"]) == (0, 1)
    assert compiled["graph_breaks"] == 0
    assert compiled["losses"] == pytest.approx(eager["losses"], rel=1e-3)


def test_the_stem_is_part_of_the_model(seen):
    assert seen["resnet cifar"]["losses"] != seen["resnet imagenet"]["losses"]


def test_mixed_precision_rounds_the_losses_and_no_more(seen):
    exact, mixed = seen["resnet cifar"]["losses"], seen["resnet bf16"]["losses"]

    assert mixed != exact
    assert mixed == pytest.approx(exact, rel=0.1)


def test_the_layout_of_the_channels_changes_no_loss(seen):
    assert seen["resnet channels"]["losses"] == pytest.approx(
        seen["resnet cifar"]["losses"], rel=1e-3
    )


def test_the_full_resnet_is_another_model_than_the_tiny_one(seen):
    assert seen["resnet 18"]["items"] == 4
    assert seen["resnet 18"]["losses"] != seen["resnet imagenet"]["losses"]


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        ("bert_base_infer.dtype=fp32", "bert_base_infer.dtype=bf16"),
        ("bert fp32", "bert fp16"),
    ],
)
def test_half_precision_gives_nearly_the_same_encoding(seen, exact, rounded):
    assert seen[rounded]["losses"] != seen[exact]["losses"]
    assert seen[rounded]["losses"] == pytest.approx(seen[exact]["losses"], rel=0.02)


def test_padding_is_not_counted_as_work(seen):
    assert seen["bert fp32"]["items"] == 4 * 16
    assert seen["bert padded"]["items"] == 2 * 16 + 2 * 8
    assert seen["bert padded"]["losses"] != seen["bert fp32"]["losses"]


def test_the_loader_has_as_many_workers_as_asked_for(seen):
    assert seen["dataloader_pipeline.workers=0"]["children"] == 0
    assert seen["dataloader_pipeline.workers=1"]["children"] == 1
    assert seen["dataloader_pipeline.workers=1"]["items"] == 512


def test_workers_that_do_not_persist_end_with_the_epoch(seen):
    assert seen["loader respawning"]["children"] == 0
    assert seen["loader respawning"]["items"] == 64


@pytest.mark.parametrize(
    "use", ["socket.getaddrinfo('localhost', 80)", "socket.socket().connect(('127.0.0.1', 9))"]
)
def test_a_workload_that_used_the_network_would_be_noticed(tmp_path, use):
    file = tmp_path / "download.py"
    file.write_text(f"import socket\ndef build(context): {use}\n")

    done = run_stepper([("download", str(file), {}, 0)], str(tmp_path))

    assert done.returncode == 1
    assert "RuntimeError: the workload used the network" in done.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_workload_says_in_one_line_what_it_does(file):
    description = suite.describe(file)

    assert len(description) > 30
    assert description.endswith(".")


def test_every_workload_is_in_both_suites():
    names = {file.stem for file in FILES}

    assert {Path(workload.file).stem for workload in SMOKE} == names
    assert {Path(workload.file).stem for workload in STANDARD} == names


def test_listing_the_suite_imports_neither_a_workload_nor_torch():
    code = (
        "import sys; from pathlib import Path; from ci_perf import suite;"
        f"suite.plan(Path({str(WORKLOADS)!r}), 'standard', root=Path('.'));"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split())

    assert "ci_perf.suite" in imported
    assert not imported & {"torch", "transformers", "numpy", *(file.stem for file in FILES)}


@pytest.mark.parametrize("workload", STANDARD, ids=lambda workload: workload.id)
def test_the_parameters_of_the_standard_suite_are_accepted(workload):
    import importlib

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

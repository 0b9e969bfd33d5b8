"""The shipped suite for real: every smoke workload is built and stepped on the CPU."""

import json
import math
import os
import statistics
import tempfile
from pathlib import Path

import pytest

from ci_perf import suite
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
WORKLOADS = ROOT / "workloads"
SUITES = {
    name: suite.plan(WORKLOADS, name, root=ROOT).workloads for name in suite.load(WORKLOADS).suites
}
# What torchrun starts is tested with its ranks, in test_ranks.py.
SMOKE = [workload for workload in SUITES["smoke"] if workload.launch == "process"]
SMOKE_IDS = [workload.id for workload in SMOKE]

TINY_RESNET = {"model": "tiny", "batch": 8}
TINY_RESNET50 = {"batch": 2, "side": 32}
TINY_VIT = {"model": "tiny", "batch": 4}
TINY_BERT = {"model": "tiny", "batch": 4, "seq": 16}
TINY_GPT = {"model": "tiny", "batch": 2, "prompt": 8, "new_tokens": 4}
# What the smoke suite leaves out, at its size: parameter values of the standard suite.
VARIANTS = {
    "matmul bf16": ("matmul", {"size": 256, "dtype": "bf16"}),
    "matmul tf32": ("matmul", {"size": 256, "dtype": "tf32"}),
    "mlp adam": ("mlp_mnist_train", {"optimizer": "adam"}),
    "mlp adamw": ("mlp_mnist_train", {"optimizer": "adamw"}),
    "mlp rmsprop": ("mlp_mnist_train", {"optimizer": "rmsprop"}),
    "mlp batch": ("mlp_mnist_train", {"batch": 32}),
    "resnet cifar": ("resnet18_cifar10_train", {**TINY_RESNET, "stem": "cifar"}),
    "resnet imagenet": ("resnet18_cifar10_train", {**TINY_RESNET, "stem": "imagenet"}),
    "resnet bf16": ("resnet18_cifar10_train", {**TINY_RESNET, "amp": "bf16"}),
    "resnet fp16": ("resnet18_cifar10_train", {**TINY_RESNET, "amp": "fp16"}),
    "resnet halves": ("resnet18_cifar10_train", {**TINY_RESNET, "gradient_accumulation": 2}),
    "resnet benchmark": ("resnet18_cifar10_train", {**TINY_RESNET, "cudnn_benchmark": True}),
    "resnet channels": ("resnet18_cifar10_train", {**TINY_RESNET, "channels_last": True}),
    "resnet 18": ("resnet18_cifar10_train", {"stem": "imagenet", "batch": 4}),
    "bert fp32": ("bert_base_infer", TINY_BERT),
    "bert fp16": ("bert_base_infer", {**TINY_BERT, "dtype": "fp16"}),
    "bert padded": ("bert_base_infer", {**TINY_BERT, "rows": "padded"}),
    "bert ragged": ("bert_base_infer", {**TINY_BERT, "rows": "ragged"}),
    "bert ragged single": ("bert_base_infer", {**TINY_BERT, "rows": "ragged", "batch": 1}),
    "bert compiled": ("bert_base_infer", {**TINY_BERT, "compile": "aot_eager"}),
    "resnet 50 tuned": (
        "resnet50_imagenet_train",
        {**TINY_RESNET50, "amp": "bf16", "channels_last": True, "cudnn_benchmark": True},
    ),
    # It turns off what the one before has turned on.
    "resnet 50": ("resnet50_imagenet_train", TINY_RESNET50),
    "vit": ("vit_base_imagenet_train", TINY_VIT),
    "vit bf16": ("vit_base_imagenet_train", {**TINY_VIT, "amp": "bf16"}),
    "vit compiled": ("vit_base_imagenet_train", {**TINY_VIT, "compile": "aot_eager"}),
    "gpt": ("gpt_decode", TINY_GPT),
    "gpt bf16": ("gpt_decode", {**TINY_GPT, "dtype": "bf16"}),
    "gpt compiled": ("gpt_decode", {**TINY_GPT, "compile": "aot_eager"}),
    "gpt first token": ("gpt_decode", {**TINY_GPT, "new_tokens": 1}),
    "gpt longer": ("gpt_decode", {**TINY_GPT, "new_tokens": 5}),
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


def numbers(found):
    """Losses and results of all steps, one after the other."""
    return [number for step in found["numbers"] for number in step]


def smoke_jobs(*, seed):
    return [(workload.id, workload.file, workload.parameters, seed) for workload in SMOKE]


def stepped(jobs, data_dir):
    """What a fresh process saw of the jobs, with one thread and every warning an error."""
    done = run_stepper(jobs, data_dir)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_stepper(jobs, data_dir):
    paths = os.pathsep.join([str(WORKLOADS), str(ROOT)])
    return run_python(
        *("-W", "error", ROOT / "tests/fakes/stepper.py", data_dir),
        said=json.dumps(jobs),
        PYTHONPATH=paths,
        HF_HUB_OFFLINE="1",
        OMP_NUM_THREADS="1",
    )


@pytest.mark.parametrize("workload", SMOKE_IDS)
def test_every_smoke_workload_steps_by_its_seed_and_leaves_no_process(seen, seen_again, workload):
    found = seen[workload]

    assert numbers(found)
    assert all(math.isfinite(number) and number > 0 for number in numbers(found))
    assert found["unit"] in {"flop", "image", "sample", "token"}
    assert (found["varies"], found["children_after"]) == ("", 0)
    assert seen_again[workload, 0]["numbers"] == found["numbers"]
    assert seen_again[workload, 1]["numbers"] != found["numbers"]


def test_each_optimizer_goes_its_own_way_from_the_same_start(seen):
    names = ("mlp_mnist_train", "mlp adam", "mlp adamw", "mlp rmsprop")
    paths = [seen[name]["numbers"] for name in names]

    assert all(path[0] == paths[0][0] for path in paths)
    assert len({tuple(path[-1]) for path in paths}) == 4


def test_a_step_that_accumulates_gradients_passes_forward_and_backward_so_often(seen):
    assert seen["resnet halves"]["phases"][:5] == [*2 * ["forward", "backward"], "optimizer"]


def test_cudnn_tries_its_algorithms_only_where_suite_toml_says_so(seen):
    wanted = {name for name, found in seen.items() if found["cudnn_benchmark"]}

    assert wanted == {"resnet benchmark", "resnet 50 tuned"}


def test_rows_without_padding_have_the_encodings_of_the_padded_ones(seen):
    padded = [size for (size,) in seen["bert padded"]["numbers"]]
    ragged = [statistics.mean(sizes) for sizes in seen["bert ragged"]["numbers"]]

    assert len(seen["bert ragged"]["numbers"][0]) == 2
    assert len(seen["bert ragged single"]["numbers"][0]) == 1
    assert ragged == pytest.approx(padded, rel=1e-4)


ITEMS = {
    "matmul.size=256": 2 * 256**3,
    "mlp batch": 32,
    "resnet halves": 2 * 8,
    "resnet 18": 4,
    "resnet 50": 2,
    "bert fp32": 4 * 16,
    "bert padded": 2 * 16 + 2 * 8,  # padding is no work
    "bert ragged": 2 * 16 + 2 * 8,
    "bert ragged single": 8,
    "gpt": 2 * 4,
    "gpt first token": 2,
    "dataloader_pipeline.workers=1": 512,
    "loader respawning": 64,
}


def test_items_are_the_work_of_a_step(seen):
    assert {name: seen[name]["items"] for name in ITEMS} == ITEMS


EAGER = "resnet18_cifar10_train.compile=eager"
COMPILED = "resnet18_cifar10_train.compile=aot_eager"


@pytest.mark.parametrize(
    ("exact", "other", "rel"),
    [
        (EAGER, COMPILED, 1e-3),
        ("bert fp32", "bert compiled", 1e-3),
        ("gpt", "gpt compiled", 1e-3),
        ("vit", "vit compiled", 1e-3),
        ("resnet cifar", "resnet channels", 1e-3),
        ("matmul.size=256", "matmul tf32", 1e-2),
    ],
)
def test_the_same_computation_in_another_form_gives_the_same_numbers(seen, exact, other, rel):
    assert numbers(seen[other]) == pytest.approx(numbers(seen[exact]), rel=rel)


@pytest.mark.parametrize(
    ("exact", "rounded", "rel"),
    [
        # Other matrices are drawn for bf16; the mean size of a product of these varies by 1 %.
        ("matmul.size=256", "matmul bf16", 0.05),
        ("resnet cifar", "resnet bf16", 0.1),
        ("resnet cifar", "resnet fp16", 0.1),
        ("bert_base_infer.dtype=fp32", "bert_base_infer.dtype=bf16", 0.02),
        ("bert fp32", "bert fp16", 0.02),
        ("gpt", "gpt bf16", 0.05),
        ("vit", "vit bf16", 0.05),
    ],
)
def test_fewer_bits_round_the_numbers_and_no_more(seen, exact, rounded, rel):
    assert numbers(seen[rounded]) != numbers(seen[exact])
    assert numbers(seen[rounded]) == pytest.approx(numbers(seen[exact]), rel=rel)


def test_another_model_or_input_gives_other_numbers(seen):
    resnets = [numbers(seen[f"resnet {name}"])[0] for name in ("cifar", "imagenet", "18")]

    assert len(set(resnets)) == 3
    assert numbers(seen["bert padded"]) != numbers(seen["bert fp32"])


def test_only_what_is_compiled_has_graphs(seen):
    assert [seen[name]["graphs"] for name in (EAGER, "bert fp32", "gpt", COMPILED)] == [0, 0, 0, 1]
    assert (seen["vit"]["graphs"], seen["vit compiled"]["graphs"]) == (0, 1)
    assert seen[COMPILED]["graph_breaks"] == seen["vit compiled"]["graph_breaks"] == 0
    assert min(seen["bert compiled"]["graphs"], seen["gpt compiled"]["graphs"]) >= 1


def test_precision_and_layout_of_the_resnet_50_move_its_first_loss_a_little(seen):
    (loss, _), *_ = seen["resnet 50 tuned"]["numbers"]
    (exact, _), *_ = seen["resnet 50"]["numbers"]

    assert loss == pytest.approx(exact, rel=0.1)


def test_each_new_token_is_written_after_the_others(seen):
    ends = [numbers(seen[name])[0] for name in ("gpt first token", "gpt", "gpt longer")]

    assert len(set(ends)) == 3


def test_the_parts_of_a_step_have_names(seen):
    training = ["forward", "backward", "optimizer"]
    phases = dict.fromkeys(("mlp_mnist_train", COMPILED, "resnet 50", "vit"), training)
    phases |= {"gpt": ["prefill", "decode"], "loader respawning": ["data", "h2d", "data"]}

    assert {name: seen[name]["phases"] for name in phases} == {
        name: 3 * parts for name, parts in phases.items()
    }


def test_the_precision_is_that_of_the_products(seen):
    names = ("matmul tf32", "bert fp16", "resnet bf16", "resnet cifar", "loader respawning")

    assert [seen[name]["precision"] for name in names] == ["tf32", "fp16", "bf16", "fp32", ""]


def test_a_model_says_how_many_parameters_it_has(seen):
    assert seen["mlp_mnist_train"]["parameters"] == 784 * 128 + 128 + 128 * 10 + 10
    assert seen["resnet 18"]["parameters"] == 11_181_642
    assert seen["resnet 50"]["parameters"] == 25_557_032  # as in the paper
    assert seen["matmul.size=256"]["parameters"] is None


def test_an_epoch_is_the_whole_training_set_and_unknown_for_data_of_no_size(seen):
    names = ("mlp_mnist_train", "resnet cifar", "resnet 50", "bert fp32")

    assert [seen[name]["epoch"] for name in names] == [60_000, 50_000, 1_281_167, None]


def test_the_loader_has_as_many_workers_as_asked_for_until_an_epoch_ends(seen):
    assert seen["dataloader_pipeline.workers=0"]["children"] == 0
    assert seen["dataloader_pipeline.workers=1"]["children"] == 1
    assert seen["loader respawning"]["children"] == 0


DOWNLOAD = """
import socket
def build(context):
    try:
        socket.getaddrinfo("localhost", 80)
    finally:
        socket.socket().connect(("127.0.0.1", 9))
"""


def test_a_workload_that_used_the_network_would_be_noticed(tmp_path):
    file = tmp_path / "download.py"
    file.write_text(DOWNLOAD)

    done = run_stepper([("download", str(file), {}, 0)], str(tmp_path))

    assert done.returncode == 1
    assert done.stderr.count("RuntimeError: the workload used the network") == 2

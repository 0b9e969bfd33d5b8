"""The engines, images, registry and GPUs that tests of containers stand on are what they say."""

import os
import re
import subprocess
import sys

import pytest

from tests.containers import engines

pytestmark = pytest.mark.container

# What a container sees of GPUs, by the real pynvml.
UUIDS = """
import pynvml
pynvml.nvmlInit()
for at in range(pynvml.nvmlDeviceGetCount()):
    print(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(at)))
"""
RUN = ("run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL")


@pytest.fixture
def run(docker):
    def run(*arguments):
        return docker.must(*RUN, "--tmpfs", "/tmp:exec", "--user", "10001:10001", *arguments)

    return run


def test_a_container_has_our_python_and_what_a_worker_imports(run, python_image):
    imports = "import msgspec, numpy, pynvml, ssl, sys; print(sys.version)"

    assert run(python_image, "python3", "-c", imports) == sys.version


def test_a_container_has_a_shell(run, python_image):
    assert run(python_image, "sh", "-c", "id -u | sed s/1/one/; ls /etc/passwd").split() == [
        "one0001",
        "/etc/passwd",
    ]


def test_torch_computes_in_a_container(run, torch_image):
    source = "import torch; print(torch.eye(3).matmul(torch.ones(3)))"

    assert run(torch_image, "python3", "-c", source) == "tensor([1., 1., 1.])"


def test_what_the_shipped_suites_import_is_in_the_image(run, torch_image):
    models = "BertModel, DynamicCache, GPT2LMHeadModel, ResNetForImageClassification"
    source = f"from transformers import {models}; print(BertModel.__name__)"

    assert run(torch_image, "python3", "-c", source) == "BertModel"


def test_ranks_meet_in_a_container_without_a_network(docker, torch_image):
    rank = "import torch.distributed as d; d.init_process_group('gloo'); print(d.get_rank())"
    said = docker.must(
        *RUN,
        *("--tmpfs", "/tmp:exec", "--hostname", "here", "--add-host", "here:127.0.0.1"),
        *(torch_image, "python3", "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", "2", "--no-python", "python3", "-c", rank),
    )

    assert sorted(said.split()) == ["0", "1"]


def test_a_pushed_image_is_found_by_its_digest_alone(docker, registry, shell_image):
    reference = registry.push(shell_image, "some/project:tag")
    docker.must("rmi", "--force", shell_image)
    docker.must("pull", "--quiet", reference)

    assert re.fullmatch(r"127\.0\.0\.1:\d+/some/project@sha256:[0-9a-f]{64}", reference)
    assert docker.must("image", "inspect", "--format", "{{.Id}}", reference) == shell_image


def test_docker_gives_the_gpus_that_are_asked_for(run, python_image, docker_gpus):
    first, second, third, _ = docker_gpus.uuids

    assert run("--gpus", f'"device={third}"', python_image, "python3", "-c", UUIDS) == third
    both = run("--gpus", f'"device={second},{first}"', python_image, "python3", "-c", UUIDS)
    assert both.split() == [first, second]
    assert run("--gpus", "device=1", python_image, "python3", "-c", UUIDS) == second
    assert docker_gpus.asked()[-3:] == [third, f"{second},{first}", "1"]


def test_docker_refuses_a_gpu_that_is_not_there(docker, python_image, docker_gpus):
    assert docker_gpus.uuids
    answer = docker.ask(*RUN, "--gpus", '"device=GPU-none"', python_image, "true")

    assert answer.code == 125
    assert "GPU-none: unknown device" in answer.err


def test_podman_gives_the_gpus_that_are_asked_for(podman, podman_python_image, podman_gpus):
    first, second, _, _ = podman_gpus.uuids
    devices = [f"--device=nvidia.com/gpu={uuid}" for uuid in (second, first)]
    said = podman.must(*RUN, *devices, podman_python_image, "python3", "-c", UUIDS)

    assert said.split() == [first, second]


def test_podman_refuses_a_gpu_that_is_not_there(podman, podman_python_image, podman_gpus):
    assert podman_gpus.uuids
    answer = podman.ask(*RUN, "--device=nvidia.com/gpu=GPU-none", podman_python_image, "true")

    assert answer.code == 126
    assert "nvidia.com/gpu=GPU-none" in answer.err


@pytest.mark.parametrize(
    ("fixture", "question"),
    [("in_docker", "{{.DockerRootDir}}"), ("in_podman", "{{.Store.GraphRoot}}")],
)
def test_children_of_a_test_mean_the_engine_of_the_session(request, fixture, question):
    engine = request.getfixturevalue(fixture)
    command = [engine.name, "info", "--format", question]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert said == engine.must("info", "--format", question)


def test_podman_has_nothing_of_the_machine(podman, podman_python_image):
    folder = engines.folder_of(podman)
    found = podman.must("images", "--no-trunc", "--quiet")

    assert podman.must("info", "--format", "{{.Store.GraphRoot}}") == f"{folder}/root"
    assert podman_python_image in found.splitlines()
    assert str(folder) not in os.environ.values()

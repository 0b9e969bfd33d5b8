"""`ci-perf doctor --runner docker|podman`: the engine is asked, the image is tried, for real."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_perf.features.containers.examine import try_containers
from ci_perf.features.doctor import machine_facts
from ci_perf.model.container import Container
from ci_perf.model.facts import TorchMissing

pytestmark = pytest.mark.container


def doctor(*arguments, cwd=None, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "ci_perf", "doctor", "--json", *arguments],
        cwd=cwd,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
        text=True,
        timeout=300,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def codes(found):
    return [finding["code"] for finding in found["findings"]]


def what(code, found):
    return next(finding["what"] for finding in found["findings"] if finding["code"] == code)


@pytest.mark.usefixtures("in_docker")
def test_an_image_with_torch_can_be_measured_in(torch_image, tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('the host has none')")

    code, found = doctor("--runner", "docker", "--image", torch_image, PYTHONPATH=str(tmp_path))

    assert code == 0, found
    assert found["can_measure"][0] == "cpu"
    assert "image_works" in codes(found)
    assert "torch_broken" not in codes(found)
    assert found["facts"]["torch"]["state"] == "imported"
    assert found["facts"]["containers"]["image"] == torch_image


@pytest.mark.usefixtures("in_docker")
def test_an_image_without_torch_is_said_to_have_none(python_image):
    code, found = doctor("--runner", "docker", "--image", python_image)

    assert code == 3
    assert codes(found)[0] == "image_cannot_measure"
    assert "it holds no torch" in what("image_cannot_measure", found)


@pytest.mark.usefixtures("in_podman")
def test_podman_is_asked_as_well(podman_python_image):
    code, found = doctor("--runner", "podman", "--image", podman_python_image)

    assert code == 3
    assert codes(found)[0] == "image_cannot_measure"
    assert found["facts"]["containers"]["engine"] == "podman"


@pytest.mark.usefixtures("in_docker")
def test_an_image_without_python_is_refused_by_the_engine(shell_image):
    code, found = doctor("--runner", "docker", "--image", shell_image)

    assert code == 3
    assert "python3" in what("container_refused", found)


@pytest.mark.usefixtures("in_docker")
def test_the_image_of_suite_toml_is_looked_at(tmp_path):
    (tmp_path / "suite.toml").write_text(
        f'[container]\nimage = "nosuch.example/x@sha256:{"1" * 64}"\n'
        "[suites.smoke]\nworkloads = []\n"
    )

    code, found = doctor("--runner", "docker", "--workloads", str(tmp_path))

    assert code == 3
    assert "nosuch.example/x@sha256:1111" in what("container_refused", found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is somebody else inside")
@pytest.mark.usefixtures("in_docker")
def test_a_checkout_that_only_root_may_read_is_named(tmp_path):
    (tmp_path / "checkout").mkdir(mode=0o700)

    code, found = doctor("--runner", "docker", cwd=tmp_path / "checkout")

    assert code == 3
    assert "found mode 0700" in what("container_refused", found)


@pytest.mark.usefixtures("in_docker")
def test_nothing_of_the_trial_is_left(docker, python_image):
    doctor("--runner", "docker", "--image", python_image)

    assert docker.must("ps", "--all", "--quiet", "--filter", "name=ci-perf-doctor") == ""


def test_an_engine_that_does_not_run_is_named_and_the_host_is_still_described(docker):
    code, found = doctor("--runner", "docker", DOCKER_HOST="unix:///nonexistent.sock")

    assert docker.name == "docker"
    assert code == 3
    assert codes(found)[0] == "engine_silent"
    assert found["facts"]["host"]["logical_cores"] > 0


def test_an_engine_that_is_absent_is_named(tmp_path):
    code, found = doctor("--runner", "podman", PATH=str(tmp_path))

    assert code == 3
    assert codes(found)[0] == "engine_silent"
    assert "expected its program on the PATH" in what("engine_silent", found)


def test_an_image_without_a_runner_is_wrong_use():
    code, said = doctor("--image", "x:1")

    assert code == 2
    assert "--runner docker or podman" in said


def ask_with_gpus(engine, image):
    """Ask as on a host that shows GPUs."""
    limits = Container(image=image)
    sources = machine_facts.this_machine()
    return try_containers(engine.name, limits, Path("/"), sources.environ, has_gpus=True)


@pytest.mark.usefixtures("docker_gpus")
def test_a_host_with_gpus_tries_them(in_docker, python_image):
    found, torch = ask_with_gpus(in_docker, python_image)

    assert found.version
    assert (found.problem, found.gpu_problem) == (None, None)
    assert isinstance(torch, TorchMissing)


def test_gpus_that_podman_does_not_know_are_not_the_images_fault(
    in_podman, podman_python_image, podman_gpus
):
    found, _ = ask_with_gpus(in_podman, podman_python_image)

    assert podman_gpus.uuids
    assert found.problem is None
    assert found.gpu_problem is not None
    assert "nvidia.com/gpu=all" in found.gpu_problem.what

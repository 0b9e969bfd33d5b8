"""Engines that refuse, for real: each is understood, and told with its next step."""

import os
import socket
from dataclasses import replace

import pytest

from ci_perf.errors import EngineError
from ci_perf.launch.containers import engine as engines
from ci_perf.launch.containers import engine_errors, running, stale
from ci_perf.system import processes

pytestmark = pytest.mark.container

NOBODY = 65534


@pytest.fixture(params=["docker", "podman"])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def image(engine, request):
    of = {"docker": "python_image", "podman": "podman_python_image"}
    return request.getfixturevalue(of[engine.name])


def refusal(engine, *arguments):
    """Ask for what the engine refuses; return what we say of that."""
    answer = engine.ask(*arguments)
    assert answer.code != 0
    return engine_errors.explain(engine.name, arguments[0], answer.err)


def created(image, *options):
    return ("create", "--pull", "never", "--network", "none", *options, image, "true")


def test_an_image_that_is_not_here(engine):
    said = refusal(engine, *created("nosuch.example/x:1"))

    assert "expected the image nosuch.example/x:1 on this host, found none" in said
    assert f"{engine.name} pull nosuch.example/x:1" in said


def test_a_registry_that_nobody_runs(engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    said = refusal(engine, "pull", f"127.0.0.1:{port}/x:1")

    assert "the registry could not be reached" in said


def test_a_digest_that_the_registry_does_not_have(docker, registry):
    said = refusal(docker, "pull", f"{registry.address}/x@sha256:{'1' * 64}")

    assert "the registry has no such image" in said


@pytest.mark.parametrize(
    ("options", "meaning"),
    [
        (("--cpuset-cpus", "0-4095"), "expected the cores 0-4095, found only"),
        (("--mount", "type=bind,src=/nonexistent/x,dst=/w"), "expected the folder /nonexistent/x"),
        (("--nosuchflag",), "does not know an option that it was given: --nosuchflag"),
    ],
)
def test_what_cannot_be_created(engine, image, options, meaning):
    assert meaning in refusal(engine, *created(image, *options))


def test_a_name_that_is_taken(engine, image):
    engine.must(*created(image, "--name", "ci-perf-taken"))
    try:
        said = refusal(engine, *created(image, "--name", "ci-perf-taken"))
    finally:
        stale.remove(engine, "ci-perf-taken")

    assert "a container ci-perf-taken is there already" in said


def run(engine, image, *command, options=()):
    name = f"ci-perf-refused-{os.getpid()}"
    program, *rest = command
    start = ("--name", name, "--init", "--entrypoint", program)
    create = ("create", "--pull", "never", "--network", "none", *start, *options, image, *rest)
    return running.run(engine, name, create, timeout_s=60.0, interrupted=lambda: False)


@pytest.mark.parametrize(
    ("program", "meaning"),
    [("python9", "the image has no program"), ("/etc", "may not be executed by the worker's user")],
)
def test_a_program_that_the_image_cannot_start(engine, image, program, meaning):
    with pytest.raises(EngineError) as caught:
        run(engine, image, program)

    assert meaning in str(caught.value)


def test_a_user_that_the_image_does_not_know(engine, image):
    with pytest.raises(EngineError, match="the image knows no user nosuch"):
        run(engine, image, "true", options=("--user", "nosuch"))


def test_a_size_of_memory_that_is_none(engine, image):
    with pytest.raises(EngineError, match=r"the kernel refuses a memory file system with size=abc"):
        run(engine, image, "true", options=("--tmpfs", "/tmp:size=abc"))


def test_a_program_that_ends_as_if_it_had_not_been_found_was_found(engine, image):
    stop = run(engine, image, "sh", "-c", "exit 127")

    assert stop.ended.code == 127


@pytest.mark.usefixtures("docker_gpus")
def test_a_gpu_that_the_hook_does_not_know(docker, python_image):
    with pytest.raises(EngineError, match="the NVIDIA toolkit knows no GPU GPU-none"):
        run(docker, python_image, "true", options=("--gpus", '"device=GPU-none"'))


@pytest.mark.usefixtures("podman_gpus")
def test_a_gpu_that_no_specification_knows(podman, podman_python_image):
    with pytest.raises(EngineError, match=r"no CDI specification knows nvidia.com/gpu=GPU-none"):
        run(podman, podman_python_image, "true", options=("--device", "nvidia.com/gpu=GPU-none"))


def elsewhere(docker, where):
    return replace(docker, environment={**docker.environment, "DOCKER_HOST": where})


def test_a_daemon_that_is_gone(docker, tmp_path):
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    with pytest.raises(
        EngineError, match=r"expected a running daemon at unix://.*dead.sock, found"
    ):
        elsewhere(docker, f"unix://{path}").version()


def test_a_socket_that_was_never_there(docker):
    with pytest.raises(EngineError, match=r"expected a running daemon at unix:///nonexistent.sock"):
        elsewhere(docker, "unix:///nonexistent.sock").version()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_user_whom_the_daemon_does_not_let_in(docker, tmp_path_factory):
    """The test is root, whom no mode stops: the command is run by nobody."""
    folder = tmp_path_factory.mktemp("closed")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(folder / "d.sock"))
        (folder / "d.sock").chmod(0o600)
        closed.listen()
        as_nobody = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
        asked = processes.capture(
            [*as_nobody, docker.program, "version", "--format", "{{.Server.Version}}"],
            timeout_s=30.0,
            environment={
                **docker.environment,
                "DOCKER_HOST": f"unix://{folder}/d.sock",
                "HOME": "/nonexistent",
            },
        )

    said = engine_errors.explain("docker", "version", asked.err)

    assert f"expected to be let in at unix://{folder}/d.sock, found permission denied" in said
    assert "usermod -aG docker" in said


def test_a_program_that_is_not_installed(tmp_path):
    with pytest.raises(EngineError, match=r"podman: expected its program on the PATH, found none"):
        engines.find("podman", {"PATH": str(tmp_path)})

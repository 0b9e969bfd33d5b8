"""Engines that refuse, for real: what is known is named, all else is passed on."""

import os
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from ci_perf.errors import EngineError
from ci_perf.features.containers.launch import engine as engines
from ci_perf.features.containers.launch import engine_errors, running
from ci_perf.system import processes

pytestmark = pytest.mark.container

NOBODY = 65534
CREATE = ("create", "--pull", "never", "--network", "none")


@pytest.fixture(params=["docker", "podman"])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def image(engine, request):
    of = {"docker": "python_image", "podman": "podman_python_image"}
    return request.getfixturevalue(of[engine.name])


def refusal(engine, *arguments):
    """Ask for what the engine refuses; return what we say of that."""
    with pytest.raises(EngineError) as caught:
        engine.must(*arguments)
    return str(caught.value)


def test_what_cannot_be_created_is_said_in_the_words_of_the_engine(engine, image):
    missing = refusal(engine, *CREATE, "nosuch.example/x:1", "true")
    flag = refusal(engine, *CREATE, "--nosuchflag", image, "true")
    mount = refusal(engine, *CREATE, "--mount", "type=bind,src=/no/x,dst=/w", image, "true")

    assert "expected the image, found none: " in missing
    assert "nosuch.example/x:1" in missing
    assert f"`{engine.name} create` failed: unknown flag: --nosuchflag; " in flag
    assert "/no/x" in mount


def test_a_registry_that_nobody_runs_and_a_digest_that_one_lacks(engine, docker, registry):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert "connection refused" in refusal(engine, "pull", f"127.0.0.1:{port}/x:1")
    lacked = refusal(docker, "pull", f"{registry.address}/x@sha256:{'1' * 64}")
    assert "expected the image, found none: " in lacked


def run(engine, image, *command, options=()):
    name = f"ci-perf-refused-{os.getpid()}"
    program, *rest = command
    start = ("--name", name, "--init", "--entrypoint", program)
    create = (*CREATE, *start, *options, image, *rest)
    return running.run(engine, name, create, timeout_s=60.0, interrupted=lambda: False)


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("python9", (), "No such file|not found"),
        ("/etc", (), "[Pp]ermission denied"),
        ("true", ("--user", "nosuch"), "nosuch"),
        ("true", ("--tmpfs", "/tmp:size=abc"), "size=abc"),
    ],
)
def test_a_program_that_the_engine_cannot_start(engine, image, program, options, words):
    with pytest.raises(EngineError, match=f"start` failed: .*({words})"):
        run(engine, image, program, options=options)


def test_a_program_that_ends_as_if_it_had_not_been_found_was_found(engine, image):
    stop = run(engine, image, "sh", "-c", "exit 127")

    assert stop.ended.code == 127


@pytest.mark.usefixtures("docker_gpus", "podman_gpus")
def test_a_gpu_that_the_engine_does_not_know(engine, image):
    options = {
        "docker": ("--gpus", '"device=GPU-none"'),
        "podman": ("--device", "nvidia.com/gpu=GPU-none"),
    }

    with pytest.raises(EngineError, match=r"the engine gives this container no GPU: .*GPU-none"):
        run(engine, image, "true", options=options[engine.name])


def test_a_daemon_that_does_not_answer(docker, tmp_path):
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    for where in (path, "/nonexistent.sock"):
        environment = {**docker.environment, "DOCKER_HOST": f"unix://{where}"}
        with pytest.raises(EngineError, match=f"expected a running daemon, .*unix://{where}"):
            replace(docker, environment=environment).version()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_user_whom_the_daemon_does_not_let_in(docker, tmp_path_factory):
    """The test is root, whom no mode stops: the command is run by nobody."""
    folder = tmp_path_factory.mktemp("closed")
    temporary = Path(tempfile.gettempdir())
    for parent in (folder, *folder.parents):
        if parent.is_relative_to(temporary) and parent != temporary:
            parent.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(folder / "d.sock"))
        (folder / "d.sock").chmod(0o600)
        closed.listen()
        as_nobody = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
        own = {"DOCKER_HOST": f"unix://{folder}/d.sock", "HOME": "/nonexistent"}
        asked = processes.capture(
            [*as_nobody, docker.program, "version", "--format", "{{.Server.Version}}"],
            timeout_s=30.0,
            environment={**docker.environment, **own},
        )

    said = engine_errors.explain("docker", "version", asked.err)

    assert "the daemon does not let this user in: " in said
    assert "permission denied" in said
    assert "usermod -aG docker" in said


def test_a_program_that_is_not_installed(tmp_path):
    with pytest.raises(EngineError, match=r"podman: expected its program on the PATH, found none"):
        engines.find("podman", {"PATH": str(tmp_path)})

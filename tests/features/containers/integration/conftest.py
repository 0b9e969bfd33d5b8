"""Engines, images, a registry and GPUs for tests with real containers, once per session.

Without an engine these tests are skipped and say why; with REQUIRE_ENGINE they fail.
"""

import contextlib
import os

import pytest

from tests.features.containers.helpers import benches, engines, images, nvidia, registries, roots

# What a worker imports before any workload. With pip, as the images have that people use.
_LIGHT = ("msgspec", "numpy", "nvidia-ml-py", "pip")
_HEAVY = (*_LIGHT, "torch", "transformers")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """With `--dist loadgroup`, one process has them all, so that there is one of each engine."""
    for item in items:
        if item.get_closest_marker("container"):
            item.add_marker(pytest.mark.xdist_group("container"))


@contextlib.contextmanager
def _or_skip(resource):
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(resource)
        except engines.NoEngineError as error:
            _skip(str(error))


def _skip(reason):
    if os.environ.get("REQUIRE_ENGINE"):
        pytest.fail(f"REQUIRE_ENGINE is set: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def _hooks(tmp_path_factory):
    return nvidia.put_hook(tmp_path_factory.mktemp("hooks"))


@pytest.fixture(scope="session")
def _gpus(_hooks):
    return nvidia.make(_hooks)


@pytest.fixture(scope="session")
def docker(_hooks):
    """An Engine: the docker of this machine if one answers, else one of our own."""
    with _or_skip(engines.docker(_hooks)) as found:
        yield found


@pytest.fixture(scope="session")
def podman():
    """An Engine: podman with images, containers and settings of our own."""
    if os.geteuid() != 0:
        pytest.skip("podman of other users than root needs settings that nobody has tried")
    with _or_skip(engines.podman()) as found:
        yield found


@pytest.fixture
def in_docker(docker, monkeypatch):
    """The docker of the session, which also this process and its children mean by `docker`."""
    return _meant(docker, monkeypatch)


@pytest.fixture
def in_podman(podman, monkeypatch):
    """The podman of the session, which also this process and its children mean by `podman`."""
    return _meant(podman, monkeypatch)


def _meant(engine, monkeypatch):
    for name in engines.VARIABLES:
        if name in engine.environment:
            monkeypatch.setenv(name, engine.environment[name])
    return engine


@pytest.fixture(scope="session")
def shell_image(docker):
    """The id of a small image with a shell: quick to push."""
    with _image(docker, roots.of_shell()) as image:
        yield image


@pytest.fixture(scope="session")
def python_image(docker):
    """The id of an image with this Python, a shell and what every worker imports."""
    with _image(docker, roots.of_python(*_LIGHT)) as image:
        yield image


@pytest.fixture(scope="session")
def torch_image(docker):
    """The id of an image with torch and transformers too: as of a project that is measured."""
    with _image(docker, roots.of_python(*_HEAVY)) as image:
        yield image


@pytest.fixture(scope="session")
def podman_python_image(podman):
    """The same as python_image, for podman."""
    with _image(podman, roots.of_python(*_LIGHT)) as image:
        yield image


@contextlib.contextmanager
def _image(engine, root):
    image = images.import_into(engine, root)
    yield image
    if not engines.folder_of(engine):  # the machine's own, which stays
        engine.must("rmi", "--force", image)


@pytest.fixture(scope="session")
def registry(docker):
    """A Registry on this machine."""
    with _or_skip(registries.running(docker)) as found:
        yield found


@pytest.fixture(scope="session")
def docker_gpus(docker, _gpus):
    """The Gpus that `docker run --gpus` knows."""
    if not engines.folder_of(docker):
        pytest.skip("docker looks for the hook of GPUs where it starts; this one runs already")
    return _gpus


@pytest.fixture(scope="session")
def podman_gpus(podman, _gpus):
    """The Gpus that `podman run --device nvidia.com/gpu=UUID` knows."""
    nvidia.specify(_gpus, engines.folder_of(podman).name)
    return _gpus


@pytest.fixture
def which():
    """The engine, where a test does not name both."""
    return "docker"


@pytest.fixture
def bench(request, which, tmp_path):
    """A Bench in that engine."""
    return benches.of(request, which, tmp_path)

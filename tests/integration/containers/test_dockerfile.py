"""docker/Dockerfile, really built: on a small base with a torch that only says its version.

The layer of docker/jupyter.Dockerfile is built on top of it, and started.
"""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci_perf.errors import EngineError
from ci_perf.launch.containers import building
from ci_perf.launch.containers.building import Recipe
from tests.containers import images, roots, wheels

pytestmark = pytest.mark.container

ROOT = Path(__file__).parents[3]
LOCK = Path("requirements/container.txt")
JUPYTER_LOCK = Path("requirements/jupyter.txt")
# No compiler is in the base, and none is needed: these say yes to everything.
COMPILERS = ("gcc", "g++")
# The module torch.version.
NO_CUDA = {"version": "cuda = None\n"}
# What wheels may expect of every Linux, by PEP 599, as far as these do.
LIBRARIES = ["libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1"]
LIBRARIES += ["libstdc++.so.6", "libutil.so.1"]
AS_ROOT = ("--user", "0:0")
CACHES_OF_PIP = """
import os
for folder, inner, _ in os.walk("/"):
    if folder == "/":
        inner[:] = set(inner) - {"proc", "sys"}
    if folder.endswith("/.cache/pip"):
        print(folder)
"""


TOKEN = "0123456789abcdef" * 2
# The answers of the server: its API with no token, a wrong and the right one, then the page of
# JupyterLab with none (as the path that it leads to) and with the right one.
ASK_JUPYTER = """
import http.client, sys, time
def ask(path, token=""):
    connection = http.client.HTTPConnection("127.0.0.1", 8888, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"token {token}"} if token else {})
    answer = connection.getresponse()
    answer.read()
    return (answer.getheader("Location") or "").partition("?")[0] or answer.status
for _ in range(600):
    try:
        ask("/api")
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
wrong, right = "f" * 32, sys.argv[1]
print(ask("/api/status"), ask("/api/status", wrong), ask("/api/status", right))
print(ask("/lab"), ask("/lab", right))
"""


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """Give the wheels of both locks, for this Python: what an index would be asked for."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    for lock in (LOCK, JUPYTER_LOCK):
        subprocess.run([*command, "--requirement", ROOT / lock], check=True)
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def other_torch(tmp_path_factory):
    """Give the wheel of a torch that is not the base's."""
    return wheels.make(tmp_path_factory.mktemp("torch"), "torch", "99.0", modules=NO_CUDA)


@pytest.fixture(scope="module")
def index(locked, other_torch, tmp_path_factory):
    with wheels.served([*locked, other_torch], tmp_path_factory.mktemp("index")) as address:
        yield address


@pytest.fixture(scope="module")
def base(docker, tmp_path_factory):
    image = _base(docker, tmp_path_factory.mktemp("base"))
    yield image
    docker.ask("image", "rm", "--force", image)


@pytest.fixture
def lesser(docker, base, tmp_path):
    """Return a function that makes a base which lacks something."""
    tag = f"ci-perf-test-lesser:{tmp_path.name.lower()}"

    def lesser(what):
        dockerfile = tmp_path / "Dockerfile"
        dockerfile.write_text(f"FROM {base}\nRUN rm -r {what}\n")
        recipe = Recipe(context=tmp_path, dockerfile=dockerfile)
        return building.build(docker, recipe, tag=tag, labels={}, network="none", hear=print)

    yield lesser
    docker.ask("image", "rm", "--force", tag)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Give a copy of what goes into a build, in which a test may change something."""
    copy = tmp_path_factory.mktemp("context")
    for name in (".dockerignore", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    for name in ("ci_perf", "docker", "examples", "requirements", "workloads"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def build(docker, index, context):
    """Return a function that builds with a lock; its images are removed afterwards."""
    tags = []

    def build(base, lock, hear=print):
        (context / LOCK).write_text(lock)
        recipe = Recipe(
            context=context,
            dockerfile=context / "docker/Dockerfile",
            base=base,
            arguments={"PIP_INDEX_URL": index},
        )
        inputs = building.inputs(recipe)
        tags.append(building.default_tag(inputs))
        told = building.labels(recipe, inputs)
        return building.build(
            docker, recipe, tag=tags[-1], labels=told, network="host", hear=hear
        ), told

    yield build
    for tag in tags:
        docker.ask("image", "rm", "--force", tag)


@pytest.fixture(scope="module")
def built(build, base):
    """Build once, with the lock that everybody gets."""
    return build(base, (ROOT / LOCK).read_text())


@pytest.fixture(scope="module")
def inside(docker, built):
    """Return a function that runs a command in the image, as nobody in particular."""
    image, _ = built

    def inside(*command, user=()):
        return docker.must("run", "--rm", "--network", "none", *user, image, *command)

    return inside


def test_what_runs_is_a_user_with_a_name_and_no_rights(inside):
    assert inside("id") == "uid=10001(ci-perf) gid=10001(ci-perf) groups=10001(ci-perf)"


def test_the_image_is_of_use_by_itself(inside):
    assert "ci-perf, version" in inside("ci-perf", "--version")
    assert "matmul" in inside("ci-perf", "list", "--suite", "builtin:smoke")


def test_every_package_of_the_lock_is_there_beside_the_torch_of_the_base(inside):
    said = inside("python3", "-c", "import torch, transformers, pynvml; print(torch.__version__)")

    assert said.endswith("2.13.0+cpu")


@pytest.mark.parametrize("user", [(), ("--user", "4242:4242")], ids=["its own", "the caller's"])
def test_caches_and_home_can_be_written_by_everybody(inside, user):
    script = 'touch "$HOME/a" "$TORCHINDUCTOR_CACHE_DIR/a" "$TRITON_CACHE_DIR/a" && echo written'

    assert inside("sh", "-c", script, user=user) == "written"


def test_what_was_built_from_what_can_be_read_from_the_image(docker, built):
    image, told = built
    template = '{{range $k, $v := .Config.Labels}}{{$k}}={{$v}}{{"\\n"}}{{end}}'
    lines = docker.must("image", "inspect", "--format", template, image).splitlines()
    found = dict(line.split("=", 1) for line in lines if line)

    assert told.items() <= found.items()
    assert {"dev.ci_perf.inputs", "dev.ci_perf.lock"} <= set(told)
    assert found["org.opencontainers.image.title"] == "ci-perf"


def test_neither_ssh_nor_jupyter_nor_a_cache_of_pip_is_in_it(inside):
    packages = inside("python3", "-m", "pip", "list", "--format=freeze").lower()
    programs = inside("sh", "-c", "ls /usr/bin /usr/sbin /usr/local/bin 2>&1 || true")
    leftovers = inside("sh", "-c", "ls -d /tmp/* 2>/dev/null || true", user=AS_ROOT)
    caches = inside("python3", "-c", CACHES_OF_PIP, user=AS_ROOT)

    assert "msgspec==" in packages
    assert "jupyter" not in packages
    assert not {"sshd", "ssh", "jupyter", "jupyter-lab"} & set(programs.split())
    assert leftovers == ""
    assert caches == ""


def test_a_file_that_is_not_the_one_that_was_locked_ends_the_build(build, base):
    lock = (ROOT / LOCK).read_text()
    wrong = "\n".join(
        line[:-64].split("sha256:")[0] + "sha256:" + "0" * 64 + " \\" * line.endswith("\\")
        if "sha256:" in line
        else line
        for line in _only(lock, "mdurl")
    )

    with failing_build("another file than the one that was locked"):
        build(base, wrong)


def test_a_lock_without_hashes_ends_the_build(build, base):
    with failing_build("the lock has a requirement without version or hash"):
        build(base, "mdurl==0.1.2\n")


def test_a_lock_that_names_torch_ends_the_build(build, base, other_torch):
    with failing_build("expected to keep its torch, 2.13.0+cpu (CUDA None)", "found 99.0"):
        build(base, wheels.locked(other_torch))


def test_a_base_without_torch_is_refused_before_anything_is_installed(build, lesser):
    with failing_build("base image: expected torch, found none in"):
        build(lesser(f"{_packages(roots.of_python('pip'))}/torch"), "")


def test_a_base_without_compilers_and_without_apt_is_refused(build, lesser):
    with failing_build("a base needs compilers, or apt-get to install them"):
        build(lesser("/usr/bin/gcc"), "")


@pytest.fixture(scope="module")
def jupyter(docker, built, index, context):
    """Build docker/jupyter.Dockerfile on top of the image; give the id."""
    image, _ = built
    recipe = Recipe(
        context=context,
        dockerfile=context / "docker/jupyter.Dockerfile",
        arguments={"PIP_INDEX_URL": index, "CI_PERF_IMAGE": image},
    )
    tag = "ci-perf-test-jupyter"
    yield building.build(docker, recipe, tag=tag, labels={}, network="host", hear=print)
    docker.ask("image", "rm", "--force", tag)


@pytest.fixture(scope="module")
def server(docker, jupyter):
    """Start the layer as its own first lines say, but for the port; give the container's id."""
    told = ("--env", f"JUPYTER_TOKEN={TOKEN}", "--network", "none")
    container = docker.must("run", "--detach", *told, jupyter)
    yield container
    docker.must("rm", "--force", container)


def test_jupyter_is_not_started_without_a_long_token(docker, jupyter):
    for told in ((), ("--env", "JUPYTER_TOKEN=short")):
        answer = docker.ask("run", "--rm", "--network", "none", *told, jupyter)

        assert answer.code == 2
        assert "JUPYTER_TOKEN: expected at least 32 characters, found" in answer.err


def test_jupyter_answers_only_whoever_knows_the_token(docker, server):
    """/api/status is refused by 403; /lab leads to the page that asks for the token."""
    said = docker.must("exec", server, "python3", "-c", ASK_JUPYTER, TOKEN)

    assert said.split() == ["403", "403", "200", "/login", "200"]


def test_jupyter_is_no_image_of_ci_perf_and_runs_as_nobody_in_particular(docker, jupyter, server):
    label = '{{index .Config.Labels "dev.ci_perf.inputs"}}'

    assert docker.must("image", "inspect", "--format", label, jupyter) == ""
    assert docker.must("exec", server, "id", "-u") == "10001"
    assert TOKEN not in docker.ask("logs", server).err


@contextlib.contextmanager
def failing_build(*said):
    with pytest.raises(EngineError, match="`docker build`: ") as caught:
        yield
    assert all(words in str(caught.value) for words in said), str(caught.value)


def _only(lock, name):
    """Return the lines of a lock that are of one package."""
    lines = lock.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next(n for n, line in enumerate(lines[start:], start) if not line.endswith("\\"))
    return lines[start : end + 1]


def _base(docker, folder):
    root = roots.of_python("pip")
    shared = roots.library_folder()
    root |= {f"{shared}/{name}": Path(shared, name).resolve() for name in LIBRARIES}
    root |= {f"/usr/bin/{compiler}": _agreeing(folder) for compiler in COMPILERS}
    torch = wheels.contents("torch", "2.13.0+cpu", modules=NO_CUDA)
    written = {f"{_packages(root)}/{path}": text for path, text in torch.items()}
    path = f"ENV PATH={roots.PYTHON.parent}:/usr/local/bin:/usr/bin:/bin"  # where pip puts programs
    return images.import_into(docker, root, path, written=written)


def _packages(root):
    """Return where packages lie in a root that has pip."""
    return next(
        at.removesuffix("/pip/__init__.py") for at in root if at.endswith("/pip/__init__.py")
    )


def _agreeing(folder):
    program = folder / "agreeing"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    return program

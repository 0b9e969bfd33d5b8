"""docker/Dockerfile, really built: on a small base with a torch that only says its version.

The layer of docker/jupyter.Dockerfile is built on top of it, and started.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.features.containers.helpers import engines, images, roots, wheels

pytestmark = pytest.mark.container

ROOT = Path(__file__).parents[4]
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
    _remove(docker, image)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Give a copy of what goes into a build, in which a test may change something."""
    copy = tmp_path_factory.mktemp("context")
    for name in (".dockerignore", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    for name in ("ci_perf", "docker", "examples", "requirements", "workloads"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def ask_build(docker, index, context):
    """Return a function that runs a build with a lock and returns the answer, and its tag."""
    tags = []

    def ask_build(base, lock, dockerfile="docker/Dockerfile", argument="BASE_IMAGE"):
        (context / LOCK).write_text(lock)
        tags.append(f"ci-perf-test-dockerfile:{len(tags)}")
        arguments = ("--build-arg", f"{argument}={base}", "--build-arg", f"PIP_INDEX_URL={index}")
        file = ("--file", str(context / dockerfile), "--force-rm", "--network", "host")
        told = ("build", "--tag", tags[-1], *file, *arguments, str(context))
        return docker.ask(*told, timeout_s=1200), tags[-1]

    yield ask_build
    _remove(docker, *tags)


@pytest.fixture(scope="module")
def build(ask_build):
    """Return a function that builds and returns the tag."""

    def build(*arguments):
        answer, tag = ask_build(*arguments)
        assert answer.code == 0, answer.out + answer.err
        return tag

    return build


@pytest.fixture(scope="module")
def refused(ask_build):
    """Return a function that runs a build which fails, and returns what was said."""

    def refused(*arguments):
        answer, _ = ask_build(*arguments)
        assert answer.code != 0, answer.out
        return answer.out + answer.err

    return refused


@pytest.fixture(scope="module")
def built(build, base):
    """Build once, with the lock that everybody gets."""
    return build(base, (ROOT / LOCK).read_text())


@pytest.fixture(scope="module")
def inside(docker, built):
    """Return a function that runs a command in the image, as nobody in particular."""

    def inside(*command, user=()):
        return docker.must("run", "--rm", "--network", "none", *user, built, *command)

    return inside


def test_the_image_is_of_use_by_itself_beside_the_torch_of_its_base(inside):
    versions = "import torch, transformers, pynvml; print(torch.__version__)"

    assert inside("id") == "uid=10001(ci-perf) gid=10001(ci-perf) groups=10001(ci-perf)"
    assert "ci-perf, version" in inside("ci-perf", "--version")
    assert "matmul" in inside("ci-perf", "list", "--suite", "builtin:smoke")
    assert inside("python3", "-c", versions).endswith("2.13.0+cpu")


@pytest.mark.parametrize("user", [(), ("--user", "4242:4242")], ids=["its own", "the caller's"])
def test_caches_and_home_can_be_written_by_everybody(inside, user):
    script = 'touch "$HOME/a" "$TORCHINDUCTOR_CACHE_DIR/a" "$TRITON_CACHE_DIR/a" && echo written'

    assert inside("sh", "-c", script, user=user) == "written"


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


def test_a_lock_is_held_to_its_hashes(refused, base):
    lock = (ROOT / LOCK).read_text()
    wrong = re.sub("sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", _only(lock, "mdurl"))

    assert "DO NOT MATCH THE HASHES" in refused(base, wrong)
    assert "Hashes are required in --require-hashes mode" in refused(base, "mdurl==0.1.2\n")


def test_a_lock_that_names_torch_ends_the_build(refused, base, other_torch):
    said = refused(base, wheels.locked(other_torch))

    assert "base image: expected to keep its torch, 2.13.0+cpu (CUDA None)" in said
    assert "found 99.0" in said


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("{packages}/torch", "base image: expected torch, found none in"),
        ("/usr/bin/gcc", "base image: expected a gcc that compiles for Python, found none"),
    ],
)
def test_a_base_that_lacks_something_is_refused(docker, refused, base, what, words):
    lacking = what.format(packages=_packages(roots.of_python("pip")))
    container = docker.must("create", "--user", "0", base, "rm", "-r", lacking)
    docker.must("start", "--attach", container)
    lesser = docker.must("commit", container)
    docker.must("rm", container)

    assert words in refused(lesser, "")
    docker.ask("rmi", "--force", lesser)  # layers of the build that failed may hold it


@pytest.fixture(scope="module")
def jupyter(build, built):
    """Build docker/jupyter.Dockerfile on top of the image; give the tag."""
    lock = (ROOT / LOCK).read_text()
    return build(built, lock, "docker/jupyter.Dockerfile", "CI_PERF_IMAGE")


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


def test_jupyter_runs_as_nobody_in_particular_and_logs_no_token(docker, server):
    assert docker.must("exec", server, "id", "-u") == "10001"
    assert TOKEN not in docker.ask("logs", server).err


def _remove(docker, *built):
    """Remove images from the machine's own docker; ours goes as a whole, which is faster."""
    if not engines.folder_of(docker):
        docker.ask("image", "rm", "--force", *built)


def _only(lock, name):
    """Return the part of a lock that is of one package."""
    return next(re.finditer(rf"^{name}==(.*\\\n)*.*\n", lock, re.MULTILINE))[0]


def _base(docker, folder):
    root = roots.of_python("pip")
    shared = roots.library_folder()
    root |= {f"{shared}/{name}": Path(shared, name).resolve() for name in LIBRARIES}
    root |= {f"/usr/bin/{compiler}": _agreeing(folder) for compiler in COMPILERS}
    torch = wheels.contents("torch", "2.13.0+cpu", modules=NO_CUDA)
    written = {f"{_packages(root)}/{path}": text for path, text in torch.items()}
    path = f"ENV PATH={roots.PYTHON.parent}:/usr/local/bin:/usr/bin:/bin"  # where pip puts programs
    # Few of a thousand modules are ever imported here.
    return images.import_into(docker, root, path, "ENV PIP_COMPILE=0", written=written)


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

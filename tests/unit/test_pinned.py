"""What is taken from elsewhere is named so that it can be nothing else tomorrow."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "docker").glob("*Dockerfile"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
# What a base is when the person who builds must say it: nothing is built by default.
NOBODYS = ""
# What opens a door into a container that measures.
DOORS = re.compile(r"jupyter|notebook|openssh|paramiko|ssh")

by_dockerfile = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
by_lock = pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)


def instructions(path):
    """Return the instructions of a Dockerfile as (word, rest), comments and line ends removed."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [(word.upper(), rest) for word, _, rest in (line.partition(" ") for line in lines)]


def bases(path):
    """Return the image of each FROM, with the defaults of the arguments that it names."""
    arguments, stages, found = {}, set(), []
    for word, rest in instructions(path):
        if word == "ARG":
            name, _, default = rest.partition("=")
            arguments[name] = default
        if word == "FROM":
            image, *named = [part for part in rest.split() if not part.startswith("--")]
            if image not in stages:
                found.append(re.sub(r"\$\{?(\w+)\}?", lambda one: arguments[one[1]], image))
            stages |= set(named[1:])
    return found


def packages(path):
    return re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE)


def test_there_are_dockerfiles_to_look_at():
    assert [path.name for path in DOCKERFILES] == ["Dockerfile", "jupyter.Dockerfile"]


@by_dockerfile
def test_hadolint_finds_nothing(path):
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, path], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")


@by_dockerfile
def test_every_base_has_a_digest_or_must_be_named_by_whoever_builds(path):
    found = bases(path)

    assert found
    assert all(image == NOBODYS or DIGEST.fullmatch(image) for image in found), found


def test_the_image_that_measures_has_a_base_by_default():
    assert NOBODYS not in bases(ROOT / "docker/Dockerfile")


@by_dockerfile
def test_nothing_is_fetched_but_by_package_managers(path):
    words = [word for word, _ in instructions(path)]
    runs = " ".join(rest for word, rest in instructions(path) if word == "RUN")

    assert "ADD" not in words
    assert "://" not in runs
    assert not re.search(r"\b(curl|wget|git)\b", runs)


@by_dockerfile
def test_pip_installs_nothing_without_hashes(path):
    runs = " ".join(rest for word, rest in instructions(path) if word == "RUN")
    installs = re.split(r"pip install", runs)[1:]

    assert installs
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)
    assert all("--no-deps" in one for one in installs)


@by_dockerfile
def test_nobody_is_root_when_it_runs(path):
    users = [rest for word, rest in instructions(path) if word == "USER"]

    assert users[-1] == "10001:10001"


def test_no_door_is_open_in_the_image_that_measures():
    names = [name for name, _ in packages(ROOT / "requirements/container.txt")]

    assert names
    assert [name for name in names if DOORS.search(name)] == []
    assert "EXPOSE" not in [word for word, _ in instructions(ROOT / "docker/Dockerfile")]
    assert not re.search(r"jupyter|sshd?\b", (ROOT / "docker/Dockerfile").read_text())


@by_lock
def test_every_line_of_a_lock_has_a_hash_and_no_address(path):
    text = path.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line[:1] not in ("", "#", " ")]

    assert lines
    assert all("==" in line and "--hash=sha256:" in line for line in lines)
    assert "://" not in text
    assert not re.search(r"^\s*--?[a-z]+", text, re.MULTILINE), "an option"


@pytest.mark.parametrize("name", ["container.txt", "jupyter.txt"])
def test_neither_torch_nor_what_only_torch_needs_is_locked_for_an_image(name):
    names = {name for name, _ in packages(ROOT / "requirements" / name)}

    assert not {"torch", "triton", "sympy", "networkx"} & names
    assert {name for name in names if name.startswith("nvidia-")} <= {"nvidia-ml-py"}


def test_the_image_gets_the_versions_that_we_test_with():
    ours = dict(
        re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    )
    image = dict(packages(ROOT / "requirements/container.txt"))

    assert {"click", "hatchling", "jinja2", "msgspec", "numpy", "nvidia-ml-py", "rich"} <= set(
        image
    )
    assert {name: ours[name] for name in image if name in ours}.items() <= image.items()


def test_no_package_has_two_versions_in_one_image():
    ours, jupyters = (
        dict(packages(ROOT / "requirements" / name)) for name in ("container.txt", "jupyter.txt")
    )

    assert {name: jupyters[name] for name in ours if name in jupyters}.items() <= ours.items()


def test_no_file_uses_an_action_by_a_name_that_can_move():
    files = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    texts = [(ROOT / name).read_text() for name in files if name.endswith((".yml", ".yaml"))]
    uses = [
        one for text in texts for one in re.findall(r"^[\s-]*uses:\s*(\S+)", text, re.MULTILINE)
    ]

    assert uses
    assert [one for one in uses if not re.fullmatch(r"[.$]/.*|\S+@[0-9a-f]{40}", one)] == []

"""Builds by real engines: what goes in, what comes out, and what is said when nothing does."""

import os
import subprocess
import sys

import pytest

from ci_perf.errors import EngineError
from ci_perf.launch.containers import building
from ci_perf.launch.containers.building import Recipe

pytestmark = pytest.mark.container

TAG = "ci-perf-test-building:1"
# Files, and patterns that leave some of them out, each in a way of its own.
TREE = (
    *("a.txt", "a.log", "keep.log", "deep/a.log", "deep/er/a.log", "deep/er/keep.log"),
    *("build/out.bin", "build/keep/out.bin", "src/a.py", "src/__pycache__/a.pyc", "src/data/x1"),
    *("src/data/x2", "src/data/xy", "with space/a", ".hidden/a", "docs/a.md", "docs/b.md"),
)
PATTERNS = {
    "stars": ["*.log", "!keep.log", "**/*.pyc"],
    "any depth": ["**/*.log", "!deep/er/keep.log"],
    "only some": ["*", "!src", "**/__pycache__", "!docs/a.md", "!build/keep"],
    "spelling": ["/build/", "./docs", "src/data/x?", "with space", "# a.txt", "", "!docs/b.md"],
    "choices": ["src/data/x[0-9]", "src/data/x[^0-9]", ".h*"],
    "folders": ["deep/**", "**/er", "!deep/a.log", "!deep/*/a.log"],
}


@pytest.fixture
def folder(tmp_path):
    """A context with a tree of files; its Dockerfile copies all that it can see."""
    for name in TREE:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "tree/Dockerfile").write_text("FROM scratch\nCOPY . /seen/\nCMD ['no']\n")
    return tmp_path / "tree"


@pytest.fixture
def build(docker, folder):
    """Return a function that builds, and leaves no image."""

    def build(**changes):
        recipe = Recipe(**{"context": folder, "dockerfile": folder / "Dockerfile", **changes})
        building.check_base(recipe)
        told = building.labels(recipe, building.inputs(recipe))
        return building.build(docker, recipe, tag=TAG, labels=told, network="none", hear=print)

    yield build
    docker.ask("image", "rm", "--force", TAG)


@pytest.mark.parametrize("patterns", PATTERNS.values(), ids=PATTERNS)
def test_what_we_hash_is_what_the_engine_is_sent(build, folder, docker, tmp_path, patterns):
    (folder / ".dockerignore").write_text("\n".join(["Dockerfile", ".dockerignore", *patterns]))

    assert seen_in(docker, build(), tmp_path) == [
        str(path) for path in building.visible_files(folder)
    ]


def test_a_base_is_taken_by_its_digest(build, folder, docker, registry, shell_image):
    base = registry.push(shell_image, "pinned:1")
    (folder / "Dockerfile").write_text(f"ARG BASE_IMAGE={base}\nFROM ${{BASE_IMAGE}}\n")

    image = build()

    label = '{{index .Config.Labels "org.opencontainers.image.base.digest"}}'
    found = docker.must("image", "inspect", "--format", label, image)
    assert base.endswith(f"@{found}")


def test_a_digest_that_the_registry_does_not_have_ends_the_build(build, folder, registry):
    (folder / "Dockerfile").write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n")

    with pytest.raises(EngineError, match="`docker build`: the registry has no such image"):
        build(base=f"{registry.address}/pinned@sha256:{'0' * 64}")


def test_a_step_that_fails_is_shown_once_and_leaves_no_container(
    build, folder, docker, shell_image, capsys
):
    dockerfile = f"FROM {shell_image}\nRUN echo it is $((40 + 2)) >&2 && exit 7\n"
    (folder / "Dockerfile").write_text(dockerfile)
    before = docker.must("ps", "--all", "--quiet")

    with pytest.raises(EngineError, match=r"a step failed \(exit code 7\)") as caught:
        build()

    shown = capsys.readouterr().out
    assert shown.count("it is 42") == 1
    assert "\x1b" not in shown
    assert caught.value.output == ""
    assert docker.must("ps", "--all", "--quiet") == before


def test_podman_builds_the_same_and_says_the_id_in_the_same_form(podman, folder, tmp_path):
    (folder / ".dockerignore").write_text("*\n!src\n**/*.pyc\n")
    (folder / ".containerignore").write_text("src\n")
    recipe = Recipe(context=folder, dockerfile=folder / "Dockerfile")

    image = building.build(podman, recipe, tag=TAG, labels={}, network="none", hear=print)

    seen = [str(path) for path in building.visible_files(folder)]
    assert image.startswith("sha256:")
    assert seen_in(podman, image, tmp_path) == seen
    podman.must("image", "rm", "--force", image)


def test_the_command_shows_the_id_and_nothing_else_on_stdout(docker, folder):
    done = command(docker, str(folder), "--file", str(folder / "Dockerfile"), "--tag", TAG)

    assert done.returncode == 0, done.stderr
    image = docker.must("image", "inspect", "--format", "{{.Id}}", TAG)
    assert done.stdout == f"{image}\n"
    assert f"built {TAG} from sha256:" in done.stderr
    docker.must("image", "rm", "--force", TAG)


def test_the_command_refuses_a_base_without_a_digest(docker, folder):
    done = command(docker, str(folder), "-f", str(folder / "Dockerfile"), "--base", "python:3.13")

    assert done.returncode == 2
    assert "python:3.13: expected one with its digest" in done.stderr


def command(engine, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ci_perf", "image", "build", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **engine.environment},
    )


def seen_in(engine, image, tmp_path):
    """Return the files below /seen, sorted as paths are."""
    container = engine.must("create", image, "no")
    try:
        engine.must("export", "--output", str(tmp_path / "export.tar"), container)
    finally:
        engine.must("rm", container)
    found = tmp_path / "export"
    found.mkdir()
    subprocess.run(["tar", "-C", found, "-xf", tmp_path / "export.tar"], check=True)
    return [str(path) for path in building.visible_files(found / "seen")]

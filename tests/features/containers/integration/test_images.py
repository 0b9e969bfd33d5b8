"""Which image is measured in, with real engines and a registry: a digest means one image."""

import dataclasses
import tomllib
import uuid

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.containers.launch import images as resolving
from tests.features.containers.helpers import images
from tests.projects import Project

pytestmark = pytest.mark.container

NOWHERE = f"sha256:{'0' * 64}"


@pytest.fixture
def podman(podman, tmp_path):
    """Let podman trust a registry of this machine, as docker does of itself."""
    settings = tmp_path / "registries.conf"
    settings.write_text('[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
    ours = {**podman.environment, "CONTAINERS_REGISTRIES_CONF": str(settings)}
    return dataclasses.replace(podman, environment=ours)


@pytest.fixture(params=["docker", "podman"])
def engine(request):
    """Give each engine in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def name():
    """Name a repository that no other test uses."""
    return f"us/perf-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def project(tmp_path):
    """A project whose suite is not measured in a container yet."""
    return Project(tmp_path).workload("nap").suite("nap")


@pytest.fixture
def an_image():
    """Make an image of one file and give its id; the engine has it until the end of the test."""
    made = []

    def an_image(engine, text, *changes):
        found = images.import_into(engine, {}, *changes, written={"/text": text})
        made.append((engine, found))
        return found

    yield an_image
    for engine, image in made:
        engine.ask("rmi", "--force", image)  # which a test may have done


def resolve(engine, reference, *, allow_unpinned=False):
    """Return the image, and what was said meanwhile."""
    said = []
    image = resolving.resolve(engine, reference, allow_unpinned=allow_unpinned, say=said.append)
    return image, said


def pin(project, engine, *arguments):
    return project.run("pin", "--engine", engine.name, *arguments, **engine.environment)


def image_in(project):
    text = (project.root / "workloads/suite.toml").read_text()
    return tomllib.loads(text).get("container", {}).get("image")


def test_a_tag_becomes_the_digest_that_the_push_has_printed(
    engine, docker, registry, name, project, an_image
):
    pushed = registry.push(an_image(docker, "one"), f"{name}:2.13")
    tag = f"{registry.address}/{name}:2.13"
    project.suite("nap", extra=f'[container] # where\nimage = "{tag}" # ours\npids = 64\n')
    done = pin(project, engine)

    assert done.code == ExitCode.OK, done.err
    assert done.out.strip() == image_in(project) == f"{tag}@{pushed.partition('@')[2]}"
    assert f"{tag} → {done.out.strip()}" in done.err
    assert (
        f'image = "{image_in(project)}" # ours\n'
        in (project.root / "workloads/suite.toml").read_text()
    )


def test_a_moved_tag_moves_no_pinned_run_until_it_is_pinned_again(
    engine, docker, registry, name, project, an_image
):
    one, two = an_image(docker, "one"), an_image(docker, "two")
    registry.push(one, f"{name}:1")
    pin(project, engine, f"{registry.address}/{name}:1")
    before = image_in(project)
    moved = registry.push(two, f"{name}:1")

    assert resolve(engine, before)[0].config == one
    assert pin(project, engine, "--pull").code == ExitCode.OK
    assert image_in(project) == f"{registry.address}/{name}:1@{moved.partition('@')[2]}"
    assert resolve(engine, image_in(project))[0].config == two


def test_an_image_that_is_not_here_is_pulled_once_by_its_digest(
    engine, docker, registry, name, an_image
):
    image = an_image(docker, "one")
    pushed = registry.push(image, f"{name}:1")
    docker.must("rmi", "--force", image)
    found, said = resolve(engine, pushed)

    assert (found.config, found.digest, found.is_pinned) == (image, pushed.partition("@")[2], True)
    assert (found.engine, found.engine_version) == (engine.name, engine.version())
    assert said == [f"{engine.name} pulls {pushed}"]
    assert resolve(engine, pushed) == (found, [])
    assert resolve(engine, pushed.replace("@", ":no-such-tag@"))[0].config == image

    engine.must("rmi", pushed)

    assert resolve(engine, pushed) == (found, said)


def test_an_image_that_was_never_pushed_is_pinned_by_its_id_when_that_is_wanted(
    engine, name, project, an_image
):
    image = an_image(engine, "here")
    built = f"localhost/{name}:dev"
    engine.must("tag", image, built)
    refused = pin(project, engine, built)

    assert refused.code == ExitCode.USAGE
    assert f"with --local: {image}" in refused.err
    assert image_in(project) is None

    done = pin(project, engine, built, "--local")

    assert done.code == ExitCode.OK
    assert "means something on this host only" in done.err
    assert image_in(project) == image
    assert resolve(engine, image)[0].config == image


def test_a_digest_that_podman_shows_for_what_no_registry_has_is_not_believed(
    podman, registry, name, project, an_image
):
    podman.must("tag", an_image(podman, "here"), f"{registry.address}/{name}:1")
    done = pin(project, podman, f"{registry.address}/{name}:1")

    assert done.code == ExitCode.NO_ANSWER
    assert "its registry does not give it" in done.err
    assert image_in(project) is None

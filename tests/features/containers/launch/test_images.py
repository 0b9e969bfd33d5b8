"""Which image is measured in, with an engine that is a script of a few lines."""

import json

import pytest

from ci_perf.errors import EngineError, UsageError
from ci_perf.features.containers.launch import engine as engines
from ci_perf.features.containers.launch import images
from tests.runs import an_image

HEX, OTHER = "0123456789abcdef" * 4, "fedcba9876543210" * 4
ID, DIGEST = f"sha256:{HEX}", f"sha256:{OTHER}"
PINNED = f"ghcr.io/us/perf:2.13@{DIGEST}"

_SCRIPT = """#!/bin/sh
cd "{folder}"
echo "$@" >> asked
case "$1" in
version) echo 20.10.24 ;;
pull) mv registry host 2> /dev/null || {{ echo "manifest unknown" >&2; exit 1; }} ;;
image)
    case "$3" in *"{only}"*) cat host 2> /dev/null && exit ;; esac
    echo "{unknown}" >&2
    exit 1
    ;;
esac
"""


class Stage:
    """An engine that answers from two files: what the host has, and what the registry has.

    It has it by every name in which `only` occurs.
    """

    def __init__(self, folder, name="docker", *, unknown="Error: No such image: x", only=""):
        self.folder, self.said = folder, []
        program = folder / name
        program.write_text(_SCRIPT.format(folder=folder, unknown=unknown, only=only))
        program.chmod(0o755)
        self.engine = engines.find(name, {"PATH": f"{folder}:/usr/bin:/bin"})

    def has(self, where="host", **facts):
        (self.folder / where).write_text(json.dumps([{"Size": 1, "Id": ID, **facts}]))
        return self

    def resolve(self, reference=PINNED, *, allow_unpinned=False):
        return images.resolve(
            self.engine, reference, allow_unpinned=allow_unpinned, say=self.said.append
        )

    @property
    def asked(self):
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("pytorch/pytorch:2.13.0", "found the tag '2.13.0'"),
        ("pytorch/pytorch:latest", "found the tag 'latest'"),
        ("pytorch/pytorch", "found neither digest nor tag, which means 'latest'"),
    ],
)
def test_an_image_that_may_be_another_tomorrow_is_refused_with_the_command_that_pins_it(
    reference, found
):
    with pytest.raises(UsageError, match="pinned") as error:
        images.check(reference, allow_unpinned=False)

    assert str(error.value).startswith(f"image {reference}: expected one that is pinned")
    assert found in str(error.value)
    assert f"`ci-perf pin {reference}`" in str(error.value)
    assert "allow-unpinned=true" in str(error.value)


@pytest.mark.parametrize("reference", [PINNED, f"perf@{DIGEST}", ID])
def test_a_digest_and_an_id_are_pinned(reference):
    images.check(reference, allow_unpinned=False)

    assert images.is_pinned(reference)


def test_whoever_allows_a_tag_gets_it_but_never_what_is_no_reference():
    images.check("perf:dev", allow_unpinned=True)

    with pytest.raises(UsageError, match="image '--privileged': expected NAME:TAG"):
        images.check("--privileged", allow_unpinned=True)


def test_without_a_prefix_every_image_is_allowed_and_with_some_only_theirs():
    assert images.is_allowed(PINNED, [])
    assert images.is_allowed(ID, [])
    assert images.is_allowed(PINNED, ["pytorch/pytorch", "ghcr.io/us"])
    assert not images.is_allowed(PINNED, ["ghcr.io/usurper", "docker.io"])
    assert not images.is_allowed(ID, ["ghcr.io/us"])


def test_a_wrong_prefix_is_told_even_where_another_one_matches():
    with pytest.raises(UsageError, match="--container allow-image=us/perf:1: expected a registry"):
        images.is_allowed(PINNED, ["ghcr.io/us", "us/perf:1"])


def test_an_image_that_is_here_is_not_pulled(stage):
    stage.has(RepoDigests=[f"ghcr.io/us/perf@{DIGEST}"])

    assert stage.resolve() == an_image(engine_version="20.10.24")
    assert stage.asked[1:] == [f"image inspect ghcr.io/us/perf@{DIGEST}"]
    assert stage.said == []


OTHER_DIGEST = json.dumps([{"Size": 1, "Id": ID, "RepoDigests": [f"ghcr.io/us/perf@{ID}"]}])


@pytest.mark.parametrize(
    ("host", "reference", "message"),
    [
        (OTHER_DIGEST, PINNED, f"expected this digest, found .*perf@{ID}"),
        (OTHER_DIGEST, DIGEST, f"expected this id, found {ID}"),
        ("<html>", PINNED, "`docker image inspect`: expected JSON of one image"),
        ("", ID, "An id is known only on the host that built"),
    ],
    ids=["another digest", "another id", "no JSON", "an id of another host"],
)
def test_an_image_that_is_not_the_one_that_was_named_is_refused(stage, host, reference, message):
    if host:
        (stage.folder / "host").write_text(host)

    with pytest.raises(EngineError, match=message):
        stage.resolve(reference)
    assert not any(line.startswith("pull") for line in stage.asked)


def test_a_registry_that_refuses_is_told_and_nothing_is_made_up(stage):
    with pytest.raises(EngineError) as error:
        stage.resolve()

    assert "manifest unknown" in error.value.output


def test_a_tag_that_is_allowed_is_resolved_to_what_the_host_has_and_marked(stage):
    stage.has(RepoDigests=[f"quay.io/x@{ID}", f"ghcr.io/us/perf@{DIGEST}"])
    found = stage.resolve("ghcr.io/us/perf", allow_unpinned=True)

    assert (found.digest, found.is_pinned) == (DIGEST, False)
    assert stage.asked[-1] == "image inspect ghcr.io/us/perf:latest"


def test_a_tag_is_refused_before_the_engine_is_asked(stage):
    with pytest.raises(UsageError):
        stage.resolve("perf:dev")

    assert not (stage.folder / "asked").exists()


def test_what_was_built_here_has_no_digest_of_a_registry_whatever_podman_shows(tmp_path):
    stage = Stage(tmp_path, "podman").has(RepoDigests=[f"localhost/perf@{DIGEST}"])

    assert stage.resolve("localhost/perf:dev", allow_unpinned=True).digest == ""


def test_podman_is_not_sent_to_a_registry_for_what_it_has_built(tmp_path):
    stage = Stage(tmp_path, "podman", only="localhost/").has()

    with pytest.raises(UsageError, match="found localhost/perf:dev, which was built here"):
        stage.resolve("perf:dev", allow_unpinned=True)


def test_an_engine_that_fails_in_another_way_is_not_taken_for_a_missing_image(tmp_path):
    stage = Stage(tmp_path, unknown="permission denied while trying to connect")

    with pytest.raises(EngineError):
        stage.resolve()
    assert not any(line.startswith("pull") for line in stage.asked)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (an_image(), "perf@sha256:fedcba987654"),
        (an_image(reference=f"mirror.local:5000/hub/us/perf@{DIGEST}"), "perf@sha256:fedcba987654"),
        (an_image(reference="perf", is_pinned=False), "perf@sha256:fedcba987654"),
        (an_image(digest="", reference=ID), "sha256:0123456789ab"),
        (an_image(digest="", reference="perf:dev"), "sha256:0123456789ab"),
    ],
)
def test_an_image_is_compared_by_a_name_that_it_has_on_every_machine(image, name):
    assert images.name_for_comparison(image) == name


def test_a_long_name_does_not_push_the_digest_out_of_a_report():
    name = images.name_for_comparison(an_image(reference=f"ghcr.io/us/{'x' * 200}@{DIGEST}"))

    assert name.endswith("@sha256:fedcba987654")
    assert len(name) <= 80

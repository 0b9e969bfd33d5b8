"""What an engine says of itself becomes facts; one that is silent says why, and what to do."""

import json

import pytest

from ci_perf.doctor import container_facts, machine_facts
from ci_perf.model.facts import EngineAnswer, EngineSilence

# As docker 20.10 answers `info --format '{{json .}}'`, with code 0, when there is no daemon.
DEAD = {
    "ServerErrors": [
        "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?"
    ],
    "ClientInfo": {"Debug": False, "Context": "default", "Plugins": [], "Warnings": None},
}
DOCKER = {
    "ServerVersion": "28.2.2",
    "Driver": "overlay2",
    "CgroupVersion": "2",
    "Architecture": "x86_64",
    "DockerRootDir": "/var/lib/docker",
    "Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}},
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
}
PODMAN = {
    "host": {"arch": "amd64", "cgroupVersion": "v2", "security": {"rootless": True}},
    "store": {"graphDriverName": "overlay", "graphRoot": "/home/r/.local/share/containers"},
    "version": {"Version": "4.3.1"},
}


@pytest.fixture
def look(tmp_path):
    """Look at an engine whose program answers with this."""

    def ask(name, said):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
        program.chmod(0o755)
        environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        sources = machine_facts.Sources(
            root=tmp_path, environ=environ, temporary=tmp_path, space=lambda _path: None
        )
        return container_facts.ask_engine(name, sources)

    return ask


def test_a_docker_that_answers(look):
    engine = look("docker", json.dumps(DOCKER))

    assert engine == EngineAnswer(
        name="docker",
        version="28.2.2",
        rootless=True,
        storage="overlay2",
        cgroups="2",
        architecture="x86_64",
        data=None,
        nvidia_runtime=True,
        knows_cdi=True,
    )


def test_a_docker_that_tells_its_trouble_only_in_its_answer(look):
    engine = look("docker", json.dumps(DEAD))

    assert isinstance(engine, EngineSilence)
    assert engine.is_installed
    assert "expected a running daemon at unix:///x.sock" in engine.why
    assert "systemctl start docker" in engine.next_step


def test_a_podman_that_answers(look):
    engine = look("podman", json.dumps(PODMAN))

    assert isinstance(engine, EngineAnswer)
    assert (engine.version, engine.rootless, engine.storage) == ("4.3.1", True, "overlay")
    assert (engine.cgroups, engine.architecture, engine.nvidia_runtime) == ("2", "amd64", False)


@pytest.mark.parametrize("said", ["not json", "[]", '{"host": 3}'])
def test_an_engine_that_talks_nonsense_is_silent(look, said):
    engine = look("podman", said)

    assert isinstance(engine, EngineSilence)
    assert "expected JSON" in engine.why
    assert engine.next_step


def test_words_that_nobody_knows_are_not_sent_back_to_the_doctor(look, tmp_path):
    look("docker", "")
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'something new' >&2\nexit 1\n")

    sources = machine_facts.Sources(
        root=tmp_path, environ={"PATH": f"{tmp_path}:/bin"}, temporary=tmp_path
    )
    engine = container_facts.ask_engine("docker", sources)

    assert isinstance(engine, EngineSilence)
    assert "something new" in engine.why
    assert "by hand" in engine.next_step

"""What a killed ci-perf has left goes at the next start, and nobody else's; engines that die."""

import contextlib
import os
import shutil
import signal
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.containers.launch import stale
from ci_perf.features.containers.launch.arguments import OWNER_LABEL, RUN_LABEL
from tests.features.containers.helpers import engines, images, keeper, roots
from tests.features.containers.integration.runs import Stage, by_name

pytestmark = pytest.mark.container


@pytest.fixture
def stage(tmp_path, in_docker, python_image):
    return Stage(tmp_path, in_docker, python_image)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_what_sigkill_left_is_removed_at_the_next_start(tmp_path, request, name):
    image = {"docker": "python_image", "podman": "podman_python_image"}[name]
    engine = request.getfixturevalue(f"in_{name}")
    stage = Stage(tmp_path, engine, request.getfixturevalue(image))
    process, owner = stage.slow()
    process.kill()
    process.communicate()
    (container,) = stage.of(owner)
    assert list(stage.scratch.iterdir())

    following = stage.start("good")
    _, said = following.communicate(timeout=120)

    assert following.returncode == ExitCode.OK, said
    assert f"removing container {container[:12]}" in said
    assert stage.is_clean(owner)


def test_what_was_left_before_this_host_was_booted_is_removed(stage):
    _, *rest = stale.owner().split(".")
    label = f"{OWNER_LABEL}={'.'.join(('00000000-0000', *rest))}"
    name = ("--name", "ci-perf-0123456789ab-1")
    left = stage.engine.must("create", *name, "--label", label, stage.image, "x")

    process = stage.start("good")
    _, said = process.communicate(timeout=120)

    assert f"removing container {left[:12]}" in said
    assert left not in stage.everybody()


def test_containers_of_the_living_and_of_strangers_are_left_alone(stage):
    locks = stage.folder / "other locks"
    living, owner = stage.slow("--output", "../other.json", CI_PERF_LOCK_DIR=str(locks))
    strangers = made_by_strangers(stage)
    try:
        process = stage.start("good")
        _, said = process.communicate(timeout=120)

        assert process.returncode == ExitCode.OK, said
        assert "removing" not in said
        assert strangers <= stage.everybody()
        assert len(stage.of(owner, "--filter", "status=running")) == 1
    finally:
        stage.engine.must("rm", "--force", *strangers)
        living.send_signal(signal.SIGINT)
        living.communicate(timeout=120)
    assert stage.is_clean(owner)


def made_by_strangers(stage):
    """Make containers that look like ours in one way each."""
    boot, _, *rest = stale.owner(1).split(".")
    dead_elsewhere = ".".join((boot, "1", *rest[:-1], "1"))
    labels = ("", f"{RUN_LABEL}=0123", f"{OWNER_LABEL}={dead_elsewhere}", f"{OWNER_LABEL}=a")
    return {
        stage.engine.must(
            *("create", "--name", f"ci-perf-0123-{number}"),
            *(("--label", label) if label else ()),
            *(stage.image, "x"),
        )
        for number, label in enumerate(labels)
    }


@pytest.fixture
def mortal(docker, tmp_path_factory, monkeypatch):
    """A docker of one test's own, to be killed. Its keeper removes the rest, and says so."""
    if not engines.folder_of(docker):
        pytest.skip("the docker of this machine answers, and no other can be started beside it")
    own = engines._own_docker(tmp_path_factory.mktemp("hooks"), "overlay2")
    found = own.__enter__()
    monkeypatch.setenv("DOCKER_HOST", found.environment["DOCKER_HOST"])
    yield found
    folder = engines.folder_of(found)
    with pytest.raises(engines.NoEngineError):
        own.__exit__(None, None, None)
    assert not folder.exists()


def test_an_engine_that_dies_is_named_and_nothing_waits_for_it(mortal, tmp_path):
    stage = Stage(tmp_path, mortal, images.import_into(mortal, roots.of_python("msgspec", "numpy")))
    workloads = stage.project.root / "workloads"
    shutil.copy(workloads / "good.py", workloads / "last.py")
    stage.project.suite("good", "slow", "last")
    process, _ = stage.slow()

    kill(engines.folder_of(mortal))
    _, said = process.communicate(timeout=120)

    failed = stage.run().failed
    assert process.returncode == ExitCode.NO_ANSWER, said
    assert by_name(stage.run()) == (["good"], ["slow", "last"])
    assert all("expected a running daemon" in one.reason for one in failed)
    assert not list(stage.scratch.iterdir())


def kill(folder):
    """Kill an engine: the daemon and what it has started, and not the keeper, who cleans up."""
    for pid in keeper.processes_of(folder):
        if keeper.__file__ in keeper.arguments(Path(f"/proc/{pid}")):
            continue
        with contextlib.suppress(ProcessLookupError):  # it has died with another
            os.kill(pid, signal.SIGKILL)

"""What a killed ci-perf has left goes at the next start, and nobody else's; engines that die."""

import contextlib
import os
import shutil
import signal
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.containers.launch import stale
from ci_perf.features.containers.launch.arguments import OWNER_LABEL
from tests.features.containers.helpers import engines, images, keeper, roots
from tests.features.containers.integration.runs import Stage, by_name

pytestmark = pytest.mark.container


@pytest.fixture
def stage(tmp_path, in_docker, python_image):
    return Stage(tmp_path, in_docker, python_image)


def test_what_was_left_by_sigkill_or_before_a_boot_is_removed_at_the_next_start(stage):
    process, owner = stage.slow()
    process.kill()
    process.communicate()
    (container,) = stage.of(owner)
    assert list(stage.scratch.iterdir())
    _, *rest = stale.owner().split(".")
    label = f"{OWNER_LABEL}={'.'.join(('00000000-0000', *rest))}"
    name = ("--name", "ci-perf-0123456789ab-1")
    older = stage.engine.must("create", *name, "--label", label, stage.image, "x")

    following = stage.start("good")
    _, said = following.communicate(timeout=120)

    assert following.returncode == ExitCode.OK, said
    assert f"removing container {container[:12]}" in said
    assert f"removing container {older[:12]}" in said
    assert stage.is_clean(owner)
    assert older not in stage.everybody()


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

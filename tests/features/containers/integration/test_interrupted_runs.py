"""A run that a person, a CI or a time limit ends keeps what is finished and leaves nothing."""

import os
import signal
import stat
import time

import pytest

from ci_perf.errors import ExitCode
from ci_perf.features.containers.launch import stale
from tests.features.containers.integration.runs import Stage, by_name
from tests.processes import wait_until
from tests.projects import QUICK

pytestmark = pytest.mark.container

# Does something else before one of docker's commands; otherwise it is docker itself.
WRAPPER = """\
#!/bin/sh
if [ "$1" = "{command}" ]; then
  touch "{note}"
  {then}
fi
exec {docker} "$@"
"""


@pytest.fixture
def stage(tmp_path, in_docker, python_image):
    return Stage(tmp_path, in_docker, python_image)


@pytest.fixture
def put_before(stage, monkeypatch):
    """Return a function that puts words of shell before a command of docker's.

    It returns a file, which is there once that command is given.
    """

    def put(command, then):
        note, program = stage.folder / "reached", stage.folder / "bin/docker"
        program.parent.mkdir()
        docker = stage.engine.program
        program.write_text(WRAPPER.format(command=command, note=note, then=then, docker=docker))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return note

    return put


def test_a_signal_keeps_what_is_finished_and_leaves_nothing(stage):
    process, owner = stage.slow()

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)

    assert process.returncode == ExitCode.INTERRUPTED
    assert by_name(stage.run()) == (["good"], ["slow"])
    assert "interrupted" in {reason.code for reason in stage.run().validity.reasons}
    assert stage.is_clean(owner)


def test_a_storm_of_ctrl_c_at_a_whole_terminal_leaves_nothing(stage):
    process, owner = stage.slow()

    for _ in range(60):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.003)
    process.communicate(timeout=120)

    # One may come when everything is written: then Python ends by the signal itself.
    assert process.returncode in {ExitCode.INTERRUPTED, -signal.SIGINT}
    assert by_name(stage.run()) == (["good"], ["slow"])
    assert stage.is_clean(owner)


@pytest.mark.parametrize("command", ["image", "create", "start", "rm"])
def test_ctrl_c_at_one_of_docker_s_commands_leaves_nothing(stage, put_before, command):
    """A terminal sends it to docker's command as well."""
    go = stage.folder / "go"
    reached = put_before(command, f"until [ -e '{go}' ]; do sleep 0.02; done")
    process = stage.start("good")
    owner = stale.owner(process.pid)
    wait_until(reached.exists)

    os.killpg(process.pid, signal.SIGINT)
    go.touch()
    process.communicate(timeout=120)

    assert process.returncode == ExitCode.INTERRUPTED
    assert stage.is_clean(owner)


def test_ctrl_c_does_not_wait_for_an_image_that_is_pulled(stage, put_before):
    reached = put_before("pull", "exec sleep 611")
    stage.image = f"127.0.0.1:1/nobody@sha256:{'0' * 64}"
    process = stage.start("good")
    wait_until(reached.exists)

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)

    assert process.returncode == ExitCode.INTERRUPTED
    assert said.endswith("interrupted\n")


def test_beyond_its_time_limit_a_workload_says_where_it_hangs_and_leaves_nothing(stage):
    stage.project.suite("slow", settings=QUICK.replace("timeout_s = 20", "timeout_s = 5"))
    process = stage.start()
    owner = stale.owner(process.pid)

    process.communicate(timeout=120)

    (slow,) = stage.run().failed
    assert process.returncode == ExitCode.NO_ANSWER
    assert "no result within the time limit of 5 s" in slow.reason
    assert '"/workspace/workloads/slow.py"' in slow.output
    assert stage.is_clean(owner)


def test_a_container_that_cannot_be_removed_is_named(stage, put_before):
    put_before("rm", 'echo "Error response from daemon: device or resource busy" >&2; exit 1')
    process = stage.start("good")
    owner = stale.owner(process.pid)

    _, said = process.communicate(timeout=120)

    left = stage.of(owner)
    stage.engine.must("rm", "--force", *left)
    assert process.returncode == ExitCode.NO_ANSWER
    assert "`docker rm` failed: device or resource busy" in said
    assert len(left) == 1

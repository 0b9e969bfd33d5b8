"""What --runner and its companions say, before any engine is asked."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from ci_perf.cli import measure_options
from ci_perf.errors import UsageError
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner

# Each key said once, as a person says it, and what it becomes.
SAID: dict[str, tuple[str, Any]] = {
    "image": ("app@sha256:1", "app@sha256:1"),
    "allow-image": ("registry.example/team", ("registry.example/team",)),
    "allow-unpinned": ("true", True),
    "gpu-access": ("cdi", "cdi"),
    "memory": ("4g", "4g"),
    "shm-size": ("64m", "64m"),
    "tmp-size": ("512k", "512k"),
    "pids": ("64", 64),
    "cpus": ("0-3,8", "0-3,8"),
    "ulimit": ("memlock=-1:-1", ("memlock=-1:-1",)),
}
PODMAN = ("--runner", "podman")


def words(*pairs):
    return [word for pair in pairs for word in ("--container", pair)]


def heard(*line, **environment):
    """Return the choice that a command line makes. Raises what it is refused with."""
    choices = []

    @click.command(context_settings={"auto_envvar_prefix": "CI_PERF_RUN"})
    @measure_options.runner
    def run(runner, container):
        choices.append(measure_options.chosen_runner(runner, container))

    done = CliRunner(env=environment).invoke(run, line, standalone_mode=False)
    if done.exception:
        raise done.exception
    return choices[0]


@pytest.mark.parametrize("key", SAID)
def test_a_key_becomes_a_choice_and_is_refused_without_a_container(key):
    text, value = SAID[key]
    said = words(f"{key}={text}")

    assert heard(*PODMAN, *said) == Runner(kind="podman", **{runners.KEYS[key]: value})
    with pytest.raises(UsageError) as caught:
        heard(*said)

    assert str(caught.value) == (
        f"--container {key}: expected only with a container, found --runner local; add --runner "
        "docker (or podman), or leave it out"
    )


def test_folders_are_named_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets").mkdir()

    chosen = heard(*PODMAN, *words("data=sets", "checkpoints=."))

    assert (chosen.data, chosen.checkpoints) == (tmp_path / "sets", tmp_path)


def test_the_line_replaces_what_a_variable_says_of_the_same_key_and_no_other():
    of_machine = "allow-unpinned=true memory=4g ulimit=memlock=-1 ulimit=nofile=1024:4096"
    chosen = heard(
        *words("memory=8g"), CI_PERF_RUN_RUNNER="podman", CI_PERF_RUN_CONTAINER=of_machine
    )

    assert chosen == Runner(
        kind="podman",
        allow_unpinned=True,
        memory="8g",
        ulimit=("memlock=-1", "nofile=1024:4096"),
    )


def test_what_a_machine_says_of_its_containers_is_no_mistake_without_one():
    of_machine = "allow-image=registry.example/team memory=4g"
    assert heard(CI_PERF_RUN_CONTAINER=of_machine) == heard() == Runner(kind="local")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("memory=4x", "--container memory: expected a size such as 32g or 512m, found '4x'"),
        ("memory=4G", "--container memory: expected a size such as 32g or 512m, found '4G'"),
        ("memory=0g", "--container memory: expected a size such as 32g or 512m, found '0g'"),
        ("shm-size=-1g", "--container shm-size: expected a size"),
        ("tmp-size=1g,exec", "--container tmp-size: expected a size"),
        ("tmp-size=", "--container: expected KEY=VALUE with one of the keys image, allow-image,"),
        ("disk=1g", "--container: expected KEY=VALUE with one of the keys image, allow-image,"),
        ("allow-unpinned", "--container: expected KEY=VALUE with one of the keys image,"),
        ("allow-unpinned=yes", "--container allow-unpinned: expected true or false, found 'yes'"),
        ("gpu-access=none", "--container gpu-access: expected "),
        ("pids=15", "--container pids: expected a number between 16 and 4194304, found 15"),
        ("pids=many", "--container pids: expected a number between 16 and 4194304, found 'many'"),
        ("cpus=3-", "--container cpus: expected numbers of cores"),
        ("cpus=0 --privileged", "--container cpus: expected numbers of cores"),
        ("data=nowhere", "--container data="),
        ("ulimit=memlock", "--container ulimit: expected NAME=SOFT"),
        ("ulimit==1", "--container ulimit: expected NAME=SOFT"),
        ("ulimit=memlock=all", "--container ulimit: expected NAME=SOFT"),
        ("ulimit=nofile=1:2:3", "--container ulimit: expected NAME=SOFT"),
        ("ulimit=core=1 --privileged", "--container ulimit: expected NAME=SOFT"),
        ("ulimit=bogus=1", "--container ulimit: expected NAME=SOFT"),
    ],
)
def test_a_value_that_fits_no_container_is_refused_by_its_key(pair, said):
    with pytest.raises(UsageError) as caught:
        heard(*PODMAN, *words(pair))

    assert str(caught.value).startswith(said)
    assert pair.partition("=")[2] in str(caught.value)


def test_a_choice_is_spelled_so_that_it_is_heard_again(tmp_path):
    pairs = [f"{key}={text}" for key, (text, _) in SAID.items()]
    pairs += ["ulimit=nofile=1:2", f"data={tmp_path}", f"checkpoints={tmp_path}"]
    chosen = heard(*PODMAN, *words(*pairs))

    assert heard(*runners.spelled(chosen)) == chosen
    assert set(words(*pairs)) < set(runners.spelled(chosen))
    assert runners.spelled(Runner()) == ()

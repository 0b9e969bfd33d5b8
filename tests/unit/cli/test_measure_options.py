"""What --runner and its companions say, before any engine is asked."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from ci_perf.cli import measure_options
from ci_perf.errors import UsageError
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner

# Each option said once, as a person says it, and what it becomes; FOLDER is one.
SAID: dict[str, tuple[str | None, dict[str, Any]]] = {
    "--image": ("app@sha256:1", {"image": "app@sha256:1"}),
    "--allow-image": ("registry.example/team", {"allow_image": ("registry.example/team",)}),
    "--allow-unpinned": (None, {"allow_unpinned": True}),
    "--gpu-access": ("cdi", {"gpu_access": "cdi"}),
    "--memory": ("4g", {"memory": "4g"}),
    "--shm-size": ("64m", {"shm_size": "64m"}),
    "--tmp-size": ("512k", {"tmp_size": "512k"}),
    "--pids": ("64", {"pids": 64}),
    "--cpus": ("0-3,8", {"cpus": "0-3,8"}),
    "--ulimit": ("memlock=-1:-1", {"ulimit": ("memlock=-1:-1",)}),
}


def words(option):
    value, _ = SAID[option]
    return [option] if value is None else [option, value]


def heard(*line, **environment):
    """Return the choice that a command line makes. Raises what it is refused with."""
    choices = []

    @click.command(context_settings={"auto_envvar_prefix": "CI_PERF_RUN"})
    @measure_options.runner
    def run(**said):
        choices.append(measure_options.chosen_runner(said))

    done = CliRunner(env=environment).invoke(run, line, standalone_mode=False)
    if done.exception:
        raise done.exception
    return choices[0]


def test_without_any_option_it_runs_here():
    assert heard() == Runner(kind="local")


@pytest.mark.parametrize("option", SAID)
def test_an_option_becomes_a_choice(option):
    assert heard("--runner", "docker", *words(option)) == Runner(kind="docker", **SAID[option][1])


def test_folders_are_named_in_full(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets").mkdir()

    chosen = heard("--runner", "podman", "--data", "sets", "--checkpoints", ".")

    assert (chosen.data, chosen.checkpoints) == (tmp_path / "sets", tmp_path)


def test_variables_say_the_same_as_options():
    chosen = heard(
        CI_PERF_RUN_RUNNER="podman",
        CI_PERF_RUN_IMAGE="app",
        CI_PERF_RUN_ALLOW_UNPINNED="1",
        CI_PERF_RUN_ULIMIT="memlock=-1 nofile=1024:4096",
    )

    assert chosen == Runner(
        kind="podman", image="app", allow_unpinned=True, ulimit=("memlock=-1", "nofile=1024:4096")
    )


@pytest.mark.parametrize("option", [*SAID, "--data", "--checkpoints"])
def test_what_only_a_container_obeys_is_refused_without_one(option, tmp_path):
    said = words(option) if option in SAID else [option, str(tmp_path)]

    with pytest.raises(UsageError) as caught:
        heard(*said)

    assert str(caught.value) == (
        f"{option}: expected only with a container, found --runner local; add --runner docker (or "
        f"podman), or leave {option} out"
    )


def test_what_a_machine_says_of_its_containers_is_no_mistake_without_one():
    chosen = heard(CI_PERF_RUN_ALLOW_IMAGE="registry.example/team", CI_PERF_RUN_MEMORY="4g")

    assert chosen == Runner()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--memory", "4x"),
        ("--memory", "4G"),
        ("--memory", "0g"),
        ("--shm-size", "-1g"),
        ("--tmp-size", ""),
        ("--tmp-size", "1g,exec"),
        ("--pids", "15"),
        ("--cpus", "3-"),
        ("--cpus", "0 --privileged"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_its_option(option, value):
    with pytest.raises(UsageError) as caught:
        heard("--runner", "docker", option, value)

    assert str(caught.value).startswith(f"{option}: expected ")
    assert value in str(caught.value)


@pytest.mark.parametrize(
    "value", ["memlock", "=1", "memlock=", "memlock=all", "nofile=1:2:3", "core=1 --privileged"]
)
def test_a_ulimit_that_is_none_is_refused(value):
    with pytest.raises(UsageError, match="expected NAME=SOFT") as caught:
        heard("--runner", "docker", "--ulimit", value)

    assert str(caught.value).startswith(f"--ulimit {value}: ")


@pytest.mark.parametrize("value", ["Docker", "kubernetes", ""])
def test_another_runner_is_refused(value):
    with pytest.raises(click.BadParameter, match="'local', 'docker', 'podman'"):
        heard("--runner", value)


def test_a_choice_is_spelled_so_that_it_is_heard_again(tmp_path):
    line = [word for option in SAID for word in words(option)]
    line += ["--ulimit", "nofile=1:2", "--data", str(tmp_path), "--checkpoints", str(tmp_path)]
    chosen = heard("--runner", "podman", *line)

    assert heard(*runners.spelled(chosen)) == chosen
    assert set(SAID) < set(runners.spelled(chosen))


def test_of_what_nobody_has_said_nothing_is_spelled():
    assert runners.spelled(Runner()) == ()
    assert runners.spelled(Runner(kind="docker", pids=64)) == (
        *("--runner", "docker"),
        *("--pids", "64"),
    )


def test_a_ulimit_of_an_unknown_name_is_refused():
    with pytest.raises(UsageError, match="with one of the names core, cpu"):
        heard("--runner", "docker", "--ulimit", "bogus=1")

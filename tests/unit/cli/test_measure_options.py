"""What --runner and --container say, before any engine is asked."""

import click
import pytest
from click.testing import CliRunner

from ci_perf.cli import measure_options
from ci_perf.errors import UsageError
from ci_perf.gate.runners import Runner

PODMAN = ("--runner", "podman")


def words(*pairs):
    return [word for pair in pairs for word in ("--container", pair)]


def heard(*line, **environment):
    """Return the choice that a command line makes. Raises what it is refused with."""
    choices = []

    @click.command(context_settings={"auto_envvar_prefix": "CI_PERF_RUN"})
    @measure_options.runner
    def run(runner, container):
        choices.append(measure_options.choose_runner(runner, container))

    done = CliRunner(env=environment).invoke(run, line, standalone_mode=False)
    if done.exception:
        raise done.exception
    return choices[0]


def test_words_for_a_container_are_refused_without_one():
    with pytest.raises(UsageError) as caught:
        heard(*words("memory=4g"))

    assert str(caught.value) == (
        "--container memory: expected only with a container, found --runner local; add --runner "
        "docker (or podman), or leave it out"
    )


def test_the_line_replaces_what_a_variable_says_of_the_same_key_and_no_other():
    of_machine = "allow-unpinned=true memory=4g ulimit=memlock=-1 ulimit=nofile=1024:4096"
    chosen = heard(
        *words("memory=8g"), CI_PERF_RUN_RUNNER="podman", CI_PERF_RUN_CONTAINER=of_machine
    )

    assert chosen == Runner(
        kind="podman",
        container=(
            "allow-unpinned=true",
            "ulimit=memlock=-1",
            "ulimit=nofile=1024:4096",
            "memory=8g",
        ),
    )


def test_what_a_machine_says_of_its_containers_is_no_mistake_without_one():
    of_machine = "allow-image=registry.example/team memory=4g"
    assert heard(CI_PERF_RUN_CONTAINER=of_machine) == heard() == Runner(kind="local")


def test_a_word_that_no_container_knows_is_refused_at_once():
    with pytest.raises(UsageError, match="--container: expected KEY=VALUE with one of the keys"):
        heard(*PODMAN, *words("disk=1g"))

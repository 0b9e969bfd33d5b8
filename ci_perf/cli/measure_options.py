"""The options of every command that measures, and what they say as arguments of the Python API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource

from ci_perf.cli import options
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner
from ci_perf.model.container import EngineName
from ci_perf.system import files

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _read_container(
    context: click.Context, option: click.Parameter, words: tuple[str, ...]
) -> dict[str, Any]:
    """Return fields of Runner: what the line says replaces what the variable says, key by key."""
    assert option.name is not None
    if context.get_parameter_source(option.name) != ParameterSource.COMMANDLINE:
        return runners.read_container(words)
    of_machine = option.value_from_envvar(context) or ()
    return {**runners.read_container(of_machine), **runners.read_container(words)}


_RUNNER = (
    click.option(
        "--runner",
        type=click.Choice(["local", *get_args(EngineName)]),
        default="local",
        show_default=True,
        help="Where each process runs: here, or in a container of its own.",
    ),
    click.option(
        "--container",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_container,
        help=f"What a container is given; may be repeated. Keys: {', '.join(runners.KEYS)}. The "
        "others are as [container] in suite.toml says.",
    ),
)
_NAMES = click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
# What an option is called as a keyword of the Python API, where that is another name.
_KEYWORDS = {
    "all": "all_workloads",
    "names": "select",
    "wait": "wait_s",
    "budget": "budget_s",
    "explain": "explain_s",
}
_SUITE_AND_MACHINE = (
    options.suite,
    options.workloads,
    options.baselines,
    options.device,
    *_RUNNER,
)
_CHECKING = (
    options.processes,
    options.against,
    options.budget,
    options.add,
    options.checks_before,
    options.all_workloads,
    options.explain,
    options.traces,
)


def runner(command: _Command) -> _Command:
    """Add the options that say where processes run; `chosen_runner` reads them."""
    return _with(command, _RUNNER)


def measuring(command: _Command) -> _Command:
    """Add the options of every command that measures; `measurement` reads them."""
    return planning(options.wait(command))


def planning(command: _Command) -> _Command:
    """Add the options of a command that says what would be measured; `measurement` reads them."""
    return _NAMES(suite_and_machine(command))


def suite_and_machine(command: _Command) -> _Command:
    """Add the same without the names of workloads."""
    return _with(command, _SUITE_AND_MACHINE)


def checking(command: _Command) -> _Command:
    """Add the options of a command that measures a change; `measurement` reads them."""
    return _with(measuring(command), _CHECKING)


def measurement(
    said: Mapping[str, Any], *, output: Path | None, outputs: Iterable[Path | None] = ()
) -> dict[str, Any]:
    """Return what the options of `measuring` or `checking` say, as keywords of `ci_perf.measure`.

    `output` is the file of the run, `outputs` are other files that will be written, where measured
    code may lay links. Raises UsageError: options that do not fit together.
    """
    chosen = chosen_runner(said["runner"], said["container"])
    keywords = {_KEYWORDS.get(name, name): value for name, value in said.items()}
    del keywords["container"]
    for path in filter(None, [output, *outputs]):
        files.check_link(path)
    return {**keywords, "output": output, "runner": chosen}


def chosen_runner(kind: runners.Kind, container: Mapping[str, Any]) -> Runner:
    """Return what the options of `runner` say. Raises UsageError: a value that fits no container.

    What only a container could obey is refused without one. The variable may say it: it is for all
    that a machine does.
    """
    chosen = Runner(kind=kind, **container)
    runners.check(chosen)
    if kind != "local":
        return chosen
    source = click.get_current_context().get_parameter_source("container")
    if source == ParameterSource.COMMANDLINE:
        runners.check_local(chosen)
    return Runner()


def _with(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command

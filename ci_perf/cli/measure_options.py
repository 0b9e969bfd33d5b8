"""The options of every command that measures, and what they say as arguments of the Python API."""

import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from ci_perf import progress
from ci_perf.cli import console, options
from ci_perf.gate import runners
from ci_perf.gate.options import MOST_PROCESSES, MeasureOptions
from ci_perf.gate.runners import Runner
from ci_perf.session import Listener


def open_listener() -> Listener:
    """Return what shows on stderr that a run goes on."""
    return progress.listener(sys.stderr, say=console.say)


_Command = TypeVar("_Command", bound=Callable[..., Any])


def _read_container(
    context: click.Context, option: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the words: what the line says replaces what the variable says, key by key."""
    assert option.name is not None
    if context.get_parameter_source(option.name) != ParameterSource.COMMANDLINE:
        return words
    said = {word.partition("=")[0] for word in words}
    of_machine = option.value_from_envvar(context) or ()
    return (*(word for word in of_machine if word.partition("=")[0] not in said), *words)


_RUNNER = (
    click.option(
        "--runner",
        type=click.Choice(runners.find_kinds()),
        default="local",
        show_default=True,
        help="Where each process runs: here, or in a container of its own.",
    ),
    click.option(
        "--container",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read_container,
        help="A setting of the containers, such as memory=32g; may be repeated. docs/containers.md "
        "lists the keys. It wins over [container] in suite.toml.",
    ),
)
_NAMES = click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
_SPELLED_S = {60.0: "1m", 300.0: "5m", 1200.0: "20m", 1800.0: "30m", 7200.0: "2h", 0.0: "0s"}
FIELDS = {each.name: each for each in dataclasses.fields(MeasureOptions) if each.metadata}
# Of every command that plans a suite, and of those that measure a change.
_PLANNING = ("suite", "workloads", "baselines", "device")
CHECKING = (
    "wait_s",
    "processes",
    "threads",
    "against",
    "base_python",
    "base_image",
    "budget_s",
    "add",
    "checks_before",
    "all_workloads",
    "fail_fast",
    "explain_s",
    "traces",
    "kernels",
)


def option(name: str, **other: Any) -> Callable[[_Command], _Command]:  # noqa: ANN401  click's own
    """Return the option of a field of `MeasureOptions`; ``other`` replaces what is declared."""
    said = {"show_default": True, **FIELDS[name].metadata, **other}
    flag = said.pop("flag")
    default = said.pop("default", FIELDS[name].default)
    reads = said.pop("reads", "")
    if reads == "duration":
        default = None if default is None else _SPELLED_S[default]
        said |= {"metavar": "DURATION", "callback": _reader(options.read_duration)}
    elif reads == "count":
        said["callback"] = _reader(options.read_count)
    elif reads == "path":
        said["type"] = click.Path(path_type=Path)
    elif reads == "threads":
        said["callback"] = _reader(options.read_threads)
    elif reads == "processes":
        said["type"] = click.IntRange(1, MOST_PROCESSES)
    return click.option(flag, default=default, **said)


def _reader(read: Callable[[str | None, str], Any]) -> Callable[..., Any]:
    return lambda _context, option, text: read(text, option.opts[0])


def runner(command: _Command) -> _Command:
    """Add the options that say where processes run; `choose_runner` reads them."""
    return options.give_options(command, _RUNNER)


def add_measure_options(
    *names: str, select: bool = True, **others: Mapping[str, Any]
) -> Callable[[_Command], _Command]:
    """Add the options of a command that plans a suite, and those of the fields ``names``.

    The command is called with ``measuring``: fields of `MeasureOptions`, which are the keywords of
    the Python API. ``others`` say what is declared otherwise here. Without ``select``, no names of
    workloads are taken.
    """
    fields = (*_PLANNING, *names)

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def call(**said: Any) -> Any:  # noqa: ANN401  what click has read
            values = {name: said.pop(_find_parameter(name)) for name in fields}
            if select:
                values["select"] = said.pop("names")
            values["runner"] = choose_runner(said.pop("runner"), said.pop("container"))
            return command(measuring=values, **said)

        given = [
            getattr(options, name, None) or option(name, **others.get(name, {})) for name in fields
        ]
        decorated: Any = options.give_options(runner(call), given)
        command_with_options: _Command = _NAMES(decorated) if select else decorated
        return command_with_options

    return decorate


def _find_parameter(name: str) -> str:
    """Return what click calls a field: the words of its flag."""
    flag = FIELDS[name].metadata["flag"] if name in FIELDS else name
    return str(flag).removeprefix("--").replace("-", "_")


def choose_runner(kind: str, container: tuple[str, ...]) -> Runner:
    """Return what the options of `runner` say. Raises UsageError: a value that fits no container.

    What only a container could obey is refused without one. The variable may say it: it is for all
    that a machine does.
    """
    source = click.get_current_context().get_parameter_source("container")
    if kind == runners.LOCAL and source != ParameterSource.COMMANDLINE:
        return Runner()
    chosen = Runner(kind=kind, container=container)
    runners.check(chosen)
    return chosen

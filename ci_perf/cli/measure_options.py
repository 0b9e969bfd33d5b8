"""The options of every command that measures, and what they say as arguments of the Python API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource

from ci_perf.cli import options
from ci_perf.gate import runners
from ci_perf.gate.runners import Runner
from ci_perf.launch.containers.arguments import GpuAccess
from ci_perf.model.container import EngineName
from ci_perf.system import files

_Command = TypeVar("_Command", bound=Callable[..., Any])
_EXISTING_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)

_RUNNER = (
    click.option(
        "--runner",
        type=click.Choice(["local", *get_args(EngineName)]),
        default="local",
        show_default=True,
        help="Where each process runs: here, or in a container of its own.",
    ),
    click.option(
        "--image",
        metavar="NAME@sha256:DIGEST",
        help="The image, for both sides; by default as [container] in suite.toml says.",
    ),
    click.option(
        "--allow-image",
        multiple=True,
        metavar="PREFIX",
        help="Allowed prefix of the image that suite.toml names: a registry, a folder in it, or a "
        "repository; without this option any image is allowed.",
    ),
    click.option(
        "--allow-unpinned",
        is_flag=True,
        help="Take an image by its tag, too; the run is then degraded.",
    ),
    click.option(
        "--gpu-access",
        type=click.Choice(get_args(GpuAccess)),
        help="How a container is given GPUs; by default gpus with docker, cdi with podman.",
    ),
    click.option(
        "--data",
        type=_EXISTING_FOLDER,
        help="A folder of data sets: /data in a container, where it cannot be changed; by default "
        "that of CI_PERF_DATA_DIR.",
    ),
    click.option(
        "--checkpoints",
        type=_EXISTING_FOLDER,
        help="A folder that a container may write: /checkpoints.",
    ),
    click.option("--memory", metavar="SIZE", help="Memory of a container: 32g. No limit without."),
    click.option("--shm-size", metavar="SIZE", help="Its /dev/shm; suite.toml says 8g."),
    click.option("--tmp-size", metavar="SIZE", help="Its /tmp, in memory; suite.toml says 8g."),
    click.option("--pids", type=int, metavar="N", help="Its processes; suite.toml says 4096."),
    click.option("--cpus", metavar="LIST", help="Its CPUs: 0-3,8. All without."),
    click.option(
        "--ulimit",
        multiple=True,
        metavar="NAME=SOFT[:HARD]",
        help="A limit of its processes, as docker spells it; memlock=-1 for RDMA.",
    ),
)
_ONLY_IN_CONTAINERS = tuple(name for name in Runner.__dataclass_fields__ if name != "kind")
_NAMES = click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
# What an option is called as a keyword of the Python API, where that is another name.
_KEYWORDS = {
    "all": "all_workloads",
    "names": "select",
    "lock_timeout": "lock_timeout_s",
    "wait": "wait_s",
    "budget": "budget_s",
    "explain_budget": "explain_budget_s",
}
_SUITE_AND_MACHINE = (
    options.suite,
    options.workloads,
    options.baselines,
    options.device,
    *_RUNNER,
    options.lock_timeout,
)
_CHECKING = (
    options.processes,
    options.wait,
    options.against,
    options.budget,
    options.add,
    options.checks_before,
    options.all_workloads,
    options.record,
    options.explain,
    options.explain_budget,
    options.traces,
)


def runner(command: _Command) -> _Command:
    """Add the options that say where processes run: the fields of gate.runners.Runner."""
    return _with(command, _RUNNER)


def measuring(command: _Command) -> _Command:
    """Add the options of every command that measures; `measurement` reads them."""
    return _NAMES(suite_and_machine(command))


def suite_and_machine(command: _Command) -> _Command:
    """Add the same without the names of workloads."""
    return _with(command, _SUITE_AND_MACHINE)


def checking(command: _Command) -> _Command:
    """Add the options of a command that measures a change; `measurement` reads them."""
    return _with(measuring(command), _CHECKING)


def measurement(
    said: Mapping[str, Any], *, run_output: Path | None, outputs: Iterable[Path | None] = ()
) -> dict[str, Any]:
    """Return what the options of `measuring` or `checking` say, as keywords of `ci_perf.measuring`.

    `outputs` are other files that will be written, where measured code may lay links. Raises
    UsageError: options that do not fit together.
    """
    of_runner = {name: said[name] for name in ("runner", *_ONLY_IN_CONTAINERS)}
    renamed = {_KEYWORDS.get(name, name): said[name] for name in said if name not in of_runner}
    chosen = chosen_runner(of_runner)
    for path in filter(None, [run_output, *outputs]):
        files.check_link(path)
    return {**renamed, "run_output": run_output, "runner": chosen}


def chosen_runner(said: Mapping[str, Any]) -> Runner:
    """Return what the options of `runner` say. Raises UsageError: a value that fits no container.

    What only a container could obey is refused without one. Variables may say it: they are for all
    that a machine does.
    """
    wanted = {name: said[name] for name in _ONLY_IN_CONTAINERS}
    chosen = Runner(kind=said["runner"], **wanted)
    runners.check(chosen)
    if chosen.kind != "local":
        return chosen
    context = click.get_current_context()
    for name in wanted:
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise runners.needs_container(name)
    return Runner()


def _with(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command

"""The commands for many machines: `fleet run` measures a plan on an engine that you have."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from ci_perf.cli import console, options, reports
from ci_perf.errors import UsageError
from ci_perf.gate import fleet
from ci_perf.gate.fleet import FleetRunOptions
from ci_perf.gate.shards import ShardOptions
from ci_perf.model.fleet import FleetEngineName
from ci_perf.model.suite import FailOn
from ci_perf.system import files

_ENGINE = click.Choice(get_args(FleetEngineName))
_NODES = click.Path(dir_okay=False, path_type=Path)


@click.group("fleet")
def fleet_command() -> None:
    """Measure a suite on many machines, by an engine that you have."""


@fleet_command.command("run")
@click.argument("run_options", nargs=-1, metavar="[-- RUN_OPTION...]")
@click.option(
    "--engine",
    type=_ENGINE,
    required=True,
    help="What queues, places and kills: slots of this machine, a cluster, or your own commands.",
)
@click.option(
    "--nodes",
    type=_NODES,
    required=True,
    metavar="FLEET.toml",
    help="The classes of machines and their engine; yours, and never a pull request's.",
)
@click.option(
    "--plan",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PLAN.json",
    help="What `ci-perf plan` has written; or say --shards.",
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    metavar="N",
    help="Into how many units the suite is divided, for each class of machines.",
)
@options.suite
@options.workloads
@options.baselines
@options.against
@options.budget
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder of this fleet run, which the nodes must see, too.",
)
@click.option(
    "--one-wave",
    is_flag=True,
    help="With --against, let each unit launch pairs at once, for the suspects that it knows: no "
    "unit waits for another, and a row may stay without an answer.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the fleet run of that folder: its controller was killed, or interrupted.",
)
@options.fail_on(default=None)
@click.option(
    "--format",
    type=click.Choice(["markdown", "terminal"]),
    help="The form of the report: by default markdown, or terminal on one.",
)
def run_fleet_command(
    *,
    run_options: tuple[str, ...],
    engine: FleetEngineName,
    nodes: Path,
    plan: Path | None,
    shards: int | None,
    suite: str,
    workloads: Path,
    baselines: Path,
    against: str | None,
    budget: float,
    output: Path,
    one_wave: bool,
    resume: bool,
    fail_on: FailOn | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
) -> int:
    """Measure every unit of a plan on some node of its class, and report once.

    Each unit gets exactly one ending: measured, failed, lost or cancelled. What a node loses is
    measured once more elsewhere. With --against and several units, all workloads are screened
    first; then the suspects of all units, and no others, get pairs of base and head. RUN_OPTIONs
    after "--" are given to every `ci-perf run`, as they are. Exit codes as of `ci-perf check`, by
    the classes whose `gate` is on; 130 for an interrupt, which leaves nothing in the queue.
    """
    _check(plan, shards, suite, against, output if resume else None)
    _check_run_options(run_options)
    verdict = fleet.run(
        FleetRunOptions(
            sharding=ShardOptions(
                root=files.current_folder(),
                suite=suite,
                workloads=workloads,
                baselines=baselines,
                shards=shards or 1,
                against=against,
            ),
            engine=engine,
            nodes=nodes,
            folder=output,
            plan=plan,
            budget_s=budget,
            run_options=run_options,
            one_wave=one_wave,
            resume=resume,
            fail_on=fail_on,
        ),
        notify=console.say,
    )
    for name, comparison in verdict.comparisons.items():
        if len(verdict.comparisons) > 1:
            shown = "" if name in verdict.gating else " (shown, and fails nothing)"
            console.emit(f"# {name}{shown}\n", output=None)
        reports.emit_comparison(comparison, format, None)
    return verdict.exit_code


def _is_said(option: str) -> bool:
    """Whether somebody has typed an option, whatever it is by default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def _check(
    plan: Path | None, shards: int | None, suite: str, against: str | None, resumed: Path | None
) -> None:
    """Refuse options that do not fit together, or not what is resumed. Raises UsageError."""
    if (plan is None) == (shards is None) and not (resumed and plan is None):
        raise UsageError("expected one of --plan and --shards")
    if plan is not None and against is not None:
        raise UsageError("--against: expected none with --plan, which says it")
    if resumed is None:
        return
    if plan is None and shards is None and not (resumed / fleet.PLAN).exists():
        raise UsageError(
            f"--resume: expected {resumed / fleet.PLAN} of the fleet run to go on with, found "
            "none; name its folder with --output, or --plan or --shards to begin one"
        )
    said = suite if _is_said("suite") else None
    fleet.check_resumed(resumed, shards=shards, against=against, suite=said)


def _check_run_options(words: Sequence[str]) -> None:
    """Refuse here what every node would refuse. Raises UsageError.

    Values are not looked at: a folder, say, is one of the nodes.
    """
    from ci_perf.cli.measuring_commands import run_command

    parser = run_command.make_parser(click.Context(run_command, info_name="ci-perf run"))
    parsed, _, _ = parser.parse_args([*words])
    # What nobody has typed is no text.
    said = {name: value for name, value in parsed.items() if isinstance(value, str | tuple)}
    if names := said.get("names"):
        raise UsageError(
            f"expected no workloads, found {', '.join(names)}; `ci-perf plan {' '.join(names)}` "
            "plans them, for --plan"
        )
    for option in ("output", "unit", "shard", "plan", "machine_class", "against"):
        if option in said:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} after --: expected none, as the plan says it, found one")

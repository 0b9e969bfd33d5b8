"""The commands for a suite on several machines: plan its units, run them, merge their runs."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

import ci_perf
from ci_perf.cli import console, measure_options, options
from ci_perf.errors import ExitCode, UsageError
from ci_perf.features.fleet import fleet
from ci_perf.features.fleet.fleet import FleetEngineName, FleetOptions
from ci_perf.features.fleet.work_plan import WorkPlan
from ci_perf.github import actions
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.report.units import render_count
from ci_perf.system import files

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
# One job of GitHub's matrix per unit; it takes no more.
_MOST_JOBS = 256
_PLAN = click.argument("plan", type=_FILE, metavar="PLAN.json")


def _split_list(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


@click.group("fleet")
def fleet_command() -> None:
    """Measure a suite on several machines: plan, run, merge."""


@fleet_command.command("plan")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--units",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="The number of parts of the suite: one per node.",
)
@click.option(
    "--machine-class",
    multiple=True,
    metavar="NAME",
    help="A class of machines to measure the suite on: h100. May be repeated. Each class gets "
    "--units parts.",
)
@click.option(
    "--against",
    metavar="REF",
    help="The base that each node launches alternately with the head, as in `ci-perf run`.",
)
@measure_options.option("suite")
@options.workloads
@options.baselines
@click.option(
    "--matrix-output",
    type=_FILE,
    metavar="FILE",
    help="Append the units to FILE as the output `matrix` of a step of GitHub Actions: unit, class "
    "and workloads of each job, for fromJSON.",
)
@options.output
def plan_command(
    *,
    names: tuple[str, ...],
    units: int,
    workloads: Path,
    baselines: Path,
    matrix_output: Path | None,
    output: Path | None,
    **others: Any,  # noqa: ANN401  the keywords of `ci_perf.plan`
) -> None:
    """Divide a suite among several nodes, by the times of its launches.

    Each workload, longest first, goes to the unit with the least work. `ci-perf fleet measure`
    measures one unit, `fleet run` all units, and `fleet merge` joins their runs.
    """
    kept = (workloads / "suite.toml", baselines)
    files.check_apart("--output", output, matrix_output, *kept)
    files.check_apart("--matrix-output", matrix_output, *kept)
    planned = ci_perf.plan(names, units=units, workloads=workloads, baselines=baselines, **others)
    for unit in planned.units:
        where = f" on {unit.machine_class}" if unit.machine_class else ""
        count = render_count(len(unit.workloads), "workload")
        console.say(f"{unit.id}: {count}{where}, about {unit.expected_s:.0f} s")
    if units > len(planned.units) / len(planned.classes()):
        console.say(f"note: fewer than {units} groups of workloads can be measured apart")
    if matrix_output is not None:
        actions.write_outputs(matrix_output, {"matrix": _matrix(planned)})
    console.emit(codec.encode(planned), output=output)


def _matrix(planned: WorkPlan) -> str:
    """Return the units as GitHub's fromJSON takes them. Raises UsageError."""
    if len(planned.units) > _MOST_JOBS:
        raise UsageError(
            f"--matrix-output: expected at most {_MOST_JOBS} jobs, which GitHub takes, found "
            f"{len(planned.units)}; name fewer --units"
        )
    jobs = [
        {
            "unit": unit.id,
            "class": unit.machine_class or "",
            "workloads": " ".join(unit.workloads),
        }
        for unit in planned.units
    ]
    return json.dumps({"include": jobs})


@fleet_command.command("run")
@_PLAN
@click.argument("run_options", nargs=-1, metavar="[-- RUN_OPTION...]")
@click.option(
    "--engine",
    type=click.Choice(get_args(FleetEngineName)),
    required=True,
    help="The engine that queues and places units: this machine, a cluster, or your own command.",
)
@click.option(
    "-o",
    "--output",
    type=_FOLDER,
    required=True,
    metavar="DIR",
    help="The folder of the units. All nodes must see it under the same path.",
)
@click.option(
    "--machine-class",
    metavar="NAME",
    help="The class of machines to run, if the plan has several.",
)
@click.option(
    "--option",
    "engine_options",
    multiple=True,
    metavar="WORD",
    help="An option for the engine, once per word. Slurm: --gres=gpu:1. Ray: num_gpus=1. With "
    "--engine command: the command.",
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most units at the same time. By default one on this machine, elsewhere all units.",
)
@click.option(
    "--devices",
    metavar="LIST",
    default="",
    callback=_split_list,
    help="With --engine local: CUDA devices (0,1,2,3). Each measures one unit at a time.",
)
@click.option(
    "--python",
    default=sys.executable,
    show_default="this Python",
    metavar="PATH",
    help="The Python of the nodes. It must have ci_perf and torch.",
)
def run_fleet_command(**options_given: Any) -> int:  # noqa: ANN401  the fields of FleetOptions
    """Measure every unit of a plan that has no valid run yet, by an engine.

    Each unit is `ci-perf fleet measure` in its own folder below DIR. The engine queues, places,
    retries and kills. After an interrupt, the same command continues: measured units are kept.
    RUN_OPTIONs after "--" go to every unit.

    Exit codes: 0 all workloads were measured, 3 a unit or a workload failed, 130 interrupted. Then
    `ci-perf fleet merge` joins the runs.
    """
    asked = FleetOptions(root=files.current_folder(), **options_given)
    is_whole = fleet.run(asked, notify=console.say)
    console.say(f"next: ci-perf fleet merge {asked.plan} {asked.output} -o run.json")
    return ExitCode.OK if is_whole else ExitCode.NO_ANSWER


@fleet_command.command("measure")
@measure_options.add_measure_options(*measure_options.CHECKING)
@click.option(
    "--plan",
    type=_FILE,
    required=True,
    metavar="PLAN.json",
    help="The file of `ci-perf fleet plan`.",
)
@click.option(
    "--unit",
    required=True,
    metavar="ID",
    help="The unit to measure. It names workloads and base.",
)
@options.run_output(default="run.json")
def measure_command(
    *,
    measuring: dict[str, Any],
    output: Path,
    plan: Path,
    unit: str,
) -> int:
    """Measure one unit of a plan on this node, as `ci-perf run` does, and write run.json.

    Exit codes: 0 measured, 3 a workload failed.
    """
    files.check_apart("--output", output, plan)
    run = ci_perf.measure_unit(
        plan,
        unit,
        **measuring,
        output=output,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK


@fleet_command.command("merge")
@_PLAN
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN.json...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The file of the merged run. With several classes of machines: the folder that gets a "
    "CLASS.json per class.",
)
@click.option(
    "--comparison",
    type=click.Path(path_type=Path),
    help="Also judge the merged run, and write the comparison as JSON for `github publish`. With "
    "several classes of machines: the folder that gets a CLASS.json per class.",
)
@options.fail_on(default=None)
@options.paused_until
@options.workloads
@options.baselines
def merge_command(
    *,
    plan: Path,
    runs: tuple[Path, ...],
    output: Path,
    comparison: Path | None,
    fail_on: FailOn | None,
    paused_until: str,
    workloads: Path,
    baselines: Path,
) -> int:
    """Join the runs of several nodes into one run per class of machines.

    RUN.json is a file of `ci-perf fleet measure`, or a folder of such files, in any order. A
    planned workload that was not measured is failed, with the reason: exit code 3. Refused, with
    exit code 2: a workload that was measured twice, or on another machine than the rest of its
    class. The suspects of all nodes share the chance of a false alarm.

    With --comparison the exit code is that of `ci-perf check`.
    """
    for option, target in (("--output", output), ("--comparison", comparison)):
        files.check_apart(option, target, plan, *runs, baselines, workloads)
    files.check_apart("--comparison", comparison, output)
    merged = ci_perf.merge(
        *runs, plan=plan, workloads=workloads, baselines=baselines, notify=console.say
    )
    targets = _targets(merged, "--output", output)
    judged = _targets(merged, "--comparison", comparison or output)
    codes: set[int] = set()
    for machine_class, run in merged.items():
        target = targets[machine_class]
        files.write(target, run)
        _tell(target, run)
        if comparison is None:
            codes.add(ExitCode.NO_ANSWER if run.failed else ExitCode.OK)
            continue
        compared = ci_perf.compare(
            target,
            baselines=baselines,
            workloads=workloads,
            fail_on=fail_on,
            notify=console.say,
        )
        compared = msgspec.structs.replace(compared, paused_until=paused_until)
        files.write(judged[machine_class], compared)
        codes.add(compared.job_exit_code)
    return ExitCode.REGRESSED if ExitCode.REGRESSED in codes else max(codes)


def _tell(target: Path, run: Run) -> None:
    """Say what became of the planned workloads."""
    done, total = len(run.measured) + len(run.same), len(run.workloads())
    sessions = render_count(len(run.merged_from), "session")
    console.say(f"{target}: {done} of {render_count(total, 'workload')}, by {sessions}")
    for failed in run.failed:
        console.say(f"failed: {failed.workload}: {failed.reason}")


def _targets(merged: Mapping[str | None, Run], option: str, output: Path) -> dict[str | None, Path]:
    """Return the file for each class of machines. Raises UsageError and CannotWriteError."""
    if len(merged) == 1:
        return dict.fromkeys(merged, output)
    if output.suffix == ".json":
        raise UsageError(
            f"{option} {output}: expected a folder for {len(merged)} files, one per class of "
            "machines, found the name of a file"
        )
    files.make_folder(output)
    return {machine_class: output / f"{machine_class}.json" for machine_class in merged}

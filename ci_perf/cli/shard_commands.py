"""The commands for a suite that several nodes measure: `plan` divides it, `merge` joins the runs.

Neither runs anybody's code.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

import ci_perf
from ci_perf.cli import console, options
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import shards
from ci_perf.gate.shards import MergeOptions, NothingSuspectedError, ShardOptions
from ci_perf.github import actions
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan, WorkUnit
from ci_perf.model.suite import FailOn
from ci_perf.report.units import numbered
from ci_perf.system import files

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, path_type=Path)
# One job of GitHub's matrix per unit; it takes no more.
_MOST_JOBS = 256

machine_class = click.option(
    "--machine-class",
    metavar="NAME",
    help="The class of machines of this node, where the plan names several.",
)


def measured_unit(command: _Command) -> _Command:
    """Add the options that say which part of a suite this node measures; `unit` reads them."""
    for option in (
        machine_class,
        click.option(
            "--unit",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="UNIT.json",
            help="Measure this unit of a plan: it says which workloads, and against what.",
        ),
        click.option(
            "--plan",
            type=_FILE,
            metavar="PLAN.json",
            help="The plan that --shard is a part of, where `ci-perf plan --after` made it.",
        ),
        click.option(
            "--shard",
            metavar="I/N",
            help="Measure part I of N, as `ci-perf plan --shards N` divides the suite: 2/4.",
        ),
    ):
        command = option(command)
    return command


def unit_of(
    shard: str | None,
    unit: Path | None,
    plan: Path | None,
    machine_class: str | None,
    measurement: Mapping[str, Any],
) -> WorkUnit | None:
    """Return the unit that the options of `measured_unit` name; `measurement` are the others.

    `None` where the shard has no workload. Raises UsageError and InvalidFileError.
    """
    files.check_apart("--output", measurement["run_output"], unit, plan)
    if measurement["select"] and (unit or plan):
        named = ", ".join(map(repr, measurement["select"]))
        option = "--unit" if unit else "--plan"
        raise UsageError(f"{option}: expected no workloads beside it, which it says, found {named}")
    if unit is not None:
        if (shard, plan, machine_class) != (None, None, None):
            raise UsageError(
                "--unit: expected none of --shard, --plan and --machine-class, which it says"
            )
        return files.read(unit, WorkUnit)
    if shard is None:
        raise UsageError("--plan and --machine-class: expected --shard I/N")
    if plan is not None:
        return shards.unit_of_shard(files.read(plan, WorkPlan), shard, machine_class)
    whole = shards.plan(
        ShardOptions(
            root=files.current_folder(),
            suite=measurement["suite"],
            select=measurement["select"],
            workloads=measurement["workloads"],
            baselines=measurement["baselines"],
            shards=shards.parse_shard(shard)[1],
            machine_classes=(machine_class,) if machine_class else (),
            against=measurement["against"],
        ),
        notify=console.say,
    )
    return shards.unit_of_shard(whole, shard, machine_class)


@click.command("plan")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Into how many parts the suite is divided: one per node.",
)
@click.option(
    "--machine-class",
    multiple=True,
    metavar="NAME",
    help="Measure the suite on this class of machines, too: h100. May be repeated; each class "
    "gets --shards parts.",
)
@click.option(
    "--against",
    metavar="REF",
    help="The base that each node launches in turns with the head: as for `ci-perf run`.",
)
@click.option(
    "--after",
    type=_FILE,
    metavar="RUN.json",
    help="Plan the second of two waves: pairs of base and head for what this merged run, measured "
    "with --against and --budget 0s, has found suspicious.",
)
@click.option(
    "--matrix",
    is_flag=True,
    help="Print the jobs of a matrix for GitHub's fromJSON, in one line: unit, shard, class.",
)
@click.option(
    "--matrix-output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add the same as matrix=… to this file: the GITHUB_OUTPUT of a step.",
)
@options.suite
@options.workloads
@options.baselines
@options.output
def plan_command(
    *,
    names: tuple[str, ...],
    shards: int,
    machine_class: tuple[str, ...],
    against: str | None,
    after: Path | None,
    matrix: bool,
    matrix_output: Path | None,
    suite: str,
    workloads: Path,
    baselines: Path,
    output: Path | None,
) -> None:
    """Divide a suite among several nodes, by how long its launches took.

    The committed sessions say how long; the longest workloads are placed first, each in the least
    loaded part. Writes a plan as JSON (its schema: `ci-perf schema plan`): `ci-perf run --shard
    I/N` measures a part of it, `ci-perf merge --plan` checks what came of it. With --matrix, the
    plan goes to --output and the jobs to stdout.
    """
    if after is not None and (names or against or len(machine_class) > 1):
        raise UsageError(
            "--after: expected no workloads, no --against and at most one --machine-class: the run "
            "says them"
        )
    inputs = [workloads / "suite.toml", baselines, after]
    files.check_apart("--output", output, *inputs, matrix_output)
    files.check_apart("--matrix-output", matrix_output, *inputs)
    planned = _planned(
        ShardOptions(
            root=files.current_folder(),
            suite=suite,
            select=names,
            workloads=workloads,
            baselines=baselines,
            shards=shards,
            machine_classes=machine_class,
            against=against,
            after=after,
        )
    )
    jobs = '{"include": []}'
    if planned is not None:
        jobs = _matrix(planned) if matrix or matrix_output else ""
        if output is not None or not matrix:
            console.emit(codec.encode(planned), output=output)
    if matrix:
        console.emit(f"{jobs}\n", output=None)
    if matrix_output is not None:
        actions.write_outputs(matrix_output, {"matrix": jobs})


def _planned(options: ShardOptions) -> WorkPlan | None:
    try:
        planned = shards.plan(options, notify=console.say)
    except NothingSuspectedError as nothing:
        console.say(f"{nothing}; no second wave is planned")
        return None
    counts = dict.fromkeys(planned.classes(), 0)
    for unit in planned.units:
        counts[unit.machine_class] += 1
        where = f" on {unit.machine_class}" if unit.machine_class else ""
        console.say(
            f"{unit.id}: {numbered(len(unit.workloads), 'workload')}{where}, about "
            f"{unit.expected_s:.0f} s"
        )
    empty = planned.shards - min(counts.values())
    if empty:
        console.say(
            f"note: {empty} of {planned.shards} shards have no workload, as there are fewer "
            "workloads that can be measured apart"
        )
    return planned


def _matrix(planned: WorkPlan) -> str:
    """Return the units as GitHub's fromJSON takes them. Raises UsageError."""
    if len(planned.units) > _MOST_JOBS:
        raise UsageError(
            f"--matrix: expected at most {_MOST_JOBS} jobs, which GitHub takes, found "
            f"{len(planned.units)}; name fewer --shards"
        )
    jobs = [
        {
            "unit": unit.id,
            "shard": shards.shard_of(unit, planned.shards),
            "class": unit.machine_class or "",
            "workloads": " ".join(unit.workloads),
        }
        for unit in planned.units
    ]
    return json.dumps({"include": jobs})


@click.command("merge")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN.json...")
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    required=True,
    metavar="PLAN.json",
    help="What `ci-perf plan` has written: who had to measure what.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to write the merged run; with several classes of machines the folder for one "
    "CLASS.json each.",
)
@click.option(
    "--comparison-output",
    type=click.Path(path_type=Path),
    help="Judge what was merged, too, by the baselines: where to write the comparison as JSON, for "
    "`github publish`; with several classes of machines the folder for one CLASS.json each.",
)
@click.option(
    "--after",
    type=_FILE,
    metavar="RUN.json",
    help="The merged run of the first of two waves, which these runs complete.",
)
@options.fail_on(default=None)
@options.workloads
@options.baselines
def merge_command(
    *,
    runs: tuple[Path, ...],
    plan: Path,
    output: Path,
    comparison_output: Path | None,
    after: Path | None,
    fail_on: FailOn | None,
    workloads: Path,
    baselines: Path,
) -> int:
    """Join what several nodes have measured into one run per class of machines.

    RUN.json is a file that `ci-perf run --shard` or `--unit` wrote, or a folder in which every
    run.json is one. The order is of no account. A workload that is planned and was not measured is
    a failed one: exit code 3. Refused, with exit code 2: a workload that was measured twice or is
    not planned, another commit, suite, version or class of machines. Baselines and suite.toml say
    how many suspects there are over all nodes: they share the chance of a false alarm.

    With --comparison-output the exit code is that of the comparisons, as of `ci-perf check`.
    """
    inputs = [plan, *runs, baselines, workloads, *([after] if after else [])]
    for option, target in (("--output", output), ("--comparison-output", comparison_output)):
        files.check_apart(option, target, *inputs)
    files.check_apart("--comparison-output", comparison_output, output)
    merged = shards.merge(
        MergeOptions(runs=runs, plan=plan, workloads=workloads, baselines=baselines, after=after),
        notify=console.say,
    )
    targets = _targets(merged, "--output", output)
    judged = _targets(merged, "--comparison-output", comparison_output or output)
    for machine_class, run in merged.items():
        files.write(targets[machine_class], run)
        _tell(targets[machine_class], run)
    if comparison_output is None:
        is_whole = not any(run.failed for run in merged.values())
        return ExitCode.OK if is_whole else ExitCode.NO_ANSWER
    codes = set()
    for machine_class, target in judged.items():
        comparison = ci_perf.compare(
            targets[machine_class],
            baselines=baselines,
            workloads=workloads,
            fail_on=fail_on,
            notify=console.say,
        )
        files.write(target, comparison)
        codes.add(comparison.exit_code)
    return ExitCode.REGRESSED if ExitCode.REGRESSED in codes else max(codes)


def _tell(target: Path, run: Run) -> None:
    """Say what became of the planned workloads."""
    done, total = len(run.measured) + len(run.same), len(run.workloads())
    sessions = numbered(len(run.merged_from), "session")
    console.say(f"{target}: {done} of {numbered(total, 'workload')}, by {sessions}")
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

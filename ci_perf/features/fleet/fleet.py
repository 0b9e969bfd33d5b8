"""Measure a suite on several nodes: plan its units, have an engine run them, merge their runs.

Runs no user code here: suite.toml and baselines are read, workloads are not imported. What a node
has written is read as if a stranger had made it.
"""

import dataclasses
import hashlib
import os
import re
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ci_perf import suite as suites
from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.features.fleet import local, merging, ray, sharding, slurm
from ci_perf.features.fleet.merging import ShardRun
from ci_perf.features.fleet.unit import RUN, UnitFolder, UnitJob
from ci_perf.features.fleet.work_plan import MOST_UNITS, WorkPlan, WorkUnit
from ci_perf.gate import arguments, collecting, compare, measure, run_summary
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging.policy import KIND_OF, limits_on
from ci_perf.model import codec
from ci_perf.model.environment import CpuMachine
from ci_perf.model.metrics import find_metric
from ci_perf.model.run import Run, Tool
from ci_perf.model.suite import Plan
from ci_perf.report.units import render_count
from ci_perf.session import Listener
from ci_perf.system import files, git
from ci_perf.version import __version__
from ci_perf.worktree import merge_base

FleetEngineName = Literal["local", "slurm", "ray", "command"]
PLAN = "plan.json"
# A unit is called after its class, and so is its folder.
_CLASS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}")
# On a CPU more metrics gate than on a GPU, so that no class has more suspects than were counted.
_ANY_CPU = CpuMachine(cpu_model="", logical_cores=0)


# --- planning


def plan(
    select: str | Iterable[str] = (),
    *,
    units: int,
    suite: str = "",
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    machine_class: str | Iterable[str] = (),
    against: str | None = None,
) -> WorkPlan:
    """Divide a suite among several nodes, by how long its launches took: as `ci-perf fleet plan`.

    Into so many `units`, once for each `machine_class` that is named. `measure_unit` measures one
    of them, `merge` joins what came of them. Raises UsageError and InvalidFileError.
    """
    selection, classes = arguments.names_of(select), arguments.names_of(machine_class)
    folders = arguments.folders_of(root, workloads, baselines)
    if not 1 <= units <= MOST_UNITS:
        raise UsageError(f"--units: expected 1 to {MOST_UNITS:,}, found {units}")
    if len(set(classes)) < len(classes):
        raise UsageError("--machine-class: expected different names, found one twice")
    for name in classes:
        if not _CLASS.fullmatch(name):
            raise UsageError(
                f"--machine-class: expected letters, digits and any of _ . = + -, found {name!r}"
            )
    if against:
        merge_base.check(folders.root, against)
    whole = suites.plan(
        folders.workloads,
        suites.choose(folders.workloads, suite),
        selection=selection,
        root=folders.root,
        defaults=limits_on(_ANY_CPU),
    )
    collecting.refuse_tests(whole)
    launches_s = known_launches_s(folders.baselines, whole.suite)
    divided = sharding.divide(whole.workloads, launches_s, units)
    planned = WorkPlan(
        tool=Tool(version=__version__),
        suite=whole.suite,
        source=git.source(Path(whole.root)),
        against=against or "",
        suspects=_count_noisy(whole) if against else 0,
        selection=selection,
        units=tuple(
            WorkUnit(
                id=f"{each or ''}{'-' * bool(each)}{number}-of-{len(divided)}",
                workloads=shard.workloads,
                expected_s=round(shard.expected_s, 3),
                machine_class=each,
            )
            for each in classes or (None,)
            for number, shard in enumerate(divided, 1)
        ),
    )
    # As its file would give it: what could not be read again is refused now.
    return codec.decode(codec.encode(planned), WorkPlan, name="the plan")


def _count_noisy(plan: Plan) -> int:
    """Count the noisy metrics that gate, over all workloads."""
    return sum(
        limit.gate and (metric := find_metric(name)) is not None and metric.kind in KIND_OF
        for workload in plan.workloads
        for name, limit in plan.limits.of(workload.id).items()
    )


def known_launches_s(baselines: Path, suite: str) -> dict[str, float]:
    """Return how long a launch of each workload took, start to end, in the newest sessions.

    The mean over the classes of machines that have measured it. Raises InvalidFileError.
    """
    known: dict[str, list[float]] = {}
    for baseline in layout.read_everything(baselines, suite):
        launches_s = [s.launch_s for s in baseline.sessions if s.launch_s is not None]
        if launches_s:
            known.setdefault(baseline.workload, []).append(launches_s[-1])
    return {workload: statistics.fmean(each) for workload, each in known.items()}


# --- one unit


def measure_unit(
    plan: WorkPlan | Location,
    unit: str,
    *,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: Listener | None = None,
    **options: Any,  # noqa: ANN401  the keywords of `ci_perf.measure`
) -> Run:
    """Measure one unit of a plan on this node: as `ci-perf fleet measure`.

    ``options`` are those of `ci_perf.measure`. Raises UsageError: the plan has no such unit, or is
    of another commit, base or version.
    """
    planned = _read_plan(root, plan)
    whole = arguments.measure_options(root, {**options, "suite": planned.suite})
    return measure.measure(
        narrow_options(whole, planned, unit),
        notify=notify or say_nothing,
        listener=listener or Listener(),
    )


def _read_plan(root: Location | None, plan: WorkPlan | Location) -> WorkPlan:
    return plan if isinstance(plan, WorkPlan) else files.read(arguments.below(root, plan), WorkPlan)


def narrow_options(options: MeasureOptions, planned: WorkPlan, name: str) -> MeasureOptions:
    """Return the options of a measurement for the workloads of one unit.

    Raises UsageError: there is no such unit, or the plan is of another commit, base or version.
    """
    units = {unit.id: unit for unit in planned.units}
    if name not in units:
        raise UsageError(
            f"--unit: expected one of the plan, found {name!r}; "
            + codec.did_you_mean(name, sorted(units))
        )
    if options.select:
        named = ", ".join(map(repr, options.select))
        raise UsageError(f"--unit: expected no workloads beside it, found {named}")
    _check_here(planned, options.root)
    if options.against not in {None, planned.against}:
        raise UsageError(
            f"--against: expected {planned.against or 'none'!r}, as it was planned, found "
            f"{options.against!r}; leave it out, or plan again"
        )
    return dataclasses.replace(
        options,
        suite=planned.suite,
        select=units[name].workloads,
        against=planned.against or None,
        unit=name,
        suspects=planned.suspects,
    )


def _check_here(planned: WorkPlan, root: Path) -> None:
    """Refuse a plan of other code. Raises UsageError."""
    commit = git.source(root).commit
    if why := planned.find_difference(commit=commit, version=__version__, suite=planned.suite):
        raise UsageError(f"the plan: {why}; plan again, or use what was planned")


# --- running


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Which units of a plan are run, and by which engine; the fields are options of the command.

    ``output`` is the folder in which each unit has one of its own. ``engine_options`` are words for
    the engine, ``run_options`` words for each `ci-perf fleet measure`. ``python`` is the
    interpreter on the nodes.
    """

    root: Path
    plan: Path
    engine: FleetEngineName
    output: Path
    machine_class: str | None = None
    at_once: int | None = None
    devices: tuple[str, ...] = ()
    engine_options: tuple[str, ...] = ()
    python: str = sys.executable
    run_options: tuple[str, ...] = ()


def run(options: FleetOptions, *, notify: Notify) -> bool:
    """Run every unit that has no valid run yet; return whether all workloads were measured.

    What an engine has begun ends with an interrupt. Raises UsageError, InvalidFileError,
    EngineError and KeyboardInterrupt.
    """
    planned = files.read(options.plan, WorkPlan)
    root, output = options.root.resolve(), options.output.resolve()
    _check_here(planned, root)
    _check_options(options)
    _keep_plan(planned, output)
    units = units_of_class(planned, options.machine_class)
    folders = {unit: UnitFolder(output / unit.id) for unit in units}
    left = [unit for unit in units if _why_undone(planned, unit, folders[unit])]
    notify(f"{render_count(len(units), 'unit')}, {len(left)} of them to measure")
    for unit in left:
        command = (
            *(options.python, "-P", "-m", "ci_perf", "fleet", "measure"),
            *("--plan", str(output / PLAN), "--unit", unit.id),
            *("--output", str(folders[unit].path / RUN), *options.run_options),
        )
        folders[unit].prepare(UnitJob(command=command, root=str(root)))
    if left:
        _run_engine(options, [folders[unit] for unit in left], output)
    undone = 0
    for unit in left:
        reason = _why_undone(planned, unit, folders[unit])
        undone += bool(reason)
        notify(f"{unit.id}: {reason or 'measured'}")
    runs = [read_unit(planned, folders[u].path / RUN).run for u in units] if not undone else []
    return not undone and not any(run.failed for run in runs)


def _check_options(options: FleetOptions) -> None:
    """Refuse options that this engine would not heed. Raises UsageError."""
    if options.devices and (options.engine != "local" or options.at_once):
        raise UsageError("--devices: expected --engine local, and no --at-once beside it")
    if options.engine == "local" and options.engine_options:
        raise UsageError("--option: expected none with --engine local, which takes no options")
    if options.engine == "command" and len(options.engine_options) != 1:
        raise UsageError(
            "--option: expected one, the command of --engine command, found "
            f"{len(options.engine_options)}"
        )
    if options.engine == "ray" and options.at_once:
        raise UsageError("--at-once: expected none with Ray, which runs what fits its resources")


def _keep_plan(planned: WorkPlan, output: Path) -> None:
    """Keep the plan in the folder of its units. Raises UsageError: there is another one."""
    kept = output / PLAN
    files.make_folder(output)
    if kept.exists() and files.read(kept, WorkPlan) != planned:
        raise UsageError(
            f"{output}: expected a new folder or one of this plan, found that of another plan; "
            "name another folder with --output"
        )
    files.write(kept, planned)


def units_of_class(planned: WorkPlan, machine_class: str | None) -> list[WorkUnit]:
    """Return the units for a class of machines; the only class needs no name. Raises UsageError."""
    classes = planned.classes()
    if machine_class is None and len(classes) == 1:
        return list(planned.units)
    if machine_class is None or machine_class not in classes:
        known = ", ".join(each or "none" for each in classes)
        raise UsageError(
            f"--machine-class: expected one of the plan: {known}; found {machine_class or 'none'}"
        )
    return [unit for unit in planned.units if unit.machine_class == machine_class]


def _why_undone(planned: WorkPlan, unit: WorkUnit, folder: UnitFolder) -> str:
    """Say why a unit must be run, or run again; empty where its run is valid and whole."""
    try:
        run = read_unit(planned, folder.path / RUN).run
    except InvalidFileError as error:
        return f"{error}" if (folder.path / RUN).exists() else folder.ending()
    if run.unit != unit.id:
        return f"{RUN}: expected unit {unit.id!r}, found {run.unit!r}"
    if missing := sorted({*unit.workloads} - {*run.workloads()}):
        return f"{RUN}: expected all workloads of the unit, found none for {', '.join(missing)}"
    return "it was interrupted" if run_summary.is_interrupted(run) else ""


def _run_engine(options: FleetOptions, units: list[UnitFolder], output: Path) -> None:
    """Have the engine run units. Raises UsageError, EngineError and KeyboardInterrupt."""
    name = f"ci-perf-{hashlib.sha256(str(output).encode()).hexdigest()[:8]}"
    words, python, at_once = options.engine_options, options.python, options.at_once
    if options.engine == "local":
        local.run_local(units, at_once=at_once or 1, devices=options.devices)
    elif options.engine == "slurm":
        slurm.run(units, options=words, python=python, name=name, at_once=at_once)
    elif options.engine == "ray":
        ray.run(units, options=words, python=python)
    else:
        (template,) = words
        local.run_command(
            units, template=template, python=python, name=name, at_once=at_once or len(units)
        )


# --- merging


def merge(
    *runs: Run | Location,
    plan: WorkPlan | Location,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    notify: Notify | None = None,
) -> dict[str | None, Run]:
    """Join what several nodes have measured into a run per class: as `ci-perf fleet merge`.

    `runs` are runs, files of such, or folders in which each run.json is one, in any order. `None`
    is the class of a plan that names no class. A unit of which a folder holds no valid run has
    failed workloads, with the reason. The suspects, which share the chance of a false alarm, are
    counted over all nodes. Raises InvalidFileError: see `merging.merge`.
    """
    say = notify or say_nothing
    planned = _read_plan(root, plan)
    shards: list[ShardRun] = []
    lost: dict[str, str] = {}
    for source in (arguments.run_of(root, each) for each in runs):
        if isinstance(source, Run) or not source.is_dir():
            shards.append(read_unit(planned, source))
            continue
        # One file of a folder that is of no use must not take the others with it: what it should
        # have held are failed rows.
        for where, _, _ in sorted(os.walk(source)):  # follows no link: none leads out of it
            folder = Path(where)
            name = _unit_named(planned, folder)
            try:
                if (folder / RUN).exists() or (folder / RUN).is_symlink():
                    shards.append(read_unit(planned, folder / RUN))
                elif name:
                    lost[name] = UnitFolder(folder).ending()
            except InvalidFileError as error:
                say(f"not taken: {error}")
                lost[name] = f"{error}"
    merged = merging.merge(planned, shards, lost=lost)
    folders = arguments.folders_of(root, workloads, baselines)
    return {name: _with_suspects(run, folders, say) for name, run in merged.items()}


def _unit_named(planned: WorkPlan, folder: Path) -> str:
    """Return the unit that the name of a folder ends with; empty for none."""
    names = [unit.id for unit in planned.units if f"-{folder.name}".endswith(f"-{unit.id}")]
    return max(names, key=len, default="")


def read_unit(planned: WorkPlan, source: Run | Path) -> ShardRun:
    """Read what a node has written. Raises InvalidFileError: a link, or not of this plan."""
    if isinstance(source, Path) and source.is_symlink():
        raise InvalidFileError(f"{source}: expected a file, found a link; name the file itself")
    run, label = compare.read_run(source)
    shard = ShardRun(label=label, run=run)
    merging.check(planned, shard)
    return shard


def _with_suspects(run: Run, folders: RepositoryFolders, notify: Notify) -> Run:
    """Count the suspects of the whole run by the baselines of its class."""
    if run.interleaved is None:
        return run
    by = compare.basis_of(run, folders, notify=notify)
    return merging.with_suspects(run, by.history, limits=by.rules.limits, tiers=by.rules.tiers)

"""Measure a plan on the engine of a fleet, and judge what all its nodes have measured."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.fleet import controller, fleet_file
from ci_perf.fleet.class_canaries import ClassCanaries
from ci_perf.fleet.controller import FleetOptions, FleetResult, FleetTask
from ci_perf.fleet.settings import FleetRules
from ci_perf.gate import Notify, compare, shards
from ci_perf.gate.shards import MergeOptions, ShardOptions
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import is_same
from ci_perf.model.fleet import FleetEngineName, FleetFile
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan, WorkUnit
from ci_perf.model.suite import FailOn
from ci_perf.system import files

PLAN = "plan.json"
# A unit may launch pairs, profile them and wait for a quiet machine and for its devices.
_EXTRA_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRunOptions:
    """What is measured on which machines; the fields are the options of the command line.

    ``plan`` is a file of `ci-perf plan`; without one the suite of ``sharding`` is divided.
    ``nodes`` is fleet.toml. ``budget_s`` is how long a unit may launch pairs. ``run_options`` are
    given to every `ci-perf run` as they are. ``folder`` keeps everything; ``resume`` goes on.
    """

    sharding: ShardOptions
    engine: FleetEngineName
    nodes: Path
    folder: Path
    plan: Path | None = None
    budget_s: float = 1200.0
    run_options: tuple[str, ...] = ()
    resume: bool = False
    fail_on: FailOn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetVerdict:
    """A run and a comparison per class of machines; `gating` are those that may fail a job."""

    result: FleetResult
    runs: dict[str, Path]
    comparisons: dict[str, Comparison]
    gating: frozenset[str]

    @property
    def exit_code(self) -> int:
        """Return the worst of the gating classes: a proven regression, then no answer."""
        codes = {c.exit_code for name, c in self.comparisons.items() if name in self.gating}
        return next((code for code in (1, 3, 2) if code in codes), 0)


def run(options: FleetRunOptions, *, notify: Notify) -> FleetVerdict:
    """Measure every unit of a plan somewhere, and judge what came of them.

    Raises UsageError, InvalidFileError and EngineError; KeyboardInterrupt once what was measured is
    merged and written.
    """
    fleet = fleet_file.load(options.nodes)
    folder = Path(options.folder).resolve()
    planned = _planned(options, fleet, folder, notify)
    tasks = _tasks(planned, fleet, options)
    root = options.sharding.root.resolve()
    engine = fleet_file.engine(options.engine, fleet, path=options.nodes, folder=folder, root=root)
    extra_s = _EXTRA_S + (options.budget_s if planned.against else 0.0)
    result = controller.run(
        tasks,
        engine,
        FleetOptions(
            folder=folder,
            cwd=root,
            engine=options.engine,
            classes=fleet.classes,
            environment=fleet.environment,
            rules=FleetRules(queue_s=fleet.queue_s, extra_s=extra_s),
            resume=options.resume,
            canaries=ClassCanaries(
                layout.read_everything(options.sharding.baselines, planned.suite)
            ),
        ),
        notify=notify,
    )
    verdict = _judged(planned, tasks, result, options, fleet, notify)
    if result.is_interrupted:
        raise KeyboardInterrupt
    return verdict


def _planned(options: FleetRunOptions, fleet: FleetFile, folder: Path, notify: Notify) -> WorkPlan:
    """Return the plan, and keep it in the folder. Raises UsageError and InvalidFileError."""
    kept = folder / PLAN
    if options.plan is not None:
        planned = files.read(options.plan, WorkPlan)
    elif options.resume and kept.exists():
        return files.read(kept, WorkPlan)
    else:
        several = tuple(fleet.classes) if len(fleet.classes) > 1 else ()
        planned = shards.plan(
            dataclasses.replace(options.sharding, machine_classes=several), notify=notify
        )
    files.make_folder(folder)
    if not kept.exists():
        files.write(kept, planned)
    elif files.read(kept, WorkPlan) != planned:
        raise UsageError(
            f"{kept}: expected the plan of this fleet run, found another one; name another folder "
            "with --output"
        )
    return planned


def _tasks(planned: WorkPlan, fleet: FleetFile, options: FleetRunOptions) -> tuple[FleetTask, ...]:
    python = fleet_file.python(options.engine, fleet)
    sharding = options.sharding
    words = (
        *("--workloads", str(sharding.workloads), "--baselines", str(sharding.baselines)),
        *(("--budget", f"{options.budget_s:g}s") if planned.against else ()),
        *options.run_options,
    )

    def command(unit: Path, target: Path) -> Sequence[str]:
        # -P: the checkout must not be imported in our place.
        ours = (python, "-P", "-m", "ci_perf", "run", "--unit", str(unit), "--output", str(target))
        return (*ours, *words)

    return tuple(
        FleetTask(
            unit=unit,
            plan=planned,
            machine_class=fleet_file.class_of(unit.machine_class, fleet, path=options.nodes),
            command=command,
        )
        for unit in planned.units
    )


def _judged(
    planned: WorkPlan,
    tasks: Sequence[FleetTask],
    result: FleetResult,
    options: FleetRunOptions,
    fleet: FleetFile,
    notify: Notify,
) -> FleetVerdict:
    """Merge the runs of each class, write and judge them."""
    units = {unit.id: unit for unit in planned.units}
    strangers = _strangers(units, result.runs)
    lost = {ending.unit: ending.reason for ending in result.endings if ending.kind != "measured"}
    for unit, reason in strangers.items():
        notify(f"{unit}: {reason}")
    sharding, folder = options.sharding, options.folder
    merged = shards.merge(
        MergeOptions(
            runs=tuple(path for name, path in result.runs.items() if name not in strangers),
            plan=folder / PLAN,
            workloads=sharding.workloads,
            baselines=sharding.baselines,
            lost={**lost, **strangers},
        ),
        notify=notify,
    )
    named = {task.unit.machine_class: task.machine_class for task in tasks}
    runs, comparisons = {}, {}
    for machine_class, whole in merged.items():
        name = named[machine_class]
        suffix = f".{name}.json" if len(merged) > 1 else ".json"
        runs[name] = target = folder / f"run{suffix}"
        files.write(target, whole)
        notify(f"run: {target}")
        comparisons[name] = compare.with_baselines(
            whole,
            label=str(target),
            baselines=sharding.baselines,
            workloads=sharding.workloads,
            fail_on=options.fail_on,
            notify=notify,
        )
        files.write(folder / f"comparison{suffix}", comparisons[name])
    gating = frozenset(name for name, one_class in fleet.classes.items() if one_class.gate)
    return FleetVerdict(result=result, runs=runs, comparisons=comparisons, gating=gating)


def _strangers(units: Mapping[str, WorkUnit], runs: Mapping[str, Path]) -> dict[str, str]:
    """Say of units which were measured on another machine than most of their class, and why.

    They cannot be merged, and one bad node must not stop the others.
    """
    by_class: dict[str | None, dict[str, Run]] = {}
    for name, path in runs.items():
        by_class.setdefault(units[name].machine_class, {})[name] = files.read(path, Run)
    return {name: why for ours in by_class.values() for name, why in _unlike_most(ours)}


def _unlike_most(runs: Mapping[str, Run]) -> Iterable[tuple[str, str]]:
    machines = {name: run.environment.hard for name, run in runs.items()}
    alike = Counter(
        {
            name: sum(is_same(machine, other) for other in machines.values())
            for name, machine in machines.items()
        }
    )
    (usual, _), *_ = alike.most_common(1)
    for name, machine in machines.items():
        if not is_same(machines[usual], machine):
            difference = f"expected {machines[usual]}, found {machine}"
            why = "measured on another machine than most of its class"
            yield name, f"{why}: {difference}; say in fleet.toml what to `expect`"

"""Measure a plan on the engine of a fleet, and judge what all its nodes have measured."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.fleet import controller, fleet_file, journal
from ci_perf.fleet.class_canaries import ClassCanaries
from ci_perf.fleet.controller import FleetOptions, FleetResult, FleetTask
from ci_perf.fleet.settings import FleetRules
from ci_perf.gate import Notify, compare, shards
from ci_perf.gate.shards import MergeOptions, NothingSuspectedError, ShardOptions
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import is_same
from ci_perf.model.fleet import Endings, FleetEngineName, FleetFile
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan, WorkUnit
from ci_perf.model.suite import FailOn
from ci_perf.report.units import numbered
from ci_perf.system import files, git

PLAN = "plan.json"
# The folders of two waves.
SCREEN, PAIRS = "screen", "pairs"
# A unit may launch pairs, profile them and wait for a quiet machine and for its devices.
_EXTRA_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRunOptions:
    """What is measured on which machines; the fields are the options of the command line.

    ``plan`` is a file of `ci-perf plan`; without one the suite of ``sharding`` is divided.
    ``nodes`` is fleet.toml. ``budget_s`` is how long a unit may launch pairs. ``run_options`` are
    given to every `ci-perf run` as they are. With ``one_wave`` each unit launches pairs at once,
    and counts its own suspects alone. ``folder`` keeps everything; ``resume`` goes on.
    """

    sharding: ShardOptions
    engine: FleetEngineName
    nodes: Path
    folder: Path
    plan: Path | None = None
    budget_s: float = 1200.0
    run_options: tuple[str, ...] = ()
    one_wave: bool = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wave:
    """What is measured at once: a plan, its folder, and how long each unit may launch pairs.

    ``is_screen``: of two waves it is the first one, in which nobody launches a pair.
    """

    plan: WorkPlan
    plan_file: Path
    folder: Path
    budget_s: float
    is_screen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleet:
    """What all waves share. The keys of runs are the classes of the plan."""

    options: FleetRunOptions
    file: FleetFile
    folder: Path
    canaries: ClassCanaries
    notify: Notify

    def measure(self, wave: _Wave) -> FleetResult:
        """Give every unit of a wave its ending. Raises as `controller.run` does."""
        options, root = self.options, self.options.sharding.root.resolve()
        engine = fleet_file.engine(
            options.engine, self.file, path=options.nodes, folder=wave.folder, root=root
        )
        extra_s = _EXTRA_S + (wave.budget_s if wave.plan.against else 0.0)
        return controller.run(
            self._tasks(wave),
            engine,
            FleetOptions(
                folder=wave.folder,
                cwd=root,
                engine=options.engine,
                classes=self.file.classes,
                environment=self.file.environment,
                rules=FleetRules(queue_s=self.file.queue_s, extra_s=extra_s),
                resume=options.resume,
                canaries=self.canaries,
            ),
            notify=self.notify,
        )

    def _tasks(self, wave: _Wave) -> tuple[FleetTask, ...]:
        sharding, python = self.options.sharding, fleet_file.python(self.options.engine, self.file)
        words = (
            *("--workloads", str(sharding.workloads), "--baselines", str(sharding.baselines)),
            *(("--budget", f"{wave.budget_s:g}s") if wave.plan.against else ()),
            *self.options.run_options,
            *(("--budget", "0s") if wave.is_screen else ()),  # whatever stands before it
        )

        def command(unit: Path, target: Path) -> Sequence[str]:
            # -P: the checkout must not be imported in our place.
            ours = (python, "-P", "-m", "ci_perf", "run", "--unit", str(unit), "--output")
            return (*ours, str(target), *words)

        return tuple(
            FleetTask(
                unit=unit,
                plan=wave.plan,
                machine_class=self.name_of(unit.machine_class),
                command=command,
                is_screen=wave.is_screen,
            )
            for unit in wave.plan.units
        )

    def name_of(self, machine_class: str | None) -> str:
        """Return what fleet.toml calls a class of a plan. Raises UsageError."""
        return fleet_file.class_of(machine_class, self.file, path=self.options.nodes)

    def merge(
        self, wave: _Wave, result: FleetResult, after: Mapping[str | None, Path] | None = None
    ) -> dict[str | None, Run]:
        """Merge what a wave has measured; `after` are the runs of the wave before."""
        units = {unit.id: unit for unit in wave.plan.units}
        strangers = _strangers(units, result.runs)
        for unit, reason in strangers.items():
            self.notify(f"{unit}: {reason}")
        lost = {each.unit: each.reason for each in result.endings if each.kind != "measured"}
        sharding = self.options.sharding
        options = MergeOptions(
            runs=tuple(path for name, path in result.runs.items() if name not in strangers),
            plan=wave.plan_file,
            root=sharding.root,
            workloads=sharding.workloads,
            baselines=sharding.baselines,
            lost={**lost, **strangers},
        )
        if after is None:
            return shards.merge(options, notify=self.notify)
        return shards.merge_pairs(options, after, notify=self.notify)

    def target(self, stem: str, machine_class: str | None, of: int, folder: Path) -> Path:
        """Return the file of a class, where there are `of` classes."""
        suffix = f".{self.name_of(machine_class)}.json" if of > 1 else ".json"
        return folder / f"{stem}{suffix}"

    def judge(self, runs: Mapping[str | None, Run], result: FleetResult) -> FleetVerdict:
        """Write the runs of all classes, and judge them."""
        sharding, files_of, comparisons = self.options.sharding, {}, {}
        for machine_class, whole in runs.items():
            name = self.name_of(machine_class)
            files_of[name] = path = self.target("run", machine_class, len(runs), self.folder)
            files.write(path, whole)
            self.notify(f"run: {path}")
            comparisons[name] = compare.with_baselines(
                whole,
                sharding,
                label=str(path),
                fail_on=self.options.fail_on,
                notify=self.notify,
            )
            target = self.target("comparison", machine_class, len(runs), self.folder)
            files.write(target, comparisons[name])
        gating = frozenset(name for name, known in self.file.classes.items() if known.gate)
        return FleetVerdict(result=result, runs=files_of, comparisons=comparisons, gating=gating)


def run(options: FleetRunOptions, *, notify: Notify) -> FleetVerdict:
    """Measure every unit of a plan somewhere, and judge what came of them.

    Raises UsageError, InvalidFileError and EngineError; KeyboardInterrupt once what was measured is
    merged and written.
    """
    file = fleet_file.load(options.nodes)
    fleet_file.check(options.engine, file, path=options.nodes)  # before anything is written
    folder = Path(options.folder).resolve()
    planned = _planned(options, file, folder, notify)
    fleet = _Fleet(
        options=options,
        file=file,
        folder=folder,
        canaries=ClassCanaries(layout.read_everything(options.sharding.baselines, planned.suite)),
        notify=notify,
    )
    is_in_two = _is_in_two_waves(planned, options)
    _check_waves(folder, is_in_two=is_in_two)
    whole = _Wave(plan=planned, plan_file=folder / PLAN, folder=folder, budget_s=options.budget_s)
    if is_in_two:
        runs, result = _two_waves(fleet, whole)
    else:
        result = fleet.measure(whole)
        runs = fleet.merge(whole, result)
    verdict = fleet.judge(runs, result)
    if result.is_interrupted:
        raise KeyboardInterrupt
    return verdict


def _is_in_two_waves(planned: WorkPlan, options: FleetRunOptions) -> bool:
    """Whether suspects of several units share alpha, so that they are counted before any pair."""
    units = Counter(unit.machine_class for unit in planned.units)
    may_pair = bool(planned.against) and options.budget_s > 0 and not options.one_wave
    return may_pair and max(units.values()) > 1 and not any(u.suspected for u in planned.units)


def _check_waves(folder: Path, *, is_in_two: bool) -> None:
    """Refuse to go on in two waves with what was begun in one, and the reverse."""
    other = folder / (journal.NAME if is_in_two else SCREEN)
    if other.exists():
        raise UsageError(
            f"{other}: expected none, found that of a fleet run in "
            f"{'one wave' if is_in_two else 'two waves'}; go on with the options that it began "
            "with, or name another folder with --output"
        )


def _two_waves(fleet: _Fleet, whole: _Wave) -> tuple[dict[str | None, Run], FleetResult]:
    """Screen everywhere, count the suspects of all units, then launch pairs for these alone."""
    screen = dataclasses.replace(whole, folder=fleet.folder / SCREEN, is_screen=True, budget_s=0.0)
    fleet.notify(f"first wave: {numbered(len(whole.plan.units), 'unit')}, without pairs")
    result = fleet.measure(screen)
    runs = fleet.merge(screen, result)
    firsts = {name: fleet.target("run", name, len(runs), screen.folder) for name in runs}
    for name, path in firsts.items():
        files.write(path, runs[name])
    pairs = None if result.is_interrupted else _wave_of_pairs(fleet, whole, runs, firsts)
    if pairs is not None:
        second = fleet.measure(pairs)
        result = FleetResult(
            endings=(*result.endings, *second.endings), runs={**result.runs, **second.runs}
        )
        runs |= fleet.merge(pairs, second, firsts)
    files.write(
        fleet.folder / "endings.json",
        Endings(engine=fleet.options.engine, endings=result.endings),
    )
    return runs, result


def _wave_of_pairs(
    fleet: _Fleet,
    whole: _Wave,
    runs: Mapping[str | None, Run],
    firsts: Mapping[str | None, Path],
) -> _Wave | None:
    """Plan the pairs of what the first wave has not cleared; `None` where nothing is left."""
    plans = []
    for name, path in firsts.items():
        if runs[name].interleaved is None:  # no node has brought anything
            continue
        options = dataclasses.replace(
            fleet.options.sharding,
            shards=whole.plan.shards,
            machine_classes=() if name is None else (name,),
            after=path,
        )
        with contextlib.suppress(NothingSuspectedError):
            plans.append(shards.plan(options, notify=fleet.notify))
    if not plans:
        fleet.notify("no workload needs pairs of base and head: there is no second wave")
        return None
    planned = msgspec.structs.replace(
        plans[0],
        selection=tuple(dict.fromkeys(each for plan in plans for each in plan.selection)),
        units=tuple(unit for plan in plans for unit in plan.units),
    )
    folder = fleet.folder / PAIRS
    _keep(planned, folder)
    units = numbered(len(planned.units), "unit")
    fleet.notify(f"second wave: {numbered(_suspected(planned), 'workload')} in {units}")
    return dataclasses.replace(whole, plan=planned, plan_file=folder / PLAN, folder=folder)


def _suspected(planned: WorkPlan) -> int:
    return sum(bool(metrics) for unit in planned.units for metrics in unit.suspected.values())


def check_resumed(
    folder: Path, *, shards: int | None, against: str | None, suite: str | None
) -> None:
    """Refuse to go on with another fleet run than was asked for; `None` is what nobody has said.

    Raises UsageError.
    """
    kept = folder / PLAN
    if files.is_missing(kept):
        return
    planned = files.read(kept, WorkPlan)
    said = {"--shards": shards, "--against": against, "--suite": suite}
    facts = {"--shards": planned.shards, "--against": planned.against, "--suite": planned.suite}
    for option, value in said.items():
        if value is not None and value != facts[option]:
            raise UsageError(
                f"{option}: expected {facts[option] or 'none'}, as {kept} has it, found {value}; "
                "--resume goes on with that plan, another --output begins with another one"
            )


def _planned(options: FleetRunOptions, fleet: FleetFile, folder: Path, notify: Notify) -> WorkPlan:
    """Return the plan, and keep it in the folder. Raises UsageError and InvalidFileError."""
    kept = folder / PLAN
    if options.plan is not None:
        planned = files.read(options.plan, WorkPlan)
        _check_commit(planned, options.plan, options.sharding.root)
    elif options.resume and kept.exists():
        planned = files.read(kept, WorkPlan)
        _check_commit(planned, kept, options.sharding.root)
    else:
        several = tuple(fleet.classes) if len(fleet.classes) > 1 else ()
        planned = shards.plan(
            dataclasses.replace(options.sharding, machine_classes=several), notify=notify
        )
    _keep(planned, folder)
    return planned


def _check_commit(planned: WorkPlan, path: Path, root: Path) -> None:
    """Refuse a plan of another commit: every unit would fail, and failed for good. UsageError."""
    here = git.source(root).commit
    if planned.source.commit != here:
        raise UsageError(
            f"{path}: expected a plan of commit {here!r}, which is checked out, found one of "
            f"{planned.source.commit!r}; check that commit out, or plan this one"
        )


def _keep(planned: WorkPlan, folder: Path) -> None:
    """Keep a plan in its folder. Raises UsageError: there is another one."""
    kept = folder / PLAN
    files.make_folder(folder)
    if not kept.exists():
        files.write(kept, planned)
    elif files.read(kept, WorkPlan) != planned:
        raise UsageError(
            f"{kept}: expected the plan of this fleet run, found another one; name another folder "
            "with --output"
        )


def _strangers(units: Mapping[str, WorkUnit], runs: Mapping[str, Path]) -> dict[str, str]:
    """Say of units which were measured on another machine than most of their class, and why.

    They cannot be merged, and one bad node must not stop the others.
    """
    by_class: dict[str | None, dict[str, Run]] = {}
    for name, path in runs.items():
        by_class.setdefault(units[name].machine_class, {})[name] = files.read(path, Run)
    return {name: why for ours in by_class.values() for name, why in unlike_most(ours)}


def unlike_most(runs: Mapping[str, Run]) -> Iterable[tuple[str, str]]:
    """Yield the units that were measured on another machine than most, and say so."""
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

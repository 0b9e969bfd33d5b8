"""Measure commits on the engine of a fleet: units that each are one commit, a batch at a time.

Each batch is a fleet run in a folder of its own: one ending per unit, a journal, retries. A node
checks its commit out by itself (`commit_sessions.py`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from ci_perf import worktree
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.fleet import controller, fleet_file
from ci_perf.fleet.class_canaries import ClassCanaries
from ci_perf.fleet.controller import FleetOptions, FleetTask
from ci_perf.fleet.settings import FleetRules
from ci_perf.gate import Notify, check_word, runners
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model.fleet import FleetEngineName, NodeClass
from ci_perf.model.run import Run, Source, Tool
from ci_perf.model.shards import CommitUnits, CommitWork, WorkPlan, WorkUnit
from ci_perf.model.suite import Limits, Tiers
from ci_perf.system import files
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

_UNITS = "units.json"
# A unit may wait for a quiet machine and for its devices, and run the setup of both sides.
_EXTRA_S = 1800.0
_LABEL_CHARS = 16
_ID_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFleet:
    """Which machines measure commits; the fields are the options of the command line.

    ``nodes`` is fleet.toml, of which ``machine_class`` names a class if there are several.
    ``folder`` keeps everything, and must be seen by the nodes; ``resume`` goes on with it.
    """

    engine: FleetEngineName
    nodes: Path
    folder: Path
    machine_class: str | None = None
    resume: bool = False

    def words(self) -> tuple[str, ...]:
        """Return what a command line says to have commits measured there, but for the folder."""
        named = ("--machine-class", self.machine_class) if self.machine_class else ()
        return ("--engine", self.engine, "--nodes", str(self.nodes), *named)


def chosen(
    engine: FleetEngineName | None,
    nodes: Path | None,
    machine_class: str | None,
    folder: Path,
    *,
    resume: bool,
) -> CommitFleet | None:
    """Return the fleet that options name; `None` for this machine.

    Raises UsageError: options that do not fit together.
    """
    if engine is None:
        for name, value in (("nodes", nodes), ("machine-class", machine_class), ("resume", resume)):
            if value:
                raise UsageError(f"--{name}: expected --engine beside it, found none")
        return None
    check_word("--engine", engine, get_args(FleetEngineName))
    if nodes is None:
        raise UsageError(f"--engine {engine}: expected --nodes FLEET.toml beside it, found none")
    return CommitFleet(
        engine=engine, nodes=nodes, folder=folder, machine_class=machine_class, resume=resume
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUnits:
    """What came of a batch: runs, and for the others why there is none, both by unit."""

    units: tuple[WorkUnit, ...]
    runs: dict[str, Run] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    is_interrupted: bool = False


class CommitBatches:
    """Has batches of commits measured by the nodes of one class.

    ``nodes`` is how many at once, ``node_class`` what fleet.toml says of them.
    """

    def __init__(
        self,
        fleet: CommitFleet,
        options: MeasureOptions,
        ending: Interrupts,
        notify: Notify,
        *,
        attempts: int,
    ) -> None:
        """Read fleet.toml. A unit that its node loses has as many attempts.

        Raises UsageError and InvalidFileError.
        """
        self._folder = Path(options.root, fleet.folder).resolve()
        _check_folder(self._folder, fleet)
        self._fleet, self._options = fleet, options
        self._ending, self._notify = ending, notify
        self._file = fleet_file.load(fleet.nodes)
        fleet_file.check(fleet.engine, self._file, path=fleet.nodes)  # before anything is written
        self._class = fleet_file.class_of(fleet.machine_class, self._file, path=fleet.nodes)
        self._attempts = attempts
        known = layout.read_everything(Path(options.root, options.baselines), options.suite)
        self._canaries = ClassCanaries(known)

    @property
    def nodes(self) -> int:
        """How many commits are measured at the same time."""
        return self.node_class.nodes

    @property
    def node_class(self) -> NodeClass:
        """What fleet.toml says of the nodes."""
        return self._file.classes[self._class]

    def unit(
        self,
        commit: str,
        workloads: Sequence[str],
        *,
        against: str = "",
        expected_s: float = 0.0,
        metric: str = "",
        limits: Limits | None = None,
        tiers: Tiers | None = None,
        explained: bool = False,
    ) -> WorkUnit:
        """Return the unit of a commit; see CommitWork."""
        label = hashlib.sha256(str(self._folder).encode(errors="replace")).hexdigest()
        return WorkUnit(
            tool=Tool(version=__version__),
            id=commit[:_ID_CHARS],
            suite=self._options.suite,
            source=Source(commit=commit, branch="", dirty=False),
            workloads=tuple(workloads),
            expected_s=round(expected_s, 3),
            against=against,
            commit=CommitWork(
                label=label[:_LABEL_CHARS],
                metric=metric,
                limits=limits,
                tiers=tiers or Tiers(),
                explained=explained,
            ),
        )

    def kept(self, batch: str) -> tuple[WorkUnit, ...]:
        """Return the units of a batch that an earlier call has begun; none if there is none."""
        path = self._folder / batch / _UNITS
        return files.read(path, CommitUnits).units if path.exists() else ()

    def measure(self, batch: str, units: Sequence[WorkUnit], *, budget_s: float) -> MeasuredUnits:
        """Have every unit measured; where this batch was begun before, the units of then.

        With a base, pairs may take `budget_s`. Raises CiPerfError, and returns when interrupted.
        """
        folder = self._folder / batch
        files.make_folder(folder)
        begun = self.kept(batch)
        _check_same(folder, begun, units)
        if not begun:
            files.write(folder / _UNITS, CommitUnits(units=tuple(units)))
        chosen = begun or tuple(units)
        root = self._options.root.resolve()
        engine = fleet_file.engine(
            self._fleet.engine,
            self._file,
            path=self._fleet.nodes,
            folder=folder,
            root=root,
            is_checkout_measured=False,
        )
        rules = FleetRules(
            attempts=self._attempts, queue_s=self._file.queue_s, extra_s=_EXTRA_S + budget_s
        )
        try:
            result = controller.run(
                [self._task(unit, budget_s) for unit in chosen],
                engine,
                FleetOptions(
                    folder=folder,
                    cwd=root,
                    engine=self._fleet.engine,
                    classes={self._class: self.node_class},
                    environment=self._file.environment,
                    rules=rules,
                    resume=bool(begun),
                    canaries=self._canaries,
                ),
                notify=self._notify,
                interrupts=self._ending,
            )
        finally:
            self._remove_worktrees(chosen[0])
        return MeasuredUnits(
            units=chosen,
            runs={name: files.read(path, Run) for name, path in result.runs.items()},
            reasons={
                ending.unit: ending.reason
                for ending in result.endings
                if ending.kind in {"failed", "lost"}
            },
            is_interrupted=result.is_interrupted,
        )

    def _task(self, unit: WorkUnit, budget_s: float) -> FleetTask:
        planned = WorkPlan(
            tool=unit.tool,
            suite=unit.suite,
            source=unit.source,
            against=unit.against,
            shards=1,
            units=(unit,),
        )
        python = fleet_file.python(self._fleet.engine, self._file)

        def command(file: Path, target: Path) -> Sequence[str]:
            # -P: the checkout must not be imported in our place.
            ours = (python, "-P", "-m", "ci_perf", "run", "--unit", str(file), "-o", str(target))
            return (*ours, *_words(self._options, unit, budget_s))

        return FleetTask(unit=unit, plan=planned, machine_class=self._class, command=command)

    def _remove_worktrees(self, unit: WorkUnit) -> None:
        """Remove what nodes that were lost or killed have left of ours."""
        assert unit.commit is not None
        try:
            worktree.remove_labelled(self._options.root, unit.commit.label)
        except CiPerfError as error:
            self._notify(f"note: worktrees of nodes that were lost may be left: {error}")


def _check_folder(folder: Path, fleet: CommitFleet) -> None:
    """Refuse a folder of something else, or one with nothing to go on with. Raises UsageError."""
    has_batches = folder.is_dir() and any(folder.iterdir())
    if has_batches and not fleet.resume:
        raise UsageError(
            f"--fleet-output {fleet.folder}: expected an empty folder or none, found files; go on "
            "with them by --resume, or name another folder"
        )
    if fleet.resume and not has_batches:
        raise UsageError(
            f"--resume: expected what an earlier call has left in {fleet.folder}, found nothing; "
            "name its folder with --fleet-output, or leave --resume out"
        )


def _check_same(folder: Path, begun: Sequence[WorkUnit], units: Sequence[WorkUnit]) -> None:
    """Refuse to go on with what measured something else. Raises UsageError."""

    def asked(each: Sequence[WorkUnit]) -> set[tuple[str, str]]:
        return {(unit.suite, unit.against) for unit in each}

    if begun and asked(begun) != asked(units):
        raise UsageError(
            f"{folder / _UNITS}: expected units of the same suite and base as now, found others; "
            "name another folder with --fleet-output"
        )


def _words(options: MeasureOptions, unit: WorkUnit, budget_s: float) -> tuple[str, ...]:
    """Return the options of `ci-perf run` on a node."""
    processes = () if options.processes is None else ("--processes", str(options.processes))
    wait = () if options.wait_s is None else ("--wait", f"{options.wait_s:g}s")
    record = "--record" if options.record else "--no-record"
    explain_budget = ("--explain-budget", f"{options.explain_budget_s:g}s")
    return (
        *("--workloads", str(options.workloads), "--baselines", str(options.baselines)),
        *("--device", options.device, "--lock-timeout", f"{options.lock_timeout_s:g}"),
        *processes,
        *wait,
        record,
        *(("--budget", f"{budget_s:g}s", *explain_budget) if unit.against else ()),
        *runners.spelled(options.runner),
    )

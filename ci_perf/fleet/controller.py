"""Run units on an engine: the folder of a fleet run, and what nodes read and leave there.

DIR/journal.jsonl             what was done, line by line
DIR/jobs/JOB.json             the attempts of one job of the engine, and what it has said of them
DIR/attempts/UNIT/N-NONCE/    order.json and unit.json for a node; receipt.json and run.json of it
DIR/runs/UNIT.json            the run of a unit, once it was accepted
DIR/endings.json              how every unit ended
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_perf.errors import UsageError
from ci_perf.fleet import journal, node, reading
from ci_perf.fleet.class_canaries import ClassCanaries
from ci_perf.fleet.engine import FleetEngine
from ci_perf.fleet.journal import Journal, Past
from ci_perf.fleet.ledger import Ledger
from ci_perf.fleet.reading import Outcome, Usable, Wanted
from ci_perf.fleet.settings import FleetRules, World
from ci_perf.model.fleet import (
    Attempt,
    Began,
    Ending,
    Endings,
    FleetEngineName,
    JobFile,
    NodeClass,
    Order,
)
from ci_perf.model.node_check import NodeCheck
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan, WorkUnit
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts

# How soon a signal is noticed.
_SLICE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTask:
    """A unit of a plan, for a class of fleet.toml.

    `command` is given the paths of the unit's file and of the run to write. `is_screen`: a run with
    pairs is refused.
    """

    unit: WorkUnit
    plan: WorkPlan
    machine_class: str
    command: Callable[[Path, Path], Sequence[str]]
    is_screen: bool = False

    @property
    def id(self) -> str:
        """See FleetUnit."""
        return self.unit.id

    @property
    def expected_s(self) -> float:
        """See FleetUnit."""
        return self.unit.expected_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """What is run where. `cwd` is the checkout; `environment` names variables that units keep.

    ``canaries`` knows how fast the nodes of a class are, and hears of those that measure.
    """

    folder: Path
    cwd: Path
    engine: FleetEngineName
    classes: Mapping[str, NodeClass]
    environment: tuple[str, ...]
    rules: FleetRules
    resume: bool
    canaries: ClassCanaries = field(default_factory=ClassCanaries)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """How every unit ended, and the runs of those that were measured, by unit."""

    endings: tuple[Ending, ...]
    runs: dict[str, Path]

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody has ended it before every unit was done."""
        return any(ending.kind == "cancelled" for ending in self.endings)


def run(
    tasks: Sequence[FleetTask],
    engine: FleetEngine,
    options: FleetOptions,
    *,
    notify: Callable[[str], None],
    interrupts: Interrupts | None = None,
) -> FleetResult:
    """Give every unit its ending. Raises CiPerfError, and returns also when it is interrupted.

    `interrupts` are noted by who calls; one that comes when every unit has ended is left to them.

    Raises UsageError: the folder holds another fleet run, or one that nobody asked to resume;
    BusyError: its controller still runs; EngineError: the engine does not answer, or keeps a job
    that was cancelled.
    """
    engine.poll([])  # who has no client, or no cluster, hears of it before anything is written
    files.make_folder(options.folder)
    noting = signals.noted() if interrupts is None else contextlib.nullcontext(interrupts)
    with Journal(options.folder) as written, noting as noted:
        past = _past(tasks, options, written)
        ledger = Ledger(
            tasks,
            options.classes,
            _world(tasks, engine, options, written, noted, notify),
            options.rules,
        )
        try:
            endings = ledger.run(past)
        finally:
            engine.close()
        files.write(
            options.folder / "endings.json", Endings(engine=options.engine, endings=endings)
        )
    measured = [ending.unit for ending in endings if ending.kind == "measured"]
    return FleetResult(
        endings=endings, runs={name: run_file(options.folder, name) for name in measured}
    )


def run_file(folder: Path, unit: str) -> Path:
    """Return where the run of a unit is kept once it was accepted."""
    return folder / "runs" / f"{unit}.json"


def _past(tasks: Sequence[FleetTask], options: FleetOptions, written: Journal) -> Past:
    """Read what was done before, and write that it goes on. Raises UsageError."""
    past = written.read()
    where = options.folder / journal.NAME
    plan = _digest(tasks, options)
    if past.began is not None and not options.resume:
        raise UsageError(
            f"{where}: expected none, found the journal of an earlier fleet run; go on with it by "
            "--resume, or name another folder with --output"
        )
    if past.began is not None and (past.began.plan, past.began.engine) != (plan, options.engine):
        raise UsageError(
            f"{where}: expected the same plan, classes and engine as now, found others; begin anew "
            "in another folder"
        )
    written.append([Began(plan=plan, engine=options.engine, units=len(tasks))])
    return past


def _digest(tasks: Sequence[FleetTask], options: FleetOptions) -> str:
    whole = hashlib.sha256()
    for task in tasks:
        whole.update(msgspec.json.encode([task.id, task.machine_class, task.unit]))
    whole.update(msgspec.json.encode(dict(options.classes), order="deterministic"))
    return whole.hexdigest()


def _world(
    tasks: Sequence[FleetTask],
    engine: FleetEngine,
    options: FleetOptions,
    written: Journal,
    interrupts: Interrupts,
    notify: Callable[[str], None],
) -> World:
    shared = _SharedFolder({task.id: task for task in tasks}, options)
    return World(
        engine=engine,
        prepare=shared.prepare,
        read=shared.read,
        record=written.append,
        notify=notify,
        clock=time.monotonic,
        sleep=lambda seconds: _sleep(seconds, interrupts),
    )


class _SharedFolder:
    """What controller and nodes both see."""

    def __init__(self, tasks: Mapping[str, FleetTask], options: FleetOptions) -> None:
        self._tasks, self._options = tasks, options
        for name in ("jobs", "attempts", "runs"):
            files.make_folder(options.folder / name)
        for file in sorted((options.folder / "runs").glob("*.json")):
            options.canaries.hear(files.read(file, Run))

    def prepare(self, job: str, attempts: Sequence[Attempt]) -> str:
        """Write what the nodes of a job read. Raises CannotWriteError."""
        for attempt in attempts:
            task, folder = self._tasks[attempt.unit], self._of(attempt)
            files.make_folder(folder)
            unit = folder / "unit.json"
            order = Order(
                unit=attempt.unit,
                nonce=attempt.nonce,
                command=tuple(task.command(unit, folder / node.RUN)),
                cwd=str(self._options.cwd),
                environment=self._options.environment,
            )
            files.write(unit, msgspec.structs.replace(task.unit, node=self._check(attempt)))
            files.write(folder / node.ORDER, order)
        path = self._options.folder / "jobs" / f"{job}.json"
        files.write(path, JobFile(folders=tuple(str(self._of(attempt)) for attempt in attempts)))
        return str(path)

    def _check(self, attempt: Attempt) -> NodeCheck:
        """Say what the node of an attempt must be; the last one measures, however slow it is.

        Where all nodes are slow today, no node would be left.
        """
        node_class = self._options.classes[self._tasks[attempt.unit].machine_class]
        if attempt.number < self._options.rules.attempts:
            return self._options.canaries.check(node_class)
        return NodeCheck(expect=node_class.expect)

    def read(self, attempt: Attempt) -> Outcome | None:
        """Read what a node has left, and keep a run that is accepted: nobody changes it later."""
        task = self._tasks[attempt.unit]
        wanted = Wanted(
            plan=msgspec.structs.replace(task.plan, units=(task.unit,)),
            expect=self._options.classes[task.machine_class].expect,
            is_screen=task.is_screen,
        )
        outcome = reading.read(self._of(attempt), attempt, wanted)
        if isinstance(outcome, Usable):
            self._options.canaries.hear(outcome.run)
            files.write(run_file(self._options.folder, attempt.unit), outcome.run)
        return outcome

    def _of(self, attempt: Attempt) -> Path:
        name = f"{attempt.number}-{attempt.nonce}"
        return self._options.folder / "attempts" / attempt.unit / name


def _sleep(seconds: float, interrupts: Interrupts) -> None:
    """Sleep, and notice a signal soon. Raises KeyboardInterrupt, once for every signal."""
    end = time.monotonic() + seconds
    while (left_s := end - time.monotonic()) > 0:
        if interrupts.have_come():
            interrupts.came = False
            raise KeyboardInterrupt
        time.sleep(min(_SLICE_S, left_s))

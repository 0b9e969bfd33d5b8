"""One session: every process of every workload, the pairs after them, and the run they make."""

import dataclasses
import datetime as dt
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.features.explain.kept_files import KeptFiles
from ci_perf.features.explain.session import Explaining
from ci_perf.judging.earlier_checks import Before
from ci_perf.launch import Launcher
from ci_perf.model import run as runs
from ci_perf.model.baseline import Calibration
from ci_perf.model.run import Source
from ci_perf.model.suite import LARGEST_LIMIT, Plan
from ci_perf.model.task import MachineDescription
from ci_perf.model.validity import distinct, validity_of
from ci_perf.session.interleaving import Against, Interleaving
from ci_perf.session.listener import Listener
from ci_perf.session.machine import describe, held
from ci_perf.session.recording import SamenessProver, SessionPrograms
from ci_perf.session.runner import MachineChecks, SessionRunner
from ci_perf.session.schedule import Forecast, PairJudge
from ci_perf.suite import screening
from ci_perf.system import git, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

__all__ = [
    "Against",
    "Forecast",
    "Listener",
    "MachineChecks",
    "PairJudge",
    "SamenessProver",
    "completed",
    "describe",
    "measure",
    "new_identity",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What is known of a run before it begins."""

    plan: Plan
    machine: MachineDescription
    identity: str
    source: Source
    started: dt.datetime
    start: float
    before: Before

    def run(
        self,
        runner: SessionRunner,
        interleaving: Interleaving | None = None,
        recording: SessionPrograms | None = None,
        explaining: Explaining | None = None,
    ) -> runs.Run:
        """Return the run as far as it has come."""
        run = runs.Run(
            tool=runs.Tool(version=__version__),
            id=self.identity,
            started_at=self.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            duration_s=round(time.monotonic() - self.start, 3),
            source=self.source,
            suite=self.plan.suite,
            selection=self.plan.selection,
            environment=self.machine.environment,
            validity=validity_of(distinct(runner.reasons)),
            canaries=tuple(runner.canaries),
            measured=runner.measured(),
            failed=runner.failed(),
            interleaved=interleaving.described() if interleaving else None,
            paired=interleaving.paired() if interleaving else (),
            same=recording.same if recording else (),
            touched=recording.touched if recording else (),
            programs=tuple(recording.programs) if recording else (),
            profiled=tuple(explaining.pairs.values()) if explaining else (),
        )
        return self.before.joined(run)


def new_identity() -> str:
    """Return the id of a run that is about to begin."""
    return uuid.uuid4().hex[:12]


def measure(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    *,
    device: str,
    lock_timeout_s: float,
    against: Against | None = None,
    prover: SamenessProver | None = None,
    baselines: Path | None = None,
    identity: str | None = None,
    wait_s: float | None = 0.0,
    checks: MachineChecks = MachineChecks(),  # noqa: B008  it is frozen
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    clock: Callable[[], float] = time.monotonic,
) -> runs.Run:
    """Measure the plan, alone on its device. A workload that fails is recorded and stops no other.

    A calibration of the machine below `baselines` completes the plan. With `against`, base and
    head are launched in turns where the baselines do not clear the head. A workload of which
    `prover` says that both sides run the same program is not launched; the others are recorded.
    `wait_s` is how long to wait for a machine that others use, before it is measured all the same;
    `None` is what suits the device. An interrupt ends the child, and the run, as far as
    it has come, says so in its validity; before anything is launched, it raises KeyboardInterrupt.
    Raises CiPerfError when nothing can be measured at all: no such device, or BusyError.
    """
    with signals.noted() as interrupts:
        identity = identity or new_identity()
        machine = describe(plan, launcher, device, interrupts)
        plan, against = _completed_sides(plan, against, baselines, machine)
        plan = _routed(plan, against, machine)
        record = _Record(
            plan=plan,
            machine=machine,
            identity=identity,
            source=git.source(Path(plan.root)),
            started=now(),
            start=time.monotonic(),
            before=against.before if against else Before(),
        )
        moved = record.before.moved(record.source)
        recording = (
            SessionPrograms(plan.workloads, machine, prover, listener, moved=moved)
            if prover
            else None
        )
        launching = _Launching(
            record, launcher, listener, interrupts, against, recording, wait_s, checks, clock
        )
        if not launching.plan().workloads:
            return launching.go()
        with held(machine, plan, identity, listener, interrupts, timeout_s=lock_timeout_s):
            launching.record = dataclasses.replace(record, started=now(), start=time.monotonic())
            return launching.go()


@dataclass(slots=True)
class _Launching:
    """What is launched, once the machine is known."""

    record: _Record
    launcher: Launcher
    listener: Listener
    interrupts: Interrupts
    against: Against | None
    recording: SessionPrograms | None
    wait_s: float | None
    checks: MachineChecks
    clock: Callable[[], float]

    def plan(self) -> Plan:
        """Return the plan without the workloads that need no launch, as far as is known."""
        whole = self.record.plan
        if self.recording is None:
            return whole
        left = self.recording.to_measure(whole.workloads)
        return msgspec.structs.replace(whole, workloads=left)

    def go(self) -> runs.Run:
        """Launch what has to be launched, and return the run."""
        record, recording = self.record, self.recording
        self._ask_base()
        plan = self.plan()
        runner = self._runner(plan)
        interleaving = self._interleaving(plan, runner)
        files = KeptFiles(self.against.traces if self.against else None)
        explaining = Explaining(self.listener, runner.profile, clock=self.clock, files=(files,))

        def launch_pairs() -> None:
            if interleaving:
                interleaving.go(lambda: record.run(runner, interleaving, recording))

        def then() -> None:
            launch_pairs()
            self.interrupts.check()
            run = record.run(runner, interleaving, recording)
            moved = self._moved(run)
            explaining_s = (self.against.explain_budget_s or 0.0) if self.against and moved else 0.0
            is_told = self._tell_verdict(run, explaining_s)
            try:
                if interleaving and moved:
                    sides = interleaving.tasks_of_own_files
                    explaining.profile_pairs(moved, sides, explaining_s)
                if recording:
                    tasks = [runner.task(workload, 0) for workload in plan.workloads]
                    recording.record(record.identity, runner.measured(), tasks, runner.outcome)
                self.interrupts.check()
            except KeyboardInterrupt:
                if not is_told:
                    raise
                self.interrupts.came = False  # it ends what explains the verdict, and no more

        if plan.workloads:
            runner.measure(then)
        else:
            launch_pairs()  # of no workload: it describes the base that the head is the same as
        return record.run(runner, interleaving, recording, explaining)

    def _ask_base(self) -> None:
        """Record the base of every workload of which nothing is known. See SessionPrograms."""
        if self.recording is not None and self.against is not None:
            whole = self.record.plan
            runner = self._runner(whole)
            tasks = [runner.task(workload, 0) for workload in whole.workloads]
            self.recording.ask_base(self.against.checkout, tasks, runner.outcome)

    def _runner(self, plan: Plan) -> SessionRunner:
        return SessionRunner(
            plan,
            self.launcher,
            self.listener,
            self.interrupts,
            self.record.machine,
            wait_s=self.wait_s,
            checks=self.checks,
            clock=self.clock,
            checkout=self.against.checkout if self.against else None,
        )

    def _interleaving(self, plan: Plan, runner: SessionRunner) -> Interleaving | None:
        if self.against is None:
            return None
        return Interleaving(
            plan,
            runner,
            self.listener,
            self.against,
            self.checks,
            seed=self.record.identity,
            clock=self.clock,
        )

    def _moved(self, run: runs.Run) -> list[str]:
        """Name the workloads to explain: those that pairs have proven to move."""
        against = self.against
        if against is None or against.explain_budget_s is None or run.validity.against(""):
            return []
        paired = {paired.workload for paired in run.paired if paired.pairs}
        return [name for name in against.judge.moved(run) if name in paired]

    def _tell_verdict(self, run: runs.Run, explaining_s: float) -> bool:
        """Tell the verdict before what explains it, and whether there is one."""
        verdict = self.against.judge.verdict(run) if self.against else None
        if verdict is not None:
            self.listener.decided(verdict, explaining_s)
        return verdict is not None


def with_calibration(plan: Plan, calibration: Calibration | None) -> Plan:
    """Return the plan with the machine's statistic wherever suite.toml says nothing of its own.

    How long its launches time follows from how much they were found to differ.
    """
    if calibration is None:
        return plan
    workloads = []
    for workload in plan.workloads:
        protocol = workload.protocol
        statistic = protocol.statistic if workload.own_statistic else calibration.statistic
        known = calibration.workloads.get(workload.id)
        spread = (known or calibration).launches.get(statistic, 0.0)
        protocol = msgspec.structs.replace(
            protocol,
            statistic=statistic,
            launch_spread=max(protocol.launch_spread, min(spread, LARGEST_LIMIT)),
        )
        workloads.append(msgspec.structs.replace(workload, protocol=protocol))
    return msgspec.structs.replace(plan, workloads=tuple(workloads))


def completed(plan: Plan, baselines: Path | None, machine: MachineDescription) -> Plan:
    """Return the plan with the statistic of the machine's calibration."""
    if baselines is None:
        return plan
    return with_calibration(plan, layout.read_calibration(baselines, machine.environment.hard))


def _completed_sides(
    plan: Plan, against: Against | None, baselines: Path | None, machine: MachineDescription
) -> tuple[Plan, Against | None]:
    """Return the plan, and that of the base, with what a calibration says of the machine."""
    if against and against.checkout.plan:
        before = completed(against.checkout.plan, baselines, machine)
        checkout = dataclasses.replace(against.checkout, plan=before)
        against = dataclasses.replace(against, checkout=checkout)
    return completed(plan, baselines, machine), against


def _routed(plan: Plan, against: Against | None, machine: MachineDescription) -> Plan:
    """Return the plan with as many launches of the head as the judge asks for before pairs."""
    if against is None or not against.routes:
        return plan
    return screening(plan, against.judge.first_launches(plan, machine.environment.hard))

"""One session: every process of every workload, the pairs after them, and the run they make."""

import datetime as dt
import getpass
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import machine_documents
from ci_perf.errors import CiPerfError
from ci_perf.judging import calibration
from ci_perf.judging.reruns import Before
from ci_perf.launch import Launcher
from ci_perf.model import run as runs
from ci_perf.model.run import Source
from ci_perf.model.suite import Plan
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.model.validity import distinct, validity_of
from ci_perf.session.interleaving import Against, Interleaving
from ci_perf.session.listener import Listener
from ci_perf.session.runner import MachineChecks, SessionRunner, threads
from ci_perf.session.schedule import Forecast
from ci_perf.session.suspects import BaselineJudge, PairJudge
from ci_perf.system import git, lock, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

__all__ = [
    "Against",
    "BaselineJudge",
    "Forecast",
    "Listener",
    "MachineChecks",
    "PairJudge",
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

    def run(self, runner: SessionRunner, interleaving: Interleaving | None) -> runs.Run:
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
    baselines: Path | None = None,
    identity: str | None = None,
    wait_s: float | None = 0.0,
    checks: MachineChecks = MachineChecks(),  # noqa: B008  it is frozen
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    clock: Callable[[], float] = time.monotonic,
) -> runs.Run:
    """Measure the plan, alone on its device. A workload that fails is recorded and stops no other.

    A calibration of the machine below `baselines` completes the plan. With `against`, base and
    head are launched in turns where the baselines do not clear the head. `wait_s` is how long to
    wait for a machine that others use, before it is measured all the same; `None` is what quiet.py
    has for the device. An interrupt ends the child, and the run, as far as it has come, says so in
    its validity; before anything is launched, it raises KeyboardInterrupt. Raises CiPerfError when
    nothing can be measured at all: no such device, or BusyError.
    """
    with signals.noted() as interrupts:
        identity = identity or new_identity()
        machine = _describe(plan, launcher, device, interrupts)
        plan = _completed(plan, baselines, machine)
        source = git.source(Path(plan.root))
        runner = SessionRunner(
            plan, launcher, listener, interrupts, machine, wait_s=wait_s, checks=checks, clock=clock
        )
        with lock.hold_devices(
            machine.locks,
            f"run {identity} of {_user()}, process {os.getpid()} in {plan.root}",
            where=lock.folder_of_devices(),
            timeout_s=lock_timeout_s,
            waiting=listener.waiting,
            sleep=interrupts.sleep,
        ):
            interrupts.check()
            record = _Record(
                plan=plan,
                machine=machine,
                identity=identity,
                source=source,
                started=now(),
                start=time.monotonic(),
                before=against.before if against else Before(),
            )
            if against is None:
                runner.measure(lambda: None)
                return record.run(runner, None)
            interleaving = Interleaving(
                plan, runner, listener, against, checks, seed=identity, clock=clock
            )
            runner.measure(lambda: interleaving.go(lambda: record.run(runner, interleaving)))
        return record.run(runner, interleaving)


def _completed(plan: Plan, baselines: Path | None, machine: MachineDescription) -> Plan:
    """Return the plan with the statistic and the preset of the machine's calibration."""
    if baselines is None:
        return plan
    return calibration.applied(plan, machine_documents.read(baselines, machine.environment.hard))


def _user() -> str:
    """Return the name of who measures; in a container the number of a user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _describe(
    plan: Plan, launcher: Launcher, device: str, interrupts: Interrupts
) -> MachineDescription:
    widest = max(plan.workloads, key=lambda workload: workload.world_size)
    answer = launcher.describe(device, threads(plan), widest.world_size, interrupts.have_come)
    if isinstance(answer, TaskFailure):
        whose = f" ({widest.id} needs {widest.world_size})" if widest.world_size > 1 else ""
        raise CiPerfError(answer.reason + whose, output=answer.output)
    return answer

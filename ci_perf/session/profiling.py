"""Profile workloads for somebody who asks, whatever their verdict: nothing is timed or judged."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.launch import Launcher
from ci_perf.model.step_profile import ProfiledPairs, StepProfile
from ci_perf.model.suite import Plan
from ci_perf.model.task import MachineDescription, Task, Tracing
from ci_perf.session import recording
from ci_perf.session.explaining import Explaining
from ci_perf.session.listener import Listener
from ci_perf.session.machine import describe, held
from ci_perf.session.runner import MachineChecks, SessionRunner
from ci_perf.session.traces import KeptFiles
from ci_perf.system import signals
from ci_perf.worktree import Checkout


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """The profiles, in the order of the plan.

    With a base ``pairs`` has an entry for each workload; without one ``profiles`` has the profile
    of each, or a sentence that says why there is none.
    """

    machine: MachineDescription
    pairs: tuple[ProfiledPairs, ...] = ()
    profiles: dict[str, StepProfile | str]


def profile(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    *,
    device: str,
    identity: str,
    lock_timeout_s: float,
    budget_s: float,
    checkout: Checkout | None = None,
    traces: Path | None = None,
    snapshots: Path | None = None,
    tracing: Tracing = Tracing(),  # noqa: B008  it is frozen
    clock: Callable[[], float] = time.monotonic,
) -> Profiled:
    """Profile the workloads of a plan, alone on its device; with a `checkout`, base and head.

    All launches together take about `budget_s` at most; the folder `traces` gets their traces,
    which are taken as `tracing` says, and `snapshots` what CUDA's memory was used for. Raises
    CiPerfError when nothing can be launched at all (no such device, BusyError), and
    KeyboardInterrupt.
    """
    with signals.noted() as interrupts:
        machine = describe(plan, launcher, device, interrupts)
        with held(machine, plan, identity, listener, interrupts, timeout_s=lock_timeout_s):
            runner = SessionRunner(
                plan,
                launcher,
                listener,
                interrupts,
                machine,
                wait_s=0.0,
                checks=MachineChecks(),
                clock=clock,
            )
            tasks = {
                workload.id: msgspec.structs.replace(runner.task(workload, 0), tracing=tracing)
                for workload in plan.workloads
            }

            def sides(workload: str) -> tuple[Task, Task] | None:
                assert checkout is not None
                head = msgspec.structs.replace(tasks[workload], foreign_root=str(checkout.top))
                base = recording.of_other_side(head, checkout)
                return None if base is None else (base, head)

            launches = Explaining(
                sides,
                listener,
                runner.profile,
                clock=clock,
                traces=KeptFiles(traces),
                snapshots=KeptFiles(snapshots, "snapshot"),
            )
            if checkout is not None:
                launches.go(list(tasks), budget_s)
                return Profiled(machine=machine, pairs=launches.profiled(), profiles={})
            end = clock() + budget_s
            profiles = {name: launches.alone(task, end - clock()) for name, task in tasks.items()}
            return Profiled(machine=machine, profiles=profiles)

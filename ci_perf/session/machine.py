"""The machine of a session: what it is, and that no other session uses its devices meanwhile."""

import contextlib
import getpass
import os
from collections.abc import Iterator

from ci_perf.errors import CiPerfError
from ci_perf.launch import Launcher
from ci_perf.model.suite import Plan
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.session.listener import Listener
from ci_perf.session.runner import threads
from ci_perf.system import lock
from ci_perf.system.signals import Interrupts


def describe(
    plan: Plan, launcher: Launcher, device: str, interrupts: Interrupts
) -> MachineDescription:
    """Describe the machine on which a plan would run. Raises CiPerfError: no such device."""
    widest = max(plan.workloads, key=lambda workload: workload.world_size)
    answer = launcher.describe(device, threads(plan), widest.world_size, interrupts.have_come)
    if isinstance(answer, TaskFailure):
        whose = f" ({widest.id} needs {widest.world_size})" if widest.world_size > 1 else ""
        raise CiPerfError(answer.reason + whose, output=answer.output)
    return answer


@contextlib.contextmanager
def held(
    machine: MachineDescription,
    plan: Plan,
    identity: str,
    listener: Listener,
    interrupts: Interrupts,
    *,
    timeout_s: float,
) -> Iterator[None]:
    """Have the devices of a machine to ourselves. Raises BusyError and KeyboardInterrupt."""
    with lock.hold_devices(
        machine.locks,
        f"run {identity} of {_user()}, process {os.getpid()} in {plan.root}",
        where=lock.folder_of_devices(),
        timeout_s=timeout_s,
        waiting=listener.waiting,
        sleep=interrupts.sleep,
    ):
        interrupts.check()
        yield


def _user() -> str:
    """Return the name of who measures; in a container the number of a user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"

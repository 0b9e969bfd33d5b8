"""The machine of a session: what it is, that no other session uses it, and that it is quiet."""

import time
from collections.abc import Callable, Sequence

from ci_perf.errors import CiPerfError
from ci_perf.launch.run_task import Launcher
from ci_perf.model.suite import OWN, Plan
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.model.validity import Doubt, Reason
from ci_perf.session.listener import Listener
from ci_perf.system.signals import Interrupts

# How long to wait where no option says it: longer than the 10 s over which Linux averages pressure,
# shorter than measuring takes.
QUIET_WAIT_S = 60.0
LOOK_EVERY_S = 2.0


def describe(
    plan: Plan,
    launcher: Launcher,
    device: str,
    interrupts: Interrupts,
) -> MachineDescription:
    """Describe the machine on which a plan would run. Raises CiPerfError: no such device."""
    widest = max((*plan.workloads, *plan.tests), key=lambda workload: workload.world_size)
    devices = widest.world_size
    answer = launcher.describe(
        device, threads(plan), devices, interrupts.have_come, commands=plan.commands
    )
    if isinstance(answer, TaskFailure):
        whose = f" ({widest.id} needs {devices})" if devices > 1 else ""
        raise CiPerfError(answer.reason + whose, output=answer.output)
    return answer


def threads(plan: Plan) -> int:
    """Return the most threads that any workload is given; canaries get as many.

    One with those of its environment counts as one thread.
    """
    given = (workload.protocol.threads for workload in (*plan.workloads, *plan.tests))
    return max((count for count in given if count != OWN), default=1)


def disturbances(device: str, *, is_asked: bool) -> frozenset[Doubt]:
    """Return the doubts whose end is awaited: those of the device, or all where a person asks.

    A step on a GPU hardly feels what other programs do to the CPUs.
    """
    where = {"cpu", "gpu"} if is_asked else {"cpu" if device == "cpu" else "gpu"}
    return frozenset(doubt for doubt in Doubt if doubt.ends_on in where)


def await_quiet(
    look: Callable[[], Sequence[Reason]],
    awaited: frozenset[Doubt],
    *,
    most_s: float,
    listener: Listener,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    every_s: float = LOOK_EVERY_S,
) -> Sequence[Reason]:
    """Look until none of `awaited` speaks against the machine, for at most `most_s`.

    Returns what the last look has seen. Raises what `sleep` raises.
    """
    start, reasons = clock(), look()
    if not _why(reasons, awaited) or most_s <= 0:
        return reasons
    while (why := _why(reasons, awaited)) and (left_s := start + most_s - clock()) > 0:
        listener.machine_busy(why, clock() - start, most_s)
        sleep(min(every_s, left_s))
        reasons = look()
    listener.machine_awaited(why, clock() - start)
    return reasons


def _why(reasons: Sequence[Reason], awaited: frozenset[Doubt]) -> str:
    return "; ".join(reason.detail for reason in reasons if reason.doubt in awaited)

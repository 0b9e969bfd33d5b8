"""The steps of a proof that launch workloads as a check does.

Each finds out by a short session how long a round takes, and launches as many more as its time
holds. All of it happens in temporary folders: no baseline and no file of the user is touched.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.gate import measure, proof_plans
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging import proof_figures
from ci_perf.launch import ignore
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.process import Process, WorkerResult
from ci_perf.model.proof import MOST_DETAIL, Figure, Probed
from ci_perf.model.run import Measured, Run
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.session import Listener, several
from ci_perf.system import lock
from ci_perf.system.signals import Interrupts

# The same launches always give the same figures.
_SEED = 0
# Of the time that is left; a launch may take longer than the last one did.
_SAFE = 0.85
# By how much steps are made longer, in percent.
_PLANTED = (2, 3, 5)
# Fewer pairs than this prove nothing, whatever they differ by.
_FEWEST_PAIRS = 6
_MOST_ROUNDS = 18
_MONITOR_HZ = 5.0
# A launch of a shipped workload: mostly the import of torch, and of a compiler on a GPU.
_GUESSED_LAUNCH_S = {"cpu": 8.0, "cuda": 12.0}
# Launches count in pairs, and two sessions are compared.
_ROUNDS_OF_SESSION = 2


class LockWaits(Listener):
    """Passes on that another run holds the device, and adds up how long that was waited for."""

    def __init__(self, listener: Listener) -> None:
        self.seconds = 0.0
        self._listener = listener
        self._last_s = 0.0

    def waiting(self, device: str, owner: str, waited_s: float, most_s: float) -> None:
        """See Listener."""
        is_new = waited_s < self._last_s
        self.seconds += waited_s if is_new else waited_s - self._last_s
        self._last_s = waited_s
        self._listener.waiting(device, owner, waited_s, most_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBench:
    """What such a step works with.

    ``seconds`` is how long it may take at most, less what ``waits`` notes.
    """

    root: Path
    launcher: LocalLauncher
    machine: MachineDescription
    seconds: float
    lock_timeout_s: float
    waits: LockWaits
    interrupts: Interrupts

    @property
    def kind(self) -> str:
        """Return "cpu" or "cuda"."""
        return self.machine.device.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """A session that was measured, and the seconds that it took in all, and to launch."""

    run: Run
    seconds: float
    launching_s: float

    def rounds_in(self, seconds: float, rounds: int) -> int:
        """Return how many rounds of such a session would fit, as this one had `rounds`."""
        overhead_s = max(0.0, self.seconds - self.launching_s)
        round_s = max(self.launching_s / rounds, 1e-3)
        return max(0, int((_SAFE * seconds - overhead_s) / round_s))

    def arm(self, name: str) -> Measured:
        """Return a workload of ours. Raises CiPerfError: it has failed."""
        for measured in self.run.measured:
            if measured.workload == name:
                return measured
        failed = next(failed for failed in self.run.failed if failed.workload == name)
        raise CiPerfError(f"{name}: {failed.phase.value}: {failed.reason}", output=failed.output)


def _measured(
    bench: SessionBench, plan: Plan, rounds: int, listener: Listener | None = None
) -> _Session:
    """Launch every workload of a plan in so many rounds. Raises as `measure.measure_plan`."""
    start, waited_s = time.monotonic(), bench.waits.seconds
    run = measure.measure_plan(
        proof_plans.of_rounds(plan, rounds),
        MeasureOptions(
            root=Path(plan.root),
            device=bench.machine.device,
            lock_timeout_s=bench.lock_timeout_s,
            wait_s=0.0,
            record=False,
            explain=False,
        ),
        baselines=None,
        notify=ignore,
        listener=several(bench.waits, listener or Listener()),
    )
    waited_s = bench.waits.seconds - waited_s
    return _Session(
        run=run,
        seconds=time.monotonic() - start - waited_s,
        launching_s=run.duration_s - waited_s,
    )


def _as_long_as_fits(bench: SessionBench, plan: Plan, *, fewest: int) -> _Session | str:
    """Launch one round, then a session of as many as fit; or say why that is too few."""
    first = _measured(bench, plan, 1)
    for workload in plan.workloads:
        first.arm(workload.id)
    left_s = bench.seconds - first.seconds
    rounds = min(first.rounds_in(left_s, 1), _MOST_ROUNDS)
    if rounds < fewest:
        return (
            f"{fewest} rounds of {len(plan.workloads)} launches did not fit: one takes "
            f"{first.launching_s:.1f} s, and {left_s:.0f} s were left (--minutes)"
        )
    return _measured(bench, plan, rounds)


def monitor(bench: SessionBench) -> Probed:
    """Launch a product without the monitor, with it, and without it again, in turns."""
    arms = {"off": 0.0, "on": _MONITOR_HZ, "off_again": 0.0}
    with proof_plans.product() as plan:
        (product,) = plan.workloads
        workloads = tuple(
            proof_plans.with_protocol(product, name, monitor_hz=hertz)
            for name, hertz in arms.items()
        )
        session = _as_long_as_fits(
            bench, msgspec.structs.replace(plan, workloads=workloads), fewest=3
        )
    if isinstance(session, str):
        return Probed(not_tried=session, why="time")
    return Probed(figures=proof_figures.of_monitor(*(session.arm(name) for name in arms)))


def planted(bench: SessionBench) -> Probed:
    """Launch a product as it is, some percent slower, and as it is again, in turns."""
    names = {f"slower_{percent}": percent for percent in _PLANTED}
    with proof_plans.product() as plan:
        product = _quietest(bench, plan)
        slower = (
            msgspec.structs.replace(product, id=name, slowdown=percent / 100)
            for name, percent in names.items()
        )
        again = msgspec.structs.replace(product, id="again")
        session = _as_long_as_fits(
            bench,
            msgspec.structs.replace(plan, workloads=(product, *slower, again)),
            fewest=_FEWEST_PAIRS,
        )
    if isinstance(session, str):
        return Probed(not_tried=session, why="time")
    arms = {percent: session.arm(name) for name, percent in names.items()}
    figures = proof_figures.of_planted(session.arm(proof_plans.PRODUCT), arms, session.arm("again"))
    return Probed(figures=figures)


def _quietest(bench: SessionBench, plan: Plan) -> PlannedWorkload:
    """Return a product whose fastest block speaks on a CPU, as the shipped suite has it there."""
    (product,) = plan.workloads
    statistic = "min" if bench.kind == "cpu" else "median"
    return proof_plans.with_protocol(product, product.id, statistic=statistic)


def launch_noise(bench: SessionBench) -> Probed:
    """Launch workloads of the shipped suite in two sessions, as many as fit."""
    shipped = proof_plans.shipped(bench.kind)
    if not shipped.plan.workloads:
        return Probed(
            not_tried=f"no workload that ships can run here: {_noise_detail(0, shipped.left_out)}"[
                :MOST_DETAIL
            ]
        )
    rounds = 2 * _ROUNDS_OF_SESSION
    fits = int(bench.seconds / (rounds * _GUESSED_LAUNCH_S[bench.kind]))
    chosen = shipped.plan.workloads[: max(1, fits)]
    later = {
        workload.id: "there was no time for it"
        for workload in shipped.plan.workloads[len(chosen) :]
    }
    plan = msgspec.structs.replace(shipped.plan, workloads=chosen)
    first = _measured(bench, plan, _ROUNDS_OF_SESSION)
    left_s = bench.seconds - first.seconds
    second_rounds = min(first.rounds_in(left_s, _ROUNDS_OF_SESSION), _MOST_ROUNDS) // 2 * 2
    second = _measured(bench, plan, second_rounds).run if second_rounds else None
    failed = {failed.workload: failed.reason for failed in first.run.failed}
    figures = proof_figures.of_noise(first.run, second, plan, random.Random(_SEED).random)  # noqa: S311  no secret
    return Probed(
        figures=figures,
        detail=_noise_detail(second_rounds, {**shipped.left_out, **failed, **later}),
    )


def _noise_detail(second_rounds: int, left_out: Mapping[str, str]) -> str:
    """Say how much was launched, and what was not, by its reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(name)
    sessions = f"{_ROUNDS_OF_SESSION} launches of each in a session" + (
        f", {second_rounds} in a second one" if second_rounds else "; there was no time for another"
    )
    lines = [
        f"{len(names)} not launched, as {why} ({names[0]}{', …' if names[1:] else ''})"
        for why, names in by_reason.items()
    ]
    return "; ".join([sessions, *lines])[:MOST_DETAIL]


class _LaunchTimes(Listener):
    """Notes how long each launch took, in seconds, by workload."""

    def __init__(self) -> None:
        self.by_workload: dict[str, list[float]] = {}

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        self.by_workload.setdefault(workload, []).append(seconds)


def launch_seconds(bench: SessionBench) -> Probed:
    """Take the parts of a launch, of a product and of the first workload that ships."""
    with proof_plans.product() as plan:
        figures = _parts_of_launch(bench, plan, proof_plans.PRODUCT)
    shipped = proof_plans.shipped(bench.kind).plan
    if not shipped.workloads:
        return Probed(figures=figures, detail="no workload that ships can be imported here")
    first = shipped.workloads[0]
    only = msgspec.structs.replace(shipped, workloads=(first,))
    figures += _parts_of_launch(bench, only, Path(first.file).stem)
    what = f"{proof_plans.PRODUCT} is a program of ci-perf, {Path(first.file).stem} is {first.id}"
    return Probed(figures=figures, detail=what)


def _parts_of_launch(bench: SessionBench, plan: Plan, name: str) -> tuple[Figure, ...]:
    times = _LaunchTimes()
    (workload,) = plan.workloads
    measured = _measured(bench, plan, 2, times).arm(workload.id)
    return proof_figures.of_launch(name, measured.processes, times.by_workload[workload.id])


def resident_pair(bench: SessionBench) -> Probed:
    """Compare pairs of a product whose processes take turns with pairs of two launches."""
    resident: list[tuple[Process, Process]] = []
    launched: list[tuple[Process, Process]] = []
    with proof_plans.product() as plan, held(bench):
        deadline = time.monotonic() + _SAFE * bench.seconds
        tasks = [_task(bench, plan, index) for index in range(2)]
        round_s = 0.0
        while len(launched) < _MOST_ROUNDS and time.monotonic() + round_s < deadline:
            start = time.monotonic()
            first, last = tasks if len(launched) % 2 else tasks[::-1]
            resident.append(
                _pair(bench.launcher.launch_pair(first, last, bench.interrupts.have_come))
            )
            launched.append(
                _pair(
                    [
                        bench.launcher.launch(task, bench.interrupts.have_come)
                        for task in (first, last)
                    ]
                )
            )
            round_s = time.monotonic() - start
    if len(launched) < 3:
        return Probed(
            not_tried=f"3 pairs of each kind did not fit into {bench.seconds:.0f} s (--minutes)",
            why="time",
        )
    return Probed(figures=proof_figures.of_pairs(resident, launched))


def held(bench: SessionBench) -> AbstractContextManager[None]:
    """Have the device to ourselves. Raises BusyError and KeyboardInterrupt."""
    return lock.hold_devices(
        bench.machine.locks,
        f"ci-perf prove, process {os.getpid()}",
        where=lock.folder_of_devices(),
        timeout_s=bench.lock_timeout_s,
        waiting=bench.waits.waiting,
        sleep=bench.interrupts.sleep,
    )


def _task(bench: SessionBench, plan: Plan, index: int) -> Task:
    (workload,) = plan.workloads
    return Task(
        workload=workload,
        index=index,
        device=bench.machine.device,
        root=plan.root,
        data_dir=plan.root,
    )


def _pair(outcomes: Sequence[WorkerResult | TaskFailure]) -> tuple[Process, Process]:
    """Return the processes of two launches. Raises CiPerfError: one has failed."""
    for outcome in outcomes:
        if isinstance(outcome, TaskFailure):
            raise CiPerfError(f"{outcome.phase.value}: {outcome.reason}", output=outcome.output)
    first, last = (outcome.process for outcome in outcomes if isinstance(outcome, WorkerResult))
    return first, last


STEPS: Mapping[str, Callable[[SessionBench], Probed]] = {
    "monitor": monitor,
    "planted": planted,
    "launch_noise": launch_noise,
    "launch_seconds": launch_seconds,
    "resident_pair": resident_pair,
}

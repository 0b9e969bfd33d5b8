"""Profile both sides of workloads in turns, after all judging or for somebody who asks.

What comes of it decides nothing: a launch that fails leaves a sentence, and the run as it was.
Traces and snapshots are put into folders, whose bytes are limited.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ci_perf.judging.causes import launches
from ci_perf.launch import Launcher
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.step_profile import ProfiledPair, ProfiledPairs, StepProfile
from ci_perf.model.suite import Plan
from ci_perf.model.task import MOST_TRACE_BYTES, MachineDescription, Task, TaskFailure, Tracing
from ci_perf.session import recording
from ci_perf.session.listener import Listener
from ci_perf.session.machine import describe, held
from ci_perf.session.runner import MachineChecks, SessionRunner
from ci_perf.system import signals
from ci_perf.worktree import Checkout

Kind = Literal["trace", "snapshot"]
_SUFFIXES: dict[Kind, str] = {"trace": ".pt.trace.json.gz", "snapshot": ".memory.pickle"}
# What GitHub keeps for two weeks without a thought, and a browser opens one after the other.
_MOST_KEPT_BYTES = 4 * MOST_TRACE_BYTES

Side = Literal["base", "head"]
# Counts need one pair. Times are believed where three pairs agree.
_MOST_PAIRS = 3
# A sentence; the run file would refuse a longer one.
_DETAIL_CHARS = 2000
# Less would not import torch.
_SHORTEST_LIMIT_S = 10.0
# Ours are a fourth of that; a workload may have written its own.
_MOST_BYTES = 4_000_000
Launch = Callable[[Task], StepProfile | TaskFailure]
# The launches of both sides of a workload, base first; `None` where the base has no such file.
Sides = Callable[[str], tuple[Task, Task] | None]


class KeptFiles:
    """The folder of the traces, or of the snapshots, of a run; nothing is kept without a folder."""

    def __init__(self, folder: Path | None, kind: Kind = "trace") -> None:
        self._folder = folder
        self._kind: Kind = kind
        self._bytes = 0
        self._refused = ""

    def place(self, workload: str, side: Side) -> str:
        """Return where a launch puts its file, empty for nowhere; an older one is removed.

        Measured code may have laid a link there.
        """
        self._refused = ""
        if self._folder is None:
            return ""
        target = self._folder / f"{workload}.{side}{_SUFFIXES[self._kind]}"
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            self._refused = f"{target}: cannot be removed: {error.strerror}"
            return ""
        return str(target)

    def within_bytes(self, profile: StepProfile, place: str) -> StepProfile:
        """Remove the file of a launch if it is too much for the run; say why one is missing."""
        name = f"{self._kind}_file"
        why = self._refused
        if place and getattr(profile, name):
            why = self._too_much(Path(place))
        if not why:
            return profile
        without: dict[str, str] = {name: ""}
        return msgspec.structs.replace(profile, missing=profile.missing | {name: why}, **without)

    def _too_much(self, target: Path) -> str:
        try:
            size = target.stat().st_size
            if self._bytes + size <= _MOST_KEPT_BYTES:
                self._bytes += size
                return ""
            target.unlink()
        except OSError as error:
            return f"{target}: {error.strerror}"
        return f"all {self._kind}s of the run would be larger than {_MOST_KEPT_BYTES // 2**20} MiB"


class Explaining:
    """Launches further processes for both sides, and keeps what they have found."""

    def __init__(
        self,
        sides: Sides,
        listener: Listener,
        launch: Launch,
        *,
        clock: Callable[[], float],
        traces: KeptFiles | None = None,
        snapshots: KeptFiles | None = None,
    ) -> None:
        """Launch `sides`; `traces` and `snapshots` keep those of the first launch of either."""
        self._sides = sides
        self._listener = listener
        self._launch = launch
        self._clock = clock
        self._traces = traces or KeptFiles(None)
        self._snapshots = snapshots or KeptFiles(None)
        self._end = clock()
        self._pairs: dict[str, ProfiledPairs] = {}

    def go(self, workloads: Sequence[str], budget_s: float) -> None:
        """Profile workloads, worst first, for at most `budget_s`, overrun by one launch at most.

        Each has a first pair before any has a second one. Raises KeyboardInterrupt.
        """
        self._pairs = {
            name: ProfiledPairs(workload=name, trouble="interrupted before it was profiled")
            for name in workloads
        }
        self._end = self._clock() + budget_s
        going = workloads
        for _ in range(_MOST_PAIRS):
            going = [name for name in going if self._profile(name)]

    def alone(self, task: Task, budget_s: float) -> StepProfile | str:
        """Profile one launch, or say why that failed. Raises KeyboardInterrupt."""
        self._end = self._clock() + budget_s
        self._listener.profiling(task.workload.id)
        return self._profile_of(task, "head", is_kept=True)

    def profiled(self) -> tuple[ProfiledPairs, ...]:
        """Return the pairs of each workload, worst first, as far as it has come."""
        return tuple(self._pairs.values())

    def _profile(self, workload: str) -> bool:
        """Launch one pair and keep it, or why there is none. Returns whether another one may help.

        What keeps the sides of one pair from being compared does so in all.
        """
        pairs = self._pairs[workload].pairs
        outcome = self._pair(workload, head_first=len(pairs) % 2 == 1)
        if isinstance(outcome, ProfiledPair):
            pairs, trouble = (*pairs, outcome), ""
        else:
            trouble = outcome[:_DETAIL_CHARS]
        self._pairs[workload] = ProfiledPairs(workload=workload, pairs=pairs, trouble=trouble)
        return isinstance(outcome, ProfiledPair) and not launches.obstacle(outcome)

    def _pair(self, workload: str, *, head_first: bool) -> ProfiledPair | str:
        """Launch both sides, or say why that cannot be."""
        if self._left_s() <= 0:
            return "the time for profiling was spent before"
        tasks = self._sides(workload)
        if tasks is None:
            return "the base has no file of this workload"
        self._listener.profiling(workload)
        sides: tuple[tuple[Side, Task], ...] = tuple(zip(("base", "head"), tasks, strict=True))
        profiles: dict[str, StepProfile] = {}
        for side, task in sides[::-1] if head_first else sides:
            is_first = not self._pairs[workload].pairs
            outcome = self._profile_of(task, side, is_kept=is_first)
            if not isinstance(outcome, StepProfile):
                return f"the launch that profiles the {side} failed: {outcome}"
            profiles[side] = outcome
        return ProfiledPair(**profiles)

    def _profile_of(self, task: Task, side: Side, *, is_kept: bool) -> StepProfile | str:
        """Return what one side does, or why nobody knows; keep what it leaves for people."""
        name = task.workload.id
        trace_to = self._traces.place(name, side) if is_kept else ""
        snapshot_to = self._snapshots.place(name, side) if is_kept else ""
        protocol = task.workload.protocol
        limit_s = min(protocol.timeout_s, max(self._left_s(), _SHORTEST_LIMIT_S))
        limited = msgspec.structs.replace(
            task.workload, protocol=msgspec.structs.replace(protocol, timeout_s=limit_s)
        )
        outcome = self._launch(
            msgspec.structs.replace(
                task,
                workload=limited,
                trace_to=trace_to,
                snapshot_to=snapshot_to,
            )
        )
        if isinstance(outcome, TaskFailure):
            if limit_s < protocol.timeout_s and outcome.reason.startswith(NO_RESULT_IN_TIME):
                return f"it took longer than the {limit_s:.0f} s that were left for profiling"
            return outcome.reason
        if len(msgspec.json.encode(outcome)) > _MOST_BYTES:
            return f"its profile is larger than {_MOST_BYTES} bytes"
        profile = self._traces.within_bytes(outcome, trace_to)
        return self._snapshots.within_bytes(profile, snapshot_to)

    def _left_s(self) -> float:
        return self._end - self._clock()


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
                checkout=checkout,
            )
            tasks = {
                workload.id: msgspec.structs.replace(runner.task(workload, 0), tracing=tracing)
                for workload in plan.workloads
            }

            def sides(workload: str) -> tuple[Task, Task] | None:
                assert checkout is not None
                base = recording.of_other_side(tasks[workload], checkout)
                return None if base is None else (base, tasks[workload])

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

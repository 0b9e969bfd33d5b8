"""Prove a machine: try everything that measuring relies on, step by step, within some minutes."""

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ci_perf.doctor import gpu_findings, machine_facts
from ci_perf.doctor.machine_facts import Sources
from ci_perf.errors import BusyError, CannotWriteError, CiPerfError, UsageError
from ci_perf.gate import Notify, measure, proof_sessions
from ci_perf.gate.proof_sessions import LockWaits, SessionBench
from ci_perf.judging import proof
from ci_perf.judging.proof import Step
from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.proof import MOST_DETAIL, MOST_MINUTES, Probed, Proof, ProofStep, Why
from ci_perf.model.run import Tool
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.report.proof import OUTCOMES
from ci_perf.session import Listener
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

# A step that takes so many times as long as it should has met something that is wrong.
_MOST_TIMES_LONGER = 4.0
_THREADS = 1
# The tables say it in many rows, and the person knows: which device it is, and who has ended it.
_UNTOLD = ("device", "interrupted")
# What describes a machine without torch.
_NO_TORCH = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOptions:
    """What is proven, on which device, and within how many minutes.

    ``root`` is the folder in which it runs. ``steps`` names steps, all without any. The proof is
    written to ``output`` after each step.
    """

    root: Path
    device: str = "auto"
    minutes: float = 8.0
    steps: tuple[str, ...] = ()
    output: Path | None = None
    lock_timeout_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRun:
    """A proof as far as it came, whether somebody ended it, and whether its file has all of it."""

    proof: Proof
    is_interrupted: bool
    is_written: bool


def prove(
    options: ProofOptions,
    *,
    notify: Notify,
    listener: Listener,
    clock: Callable[[], float] = time.monotonic,
    sources: Callable[[], Sources] = machine_facts.this_machine,
) -> ProofRun:
    """Try each step while there is time, and write what came of it after each.

    `listener` hears that another run holds the device, which takes none of the time. A file that
    can no longer be written ends nothing. Raises UsageError, CannotWriteError before the first
    step, CiPerfError where the device or torch is not there, and KeyboardInterrupt where there is
    nothing to show yet.
    """
    steps = _checked(options)
    started, start = datetime.now(UTC), clock()
    with signals.noted() as interrupts, local.launcher(options.root) as launcher:
        machine = _described(launcher, options, interrupts, sources)
        waits = LockWaits(listener)
        trial = _Trial(
            launcher=launcher,
            machine=machine,
            options=options,
            notify=notify,
            interrupts=interrupts,
            waits=waits,
            time_spent=lambda: clock() - start - waits.seconds,
        )
        document = Proof(
            tool=Tool(version=__version__),
            started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            duration_s=0.0,
            minutes=options.minutes,
            device=machine.device,
            environment=machine.environment,
            steps=(),
        )
        file = _ProofFile(options.output, notify)
        for done in trial.tried(steps):
            document = msgspec.structs.replace(
                document,
                duration_s=round(max(0.0, trial.time_spent()), 3),
                waited_s=round(waits.seconds, 3),
                steps=(*document.steps, done),
            )
            file.keep(document)  # time on a GPU is rare: what is known is kept at once
        return ProofRun(
            proof=document,
            is_interrupted=interrupts.have_come(),
            is_written=file.is_written,
        )


def _checked(options: ProofOptions) -> Sequence[Step]:
    """Return the steps that are asked for, in their order. Raises UsageError, CannotWriteError."""
    measure.check_device(options.device)
    if not 0 < options.minutes <= MOST_MINUTES:  # NaN is neither
        raise UsageError(
            f"--minutes: expected more than 0 and at most {MOST_MINUTES:g}, "
            f"found {options.minutes!r}"
        )
    known = {step.name for step in proof.STEPS}
    for name in options.steps:
        if name not in known:
            raise UsageError(f"step {name}: expected one of {', '.join(sorted(known))}")
    if options.output is not None:
        files.check_target(options.output)
    return [step for step in proof.STEPS if not options.steps or step.name in options.steps]


def _described(
    launcher: LocalLauncher,
    options: ProofOptions,
    interrupts: Interrupts,
    sources: Callable[[], Sources],
) -> MachineDescription:
    """Describe the machine. Raises CiPerfError: it is not what was asked for, or has no torch."""
    machine = launcher.describe(options.device, _THREADS, 1, interrupts.have_come)
    interrupts.check()
    if isinstance(machine, TaskFailure):
        raise CiPerfError(machine.reason, output=machine.output)
    if options.device == "auto" and machine.device == "cpu":
        _check_no_gpu(sources())
    if machine.environment.soft.torch == _NO_TORCH:
        raise CiPerfError(
            "torch: expected it for this Python, found none, so that nothing can be proven; "
            "install it, or run `python -m ci_perf prove` with the Python that has your torch"
        )
    kind = machine.device.partition(":")[0]
    for step in map(proof.of_name, options.steps):
        if against := proof.against_device(step, kind):
            raise UsageError(
                f"step {step.name}: {against}, and this proof is of {machine.device}; "
                "leave the step out, or name another --device"
            )
    return machine


def _check_no_gpu(sources: Sources) -> None:
    """Refuse to take a CPU for a GPU that torch cannot use. Raises CiPerfError, as the doctor."""
    if not gpu_findings.has_gpu(machine_facts.graphics(sources)):
        return
    finding = gpu_findings.explain(machine_facts.gather(sources))[0]
    raise CiPerfError(
        f"--device auto: this machine shows an NVIDIA GPU, which torch cannot use. {finding.what} "
        f"{finding.next_step} To prove the CPU all the same, say --device cpu"
    )


class _ProofFile:
    """The file of a proof, if it has one: a disk that fills up ends no proof."""

    def __init__(self, path: Path | None, notify: Notify) -> None:
        self.is_written = True
        self._path, self._notify = path, notify

    def keep(self, document: Proof) -> None:
        """Write the proof as far as it came; say once that it cannot be written."""
        if self._path is None:
            return
        try:
            files.write(self._path, document)
        except CannotWriteError as error:
            if self.is_written:
                self._notify(f"error: {error}; the proof goes on, and its tables follow")
            self.is_written = False
        else:
            self.is_written = True


@dataclass(slots=True, kw_only=True)
class _Trial:
    """Tries steps. ``time_spent`` leaves out what another run held the device for.

    ``busy`` is why the device did not become free in time: no later step waits for it again.
    """

    launcher: LocalLauncher
    machine: MachineDescription
    options: ProofOptions
    notify: Notify
    interrupts: Interrupts
    waits: LockWaits
    time_spent: Callable[[], float]
    busy: str = ""

    def tried(self, steps: Sequence[Step]) -> Iterator[ProofStep]:
        """Try steps in their order; each that is not tried says why."""
        for number, step in enumerate(steps):
            done = self._outcome(step, steps[number + 1 :])
            if done.why not in _UNTOLD:
                self.notify(said(done))
            yield done

    def _outcome(self, step: Step, later: Sequence[Step]) -> ProofStep:
        if against := self._against(step):
            return proof.not_tried(step, *against)
        start_s = self.time_spent()
        try:
            probed = self._probed(step, later)
        except KeyboardInterrupt:
            # A session has handlers of its own for signals, and this is how it tells of them.
            self.interrupts.came = True
            probed = Probed(not_tried="interrupted", why="interrupted")
        except BusyError as error:
            self.busy = str(error)
            probed = Probed(not_tried=self.busy, why="busy")
        except CiPerfError as error:
            probed = Probed(not_tried=str(error), why="failed")
        except Exception as error:  # noqa: BLE001  a bug of one step must not cost the others
            self.notify(traceback.format_exc())
            why = f"a bug in ci-perf: {type(error).__name__}: {error}"
            probed = Probed(broken=why[:MOST_DETAIL])
        return proof.judged(step, probed, round(max(0.0, self.time_spent() - start_s), 3))

    def _against(self, step: Step) -> tuple[Why, str] | None:
        """Say why a step cannot be tried; nothing where it can."""
        if self.interrupts.have_come():
            return "interrupted", "interrupted"
        if against := proof.against_device(step, self._kind):
            return "device", against
        if self.busy:
            return "busy", self.busy
        left = self._left_s()
        if left < step.seconds:
            return "time", (
                f"it takes about {step.seconds:.0f} s, and {max(left, 0):.0f} s of "
                f"{self.options.minutes:g} minutes were left (--minutes)"
            )
        return None

    @property
    def _kind(self) -> str:
        return self.machine.device.partition(":")[0]

    def _left_s(self) -> float:
        return 60 * self.options.minutes - self.time_spent()

    def _share(self, step: Step, later: Sequence[Step]) -> float:
        """Return the seconds of a step with sessions, which share what the other steps leave."""
        ahead = [other for other in later if self._kind in other.devices]
        single_s = math.fsum(other.seconds for other in ahead if not other.runs_sessions)
        sessions_s = math.fsum(other.seconds for other in ahead if other.runs_sessions)
        left_s = self._left_s()
        share_s = (left_s - single_s) * step.seconds / (step.seconds + sessions_s)
        return min(left_s, max(step.seconds, share_s))

    def _probed(self, step: Step, later: Sequence[Step]) -> Probed:
        bench = SessionBench(
            root=self.options.root,
            launcher=self.launcher,
            machine=self.machine,
            seconds=self._share(step, later),
            lock_timeout_s=self.options.lock_timeout_s,
            waits=self.waits,
            interrupts=self.interrupts,
        )
        if step.runs_sessions:
            return proof_sessions.STEPS[step.name](bench)
        with proof_sessions.held(bench):
            answer = self.launcher.probe(
                step.name,
                self.machine.device,
                _THREADS,
                timeout_s=min(_MOST_TIMES_LONGER * step.seconds, max(self._left_s(), step.seconds)),
                interrupted=self.interrupts.have_come,
            )
        if isinstance(answer, TaskFailure):
            last = answer.output.strip().splitlines()[-1:]
            return Probed(broken=": ".join([answer.reason, *last])[:MOST_DETAIL])
        return answer


def said(step: ProofStep) -> str:
    """Say what came of a step, in a line."""
    why = f": {step.detail}" if step.detail else ""
    return f"{step.step}: {OUTCOMES[step.outcome]}{why} ({step.seconds:.0f} s)"

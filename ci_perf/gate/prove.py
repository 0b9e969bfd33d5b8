"""Prove a machine: try everything that measuring relies on, step by step, within some minutes."""

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import Notify, proof_sessions
from ci_perf.gate.proof_sessions import SessionBench
from ci_perf.judging import proof
from ci_perf.judging.proof import Step
from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.proof import Probed, Proof, ProofStep
from ci_perf.model.run import Tool
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.report.proof import OUTCOMES
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

# A step that takes so many times as long as it should has met something that is wrong.
_MOST_TIMES_LONGER = 4.0
_THREADS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOptions:
    """What is proven, on which device, and within how many minutes.

    ``root`` is the folder in which it runs. ``steps`` names steps, all without any. The proof is
    written to ``output``, also when it is interrupted.
    """

    root: Path
    device: str = "auto"
    minutes: float = 8.0
    steps: tuple[str, ...] = ()
    output: Path | None = None
    lock_timeout_s: float = 1800.0


def prove(
    options: ProofOptions, *, notify: Notify, clock: Callable[[], float] = time.monotonic
) -> Proof:
    """Try each step while there is time, and write what came of it after each.

    Raises UsageError, CiPerfError where the device is not there, and KeyboardInterrupt once an
    interrupted proof is written.
    """
    if not 0 < options.minutes < math.inf:  # NaN is neither
        raise UsageError(f"--minutes: expected minutes, more than 0, found {options.minutes!r}")
    steps = _chosen(options.steps)
    if options.output is not None:
        files.check_target(options.output)
    started, start = datetime.now(UTC), clock()
    with signals.noted() as ending, local.launcher(options.root) as launcher:
        machine = launcher.describe(options.device, _THREADS, 1, ending.have_come)
        if isinstance(machine, TaskFailure):
            raise CiPerfError(machine.reason, output=machine.output)
        trial = _Trial(
            launcher=launcher,
            machine=machine,
            options=options,
            notify=notify,
            ending=ending,
            time_left=lambda: 60 * options.minutes - (clock() - start),
            clock=clock,
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
        for done in trial.tried(steps):
            document = msgspec.structs.replace(
                document,
                duration_s=round(clock() - start, 3),
                steps=(*document.steps, done),
            )
            if options.output is not None:  # time on a GPU is rare: what is known is kept at once
                files.write(options.output, document)
        ending.check()
    return document


def _chosen(names: Sequence[str]) -> Sequence[Step]:
    """Return the steps of these names in their order. Raises UsageError."""
    known = {step.name for step in proof.STEPS}
    for name in names:
        if name not in known:
            raise UsageError(f"step {name}: expected one of {', '.join(sorted(known))}")
    return [step for step in proof.STEPS if not names or step.name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    launcher: LocalLauncher
    machine: MachineDescription
    options: ProofOptions
    notify: Notify
    ending: Interrupts
    time_left: Callable[[], float]
    clock: Callable[[], float]

    def tried(self, steps: Sequence[Step]) -> Iterator[ProofStep]:
        """Try steps in their order; each that is not tried says why."""
        for number, step in enumerate(steps):
            done = self._outcome(step, steps[number + 1 :])
            self.notify(said(done))
            yield done

    def _outcome(self, step: Step, later: Sequence[Step]) -> ProofStep:
        reason = self._against(step)
        if reason:
            return proof.not_tried(step, reason)
        start = self.clock()
        try:
            probed = self._probed(step, later)
        except KeyboardInterrupt:
            # A session has handlers of its own for signals, and this is how it tells of them.
            self.ending.came = True
            probed = Probed(not_tried="interrupted")
        except CiPerfError as error:
            probed = Probed(not_tried=str(error))
        except Exception as error:  # noqa: BLE001  a bug of one step must not cost the others
            self.notify(traceback.format_exc())
            probed = Probed(broken=f"a bug in ci-perf: {type(error).__name__}: {error}"[:2000])
        return proof.judged(step, probed, round(self.clock() - start, 3))

    def _against(self, step: Step) -> str:
        """Say why a step cannot be tried; nothing where it can."""
        if self.ending.have_come():
            return "interrupted"
        kind = self.machine.device.partition(":")[0]
        if kind not in step.devices:
            return "it needs a GPU" if kind == "cpu" else "it is about CPUs only"
        left = self.time_left()
        if left < step.seconds:
            return (
                f"it takes about {step.seconds:.0f} s, and {max(left, 0):.0f} s of "
                f"{self.options.minutes:g} minutes were left (--minutes)"
            )
        return ""

    def _share(self, step: Step, later: Sequence[Step]) -> float:
        """Return the seconds of a step with sessions, which share what the other steps leave."""
        kind = self.machine.device.partition(":")[0]
        ahead = [other for other in later if kind in other.devices]
        single_s = math.fsum(other.seconds for other in ahead if not other.runs_sessions)
        sessions_s = math.fsum(other.seconds for other in ahead if other.runs_sessions)
        left_s = self.time_left()
        share_s = (left_s - single_s) * step.seconds / (step.seconds + sessions_s)
        return min(left_s, max(step.seconds, share_s))

    def _probed(self, step: Step, later: Sequence[Step]) -> Probed:
        bench = SessionBench(
            root=self.options.root,
            launcher=self.launcher,
            machine=self.machine,
            seconds=self._share(step, later),
            lock_timeout_s=self.options.lock_timeout_s,
            notify=self.notify,
            interrupted=self.ending.have_come,
        )
        if step.runs_sessions:
            return proof_sessions.STEPS[step.name](bench)
        with proof_sessions.held(bench):
            answer = self.launcher.probe(
                step.name,
                self.machine.device,
                _THREADS,
                timeout_s=min(
                    _MOST_TIMES_LONGER * step.seconds, max(self.time_left(), step.seconds)
                ),
                interrupted=self.ending.have_come,
            )
        if isinstance(answer, TaskFailure):
            last = answer.output.strip().splitlines()[-1:]
            return Probed(broken=": ".join([answer.reason, *last]))
        return answer


def said(step: ProofStep) -> str:
    """Say what came of a step, in a line."""
    why = f": {step.detail}" if step.detail else ""
    return f"{step.step}: {OUTCOMES[step.outcome]}{why} ({step.seconds:.0f} s)"

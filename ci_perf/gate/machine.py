"""Find out what a machine can show: its noise (calibrate), and what it would notice (qualify)."""

import dataclasses
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ci_perf import suite as suites
from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from ci_perf.gate import Notify, measure
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging import calibration, policy, qualification
from ci_perf.model.baseline import Calibration, Qualification
from ci_perf.model.run import Run
from ci_perf.model.suite import Protocol
from ci_perf.model.validity import Status
from ci_perf.session import Listener

# The same launches always give the same table.
_SEED = 0
# More names than this make a sentence that nobody reads.
_SHOWN = 5

_Document = TypeVar("_Document", Calibration, Qualification)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport(Generic[_Document]):
    """What a run showed of its machine.

    ``file`` is where the document lies; `None` where the machine could not be trusted, and nothing
    was written.
    """

    run: Run
    document: _Document
    file: Path | None

    @property
    def exit_code(self) -> ExitCode:
        """What the command ends with: no answer where a workload failed, or nothing was written."""
        is_whole = self.file is not None and not self.run.failed
        return ExitCode.OK if is_whole else ExitCode.NO_ANSWER


def calibrate(
    options: MeasureOptions, *, notify: Notify, listener: Listener
) -> MachineReport[Calibration]:
    """Measure how noisy a machine is, and write the statistic and the limit that suit it.

    `options.processes` is an even number: launches count in pairs. Raises as `measure.measure`.
    """
    plan = measure.plan(options)
    run = measure.measure_plan(
        plan, _at_once(options), baselines=None, notify=notify, listener=listener
    )
    document = calibration.calibrate(run, plan, _random())
    own = {workload.id for workload in plan.workloads if workload.own_statistic}
    before = layout.read_calibration(options.baselines, document.machine)
    note = statistic_notes(before, document, own)
    return _written(document, run, options.baselines, note, notify)


def qualify(
    options: MeasureOptions, size: float, *, notify: Notify, listener: Listener
) -> MachineReport[Qualification]:
    """Find out whether a machine notices steps that take longer by the share `size`.

    `options.processes` counts rounds: three launches of each workload. Raises as `measure.measure`.
    """
    arms = qualification.arms(measure.plan(options), size)
    run = measure.measure_plan(
        arms, _at_once(options), baselines=None, notify=notify, listener=listener
    )
    known = layout.read_calibration(options.baselines, run.environment.hard)
    # Only now is the machine known, and with it its default limits.
    judged = suites.plan(
        options.workloads,
        options.suite,
        selection=options.select,
        root=options.root,
        defaults=policy.limits_on(run.environment.hard, known),
    )
    document = qualification.qualify(
        run,
        calibration.applied(judged, known),
        size=size,
        calibration=known,
        uniform=_random(),
    )
    return _written(document, run, options.baselines, [], notify)


def _at_once(options: MeasureOptions) -> MeasureOptions:
    """Do not wait for a quiet machine: how noisy it is shall be seen."""
    return dataclasses.replace(options, wait_s=0.0)


def _random() -> Callable[[], float]:
    return random.Random(_SEED).random  # noqa: S311  no secret


def _written(
    document: _Document, run: Run, baselines: Path, notes: Sequence[str], notify: Notify
) -> MachineReport[_Document]:
    """Write the document beside the machine's baselines; not what an untrusted machine showed."""
    if run.validity.status is Status.INVALID:
        notify("nothing is kept: the machine could not be trusted, see the reasons above")
        return MachineReport(run=run, document=document, file=None)
    file = layout.write_machine_document(baselines, document)
    notify("\n".join([f"written: {file}", *notes, f"next: git add {file} && git commit"]))
    return MachineReport(run=run, document=document, file=file)


def statistic_notes(
    before: Calibration | None, document: Calibration, own: Collection[str]
) -> list[str]:
    """Say what a new statistic means for baselines that another one has made.

    `own` are the workloads whose statistic suite.toml sets.
    """
    old = before.statistic if before else Protocol().statistic
    changed = [name for name in document.workloads if name not in own]
    if document.statistic == old or not changed:
        return []
    note = (
        f"note: {old} spoke for a launch of {_named(changed)} before, and {document.statistic} "
        "will from now on: re-accept baselines that were recorded with the old statistic"
    )
    return [note]


def _named(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")

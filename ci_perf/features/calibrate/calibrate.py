"""Find out what a machine can show: how much launches differ, and which change they prove."""

import dataclasses
import random
from collections.abc import Collection

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.features.calibrate import calibration
from ci_perf.gate import measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.baseline import Calibration
from ci_perf.model.suite import Protocol
from ci_perf.model.validity import Status
from ci_perf.report import phrases
from ci_perf.session import Listener

# The same launches always give the same table.
_SEED = 0


def calibrate(
    options: MeasureOptions, *, notify: Notify, listener: Listener
) -> tuple[Calibration, bool]:
    """Measure how noisy a machine is, and write the statistic and the limit that suit it.

    Returns the calibration, and whether it was written and no workload has failed.
    `options.processes` is an even number: launches count in pairs. Raises as `measure.measure`.
    """
    plan = measure.plan(options)
    run = measure.measure_plan(
        plan,
        # Do not wait for a quiet machine: how noisy it is shall be seen.
        dataclasses.replace(options, awaits_quiet=False),
        baselines=None,
        notify=notify,
        listener=listener,
    )
    uniform = random.Random(_SEED).random  # noqa: S311  no secret
    document = calibration.calibrate(run, plan, uniform)
    if run.validity.status is Status.INVALID:
        notify("nothing is kept: the machine could not be trusted, see the reasons above")
        return document, False
    own = {workload.id for workload in plan.workloads if workload.own_statistic}
    notes = statistic_notes(
        layout.read_calibration(options.baselines, document.machine), document, own
    )
    file = layout.write_calibration(options.baselines, document)
    rehearse = "then `ci-perf rehearse --keep` shows which slowdowns this machine finds"
    notify(
        "\n".join([f"written: {file}", *notes, f"next: git add {file} && git commit; {rehearse}"])
    )
    return document, not run.failed


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
    names = phrases.plain(phrases.join_phrases((name,) for name in changed))
    note = (
        f"note: {old} spoke for a launch of {names} before, and {document.statistic} "
        "will from now on: re-accept baselines that were recorded with the old statistic"
    )
    return [note]

"""Measure a suite, and judge it by the committed baselines: what a CI does."""

from dataclasses import dataclass

from ci_perf.gate import Notify, compare, measure
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.session import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was measured, and its verdict."""

    run: Run
    comparison: Comparison


def check(
    options: MeasureOptions, *, fail_on: FailOn | None, notify: Notify, listener: Listener
) -> Checked:
    """Measure, and compare with the baselines. Raises as `measure.measure` does.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with `options.against`.
    """
    compare.check_baselines(options.baselines, options.suite)
    run = measure.measure(options, notify=notify, listener=listener)
    label = str(options.run_output) if options.run_output else f"run {run.id}"
    comparison = compare.with_baselines(
        run,
        label=label,
        baselines=options.baselines,
        workloads=options.workloads,
        fail_on=fail_on,
        notify=notify,
    )
    return Checked(run=run, comparison=comparison)

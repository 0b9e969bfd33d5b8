"""Measure a suite and judge it by the committed baselines."""

from dataclasses import dataclass

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError
from ci_perf.gate import compare, measure
from ci_perf.gate.measure import RunNotWrittenError
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.session import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was measured, and its verdict; ``trouble`` is why the run could not be written."""

    run: Run
    comparison: Comparison
    trouble: CannotWriteError | None = None


def check(
    options: MeasureOptions, *, fail_on: FailOn | None, notify: Notify, listener: Listener
) -> Checked:
    """Measure, and compare with the baselines. Raises as `measure.measure` does.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with `options.against`.
    """
    layout.read_everything(options.baselines, options.suite)
    trouble: RunNotWrittenError | None = None
    try:
        run = measure.measure(options, notify=notify, listener=listener)
    except RunNotWrittenError as error:
        # Minutes of measuring are worth their verdict.
        run, trouble = error.run, error
    label = str(options.output) if options.output else f"run {run.id}"
    comparison = compare.with_baselines(run, options, label=label, fail_on=fail_on, notify=notify)
    return Checked(run=run, comparison=comparison, trouble=trouble)

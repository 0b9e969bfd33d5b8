"""github-action-benchmark: `customSmallerIsBetter`, an entry per workload and metric."""

from ci_perf.exporters import series
from ci_perf.exporters.series import Exported, Series
from ci_perf.model.metrics import Unit
from ci_perf.model.run import Run

# Its charts print a number as it stands: seconds and bytes would be unreadable. A unit must stay
# the same from run to run, so it does not follow the size of the number.
_SHOWN = {Unit.SECOND: (1e3, "ms"), Unit.BYTE: (2.0**-20, "MiB")}


def export(run: Run) -> Exported:
    """Return one JSON array of the metrics that may have a verdict."""
    every, higher = series.of_judged_lower(run)
    return Exported(
        files={"": series.as_json([_entry(of_metric, run) for of_metric in every])},
        left_out=(*series.without_numbers(run), *higher),
    )


def _entry(of_metric: Series, run: Run) -> dict[str, object]:
    factor, unit = _SHOWN.get(of_metric.metric.unit, (1.0, of_metric.metric.unit.value))
    centre = of_metric.centre
    farthest = max(abs(value - centre) for value in of_metric.values)
    return {
        "name": of_metric.name,
        "unit": unit,
        "value": factor * centre,
        "range": f"± {factor * farthest:.3g}",
        "extra": f"{series.spread(of_metric)}, run {run.id}",
    }

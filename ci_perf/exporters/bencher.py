"""Bencher Metric Format: a benchmark per workload, a measure per metric, with its range."""

from ci_perf.exporters import series
from ci_perf.exporters.series import Exported
from ci_perf.model import metrics
from ci_perf.model.run import Run

_Measures = dict[str, dict[str, float]]


def export(run: Run) -> Exported:
    """Return one JSON document of the metrics that may have a verdict, in their units."""
    benchmarks: dict[str, _Measures] = {}
    for of_metric in series.of_run(run):
        if of_metric.metric in metrics.JUDGED:
            name = f"{of_metric.suite}/{of_metric.workload.workload}"
            benchmarks.setdefault(name, {})[of_metric.metric.name] = {
                "value": of_metric.centre,
                "lower_value": min(of_metric.values),
                "upper_value": max(of_metric.values),
            }
    return Exported(files={"": series.as_json(benchmarks)}, left_out=series.without_numbers(run))

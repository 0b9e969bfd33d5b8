"""What every exporter writes from, and what it returns."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ci_perf.errors import InvalidFileError
from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.run import Measured, Run
from ci_perf.report import units


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Files by their path below the output, where "" is the output itself.

    `left_out` says what the format cannot hold, a line each. The top-level keys of the JSON files
    that `joined` names are added to those that are there already.
    """

    files: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric of a workload: a value per launch that has it, in the metric's unit."""

    suite: str
    workload: Measured
    metric: Metric
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        """Return the same words in each run: "smoke/mlp/step_time_s"."""
        return f"{self.suite}/{self.workload.workload}/{self.metric.name}"

    @property
    def centre(self) -> float:
        """Return the value that stands for all launches, as in a report; between the outermost."""
        centre = metric_values.centre(self.metric.kind, [self.values])
        return min(max(centre, min(self.values)), max(self.values))


def of_run(run: Run) -> list[Series]:
    """Return every metric of every workload, by workload."""
    return [
        Series(suite=run.suite, workload=workload, metric=metric, values=values)
        for workload in run.measured
        for metric, values in _by_metric(workload, run)
    ]


def of_judged_lower(run: Run) -> tuple[list[Series], tuple[str, ...]]:
    """Return the metrics that may have a verdict and of which less is better, and what is left out.

    For tools that call every larger number a loss.
    """
    judged = [series for series in of_run(run) if series.metric in metrics.JUDGED]
    higher = tuple(
        f"{series.workload.workload}, {series.metric.title}: more of it is better, and this format "
        "calls every larger number a loss"
        for series in judged
        if series.metric.better is Better.HIGHER
    )
    return [series for series in judged if series.metric.better is Better.LOWER], higher


def without_numbers(run: Run) -> tuple[str, ...]:
    """Name the workloads without numbers, and say why: a line each."""
    failed = (
        f"{failed.workload}: failed in {failed.phase.value}: {failed.reason}"
        for failed in run.failed
    )
    same = (f"{same.workload}: not launched, its program is that of the base" for same in run.same)
    return (*failed, *same)


def spread(series: Series) -> str:
    """Say where the launches lie: "41.2 to 43.7 ms in 3 launches"."""
    low, high = (units.value(end(series.values), series.metric.unit) for end in (min, max))
    between = low if low == high else f"{low} to {high}"
    return f"{between} in {units.numbered(len(series.values), 'launch', 'launches')}"


def started_s(run: Run) -> float:
    """Return when the run began, in seconds since 1970. Raises InvalidFileError."""
    try:
        return datetime.fromisoformat(run.started_at).timestamp()
    except (ValueError, OverflowError):
        raise InvalidFileError(
            f"run {run.id}: $.started_at: expected a time such as 2026-11-21T10:00:00Z, found "
            f"{run.started_at!r}"
        ) from None


def as_json(document: object) -> bytes:
    """Write JSON of ASCII alone, which every reader decodes alike."""
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def _by_metric(workload: Measured, run: Run) -> Iterable[tuple[Metric, tuple[float, ...]]]:
    launches = launch_numbers.of_workload(workload, run)
    for metric in metrics.ALL:
        if values := tuple(launch[metric.name] for launch in launches if metric.name in launch):
            yield metric, values

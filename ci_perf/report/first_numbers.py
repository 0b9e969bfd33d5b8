"""One table of what each workload takes, for numbers that have nothing to be compared with yet."""

from collections.abc import Iterable

from ci_perf.judging import metric_values, summarise
from ci_perf.model import metrics
from ci_perf.model.comparison import Comparison, Row, Uncompared, Verdict, is_of_workload
from ci_perf.model.run import Run
from ci_perf.model.summary import Numbers
from ci_perf.report import units
from ci_perf.report.tables import Table

_TITLES = {
    metrics.HOST_RSS_PEAK: "host memory",
    metrics.PEAK_ALLOCATED: "GPU memory",
    metrics.FLOPS: "FLOPs of a step",
}
# A workload, its numbers, and what a step does: how many items of which kind.
_Measured = tuple[str, Numbers, float, str]


def from_comparison(comparison: Comparison, *, shown: int) -> Table | None:
    """Show at most `shown` workloads that are new; `None` where none is."""
    profiles = {profile.workload: profile for profile in comparison.profiles}
    measured: list[_Measured] = []
    for row in comparison.rows:
        if isinstance(row, Uncompared) and is_shown(row):
            profile = profiles.get(row.workload)
            items, unit = (profile.items_per_step, profile.item_unit) if profile else (0.0, "")
            measured.append((row.workload, row.head, items, unit))
    return _table(measured[:shown]) if measured else None


def is_shown(row: Row) -> bool:
    """Whether the table has the numbers of a row: a workload that is new, and has some."""
    is_new = row.verdict is Verdict.NEW and is_of_workload(row)
    return is_new and isinstance(row, Uncompared) and bool(row.head) and not row.note


def from_run(run: Run) -> Table:
    """Show what all workloads of a run take."""
    return _table(
        [
            (each.workload, metric_values.centres(each), each.items_per_step, each.item_unit)
            for each in summarise.run(run, label="").subjects
        ]
    )


def _table(measured: Iterable[_Measured]) -> Table:
    every = list(measured)
    known = [m for m in _TITLES if any(numbers.get(m.name) for _, numbers, _, _ in every)]
    return Table(
        ("workload", "step time", "throughput", *(_TITLES[metric] for metric in known)),
        [
            (
                workload,
                units.value(numbers[metrics.STEP_TIME.name], metrics.STEP_TIME.unit),
                units.throughput(items, numbers[metrics.STEP_TIME.name], unit) or units.NOTHING,
                *(
                    units.value(numbers[metric.name], metric.unit)
                    if numbers.get(metric.name)  # no FLOPs is nothing to show
                    else units.NOTHING
                    for metric in known
                ),
            )
            for workload, numbers, items, unit in every
        ],
    )

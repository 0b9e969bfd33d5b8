"""Tidy tables for notebooks and export: one row per fact, every column named once.

Nothing disappears: a workload that failed has a row whose metric is empty and whose ``reason``
says why, next to the rows of the processes that finished before it failed.
"""

import csv
import importlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ci_perf.errors import CiPerfError
from ci_perf.judging import launch_numbers
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison, Row, Uncompared
from ci_perf.model.run import Failed, Measured, Run
from ci_perf.report import escape, phrases, provenance

if TYPE_CHECKING:
    import pandas as pd

    DataFrame: TypeAlias = pd.DataFrame

_RUN = {
    **dict.fromkeys(("run", "started_at", "commit", "branch"), "string"),
    "dirty": "boolean",
    **dict.fromkeys(("machine", "suite", "workload", "parameters"), "string"),
    **dict.fromkeys(("outcome", "metric", "unit"), "string"),
    **dict.fromkeys(("process", "step"), "Int64"),
    "value": "float64",
    "reason": "string",
}
_COMPARISON = {
    **dict.fromkeys(("run", "base_commit", "head_commit", "machine", "suite"), "string"),
    **dict.fromkeys(("workload", "metric", "unit"), "string"),
    **dict.fromkeys(("base", "head", "ratio", "low", "high"), "float64"),
    **dict.fromkeys(("smallest_detectable", "difference", "limit"), "float64"),
    "gate": "boolean",
    **dict.fromkeys(("verdict", "code", "signs", "note"), "string"),
    **dict.fromkeys(("base_processes", "head_processes", "base_sessions", "pairs"), "Int64"),
    "drift": "float64",
}
Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class TidyTable:
    """A table: facts by column, and the type of each column as pandas names it."""

    rows: Sequence[Facts]
    types: Mapping[str, str]

    def to_frame(self) -> "DataFrame":
        """Give every column its type, also when there is no row or every value is absent.

        Raises CiPerfError without pandas, which takes longer to import than all else of ci-perf.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise CiPerfError(
                "tables need pandas, which is not installed: expected it beside ci-perf; "
                "next: `pip install 'ci-perf[frames]'`"
            ) from None
        return pandas.DataFrame(list(self.rows), columns=list(self.types)).astype(dict(self.types))

    def to_csv(self) -> str:
        """Write CSV, in which no cell commands a spreadsheet, a terminal or a CI."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.types)
        for row in self.rows:
            writer.writerow(_cell(row.get(name), kind) for name, kind in self.types.items())
        return text.getvalue()


def _cell(value: Any, kind: str) -> object:  # noqa: ANN401  what a fact holds
    if value is None:
        return ""
    if kind == "string":
        return escape.spreadsheet_cell(str(value))
    return float(value) if kind == "float64" else value


def tabulate_runs(*runs: Run) -> TidyTable:
    """Return one row per run, workload, metric and process; ``unit`` is the unit of ``value``.

    The metric `loss` has a row per step; the first step has number 0.
    """
    return TidyTable([facts for run in runs for facts in _run_rows(run)], _RUN)


def tabulate_comparison(comparison: Comparison) -> TidyTable:
    """Return the rows of the comparison, in its order; absent values are empty.

    The throughput follows its step time, and a workload that has nothing to be compared with has a
    row per metric that it was measured by; neither has a verdict of its own.
    """
    common: Facts = {
        "run": comparison.head.run,
        "base_commit": comparison.base.source.commit,
        "head_commit": comparison.head.source.commit,
        "machine": provenance.machine(comparison.head.machine),
        "suite": comparison.suite,
    }
    every = [common | facts for row in comparison.rows for facts in _comparison_rows(row)]
    return TidyTable(every, _COMPARISON)


def _run_rows(run: Run) -> Iterator[Facts]:
    every: tuple[Measured | Failed, ...] = (*run.measured, *run.failed)
    for workload in every:
        common: Facts = {
            "run": run.id,
            "started_at": run.started_at,
            "commit": run.source.commit,
            "branch": run.source.branch,
            "dirty": run.source.dirty,
            "machine": provenance.machine(run.environment.hard),
            "suite": run.suite,
            "workload": workload.workload,
            "parameters": json.dumps(workload.parameters, sort_keys=True),
            "outcome": "measured",
        }
        if isinstance(workload, Measured):
            launches = launch_numbers.list_workload_numbers(workload, run)
        else:
            launches = tuple(map(launch_numbers.find_own_numbers, workload.processes))
            common["outcome"] = "failed"
            reason = f"{workload.phase.value}: {workload.reason}"
            yield common | {"metric": "", "unit": "", "reason": reason}
        for process, numbers in zip(workload.processes, launches, strict=True):
            for metric, value in numbers.items():
                unit = metrics.metric_of(metric).unit.value
                said = {"metric": metric, "unit": unit, "process": process.index, "value": value}
                yield common | said | {"reason": ""}
            for step, loss in enumerate(process.fingerprint.losses):
                said = {"metric": "loss", "unit": "", "process": process.index, "value": loss}
                yield common | said | {"step": step, "reason": ""}


def _comparison_rows(row: Row) -> Iterator[Facts]:
    facts: Facts = {name: getattr(row, name, None) for name in _COMPARISON}
    facts |= name_metric(str(phrases.metric(row))) | {"verdict": row.verdict.value}
    if isinstance(row, Change):
        facts["signs"] = row.signs.direction if row.signs else None
        if row.interval is not None:
            facts |= {"low": row.interval.low, "high": row.interval.high}
        yield facts
        if row.metric == metrics.STEP_TIME.name:
            rates = {
                side: row.items_per_step / step_s
                for side, step_s in (("base", row.base), ("head", row.head))
                if step_s
            }
            yield {"workload": row.workload, **name_metric(metrics.THROUGHPUT.name), **rates}
        return
    facts |= {"base": None, "head": None}
    if not isinstance(row, Uncompared):
        yield facts | {"limit": row.tolerance}
    elif row.metric:
        yield facts | {"base": row.base.get(row.metric), "head": row.head.get(row.metric)}
    else:
        yield facts
        for metric in (*metrics.ALL, *metrics.find_own({**row.base, **row.head})):
            sides = {"base": row.base.get(metric.name), "head": row.head.get(metric.name)}
            if any(value is not None for value in sides.values()):
                yield {"workload": row.workload, **name_metric(metric.name), **sides}


def name_metric(metric: str) -> Facts:
    """Return the columns that name a metric."""
    unit = phrases.unit(metric)
    return {"metric": metric, "unit": unit.value if unit else ""}

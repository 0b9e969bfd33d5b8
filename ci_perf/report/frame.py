"""Tidy tables for notebooks and export: one row per fact, every column named once.

Nothing disappears: a workload that failed has a row whose metric is empty and whose ``reason``
says why, next to the rows of the processes that finished before it failed.
"""

import importlib
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from ci_perf.errors import CiPerfError
from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Change, Comparison, Numerics, Row
from ci_perf.model.history import BranchHistory, WorkloadHistory
from ci_perf.model.run import Failed, Measured, Run
from ci_perf.model.summary import Numbers
from ci_perf.report import escape, phrases, provenance

if TYPE_CHECKING:
    import pandas as pd

    DataFrame: TypeAlias = pd.DataFrame

_RUN_COLUMNS = (
    "run",
    "started_at",
    "commit",
    "branch",
    "dirty",
    "machine",
    "suite",
    "workload",
    "parameters",
    "outcome",
    "metric",
    "unit",
    "process",
    "value",
    "reason",
)
_COMPARISON_COLUMNS = (
    "run",
    "base_commit",
    "head_commit",
    "machine",
    "suite",
    "workload",
    "metric",
    "unit",
    "base",
    "head",
    "ratio",
    "low",
    "high",
    "smallest_detectable",
    "difference",
    "limit",
    "gate",
    "verdict",
    "code",
    "signs",
    "note",
    "base_processes",
    "head_processes",
    "base_sessions",
    "pairs",
    "drift",
)
_HISTORY_COLUMNS = (
    "machine",
    "suite",
    "workload",
    "metric",
    "unit",
    "session",
    "run",
    "recorded_at",
    "measured_commit",
    "commit",
    "author",
    "date",
    "reason",
    "epoch",
    "launches",
    "value",
    "low",
    "high",
    "level_change",
)
_NUMBERS = (
    "value",
    "base",
    "head",
    "ratio",
    "low",
    "high",
    "smallest_detectable",
    "difference",
    "limit",
    "drift",
)
_COUNTS = (
    "session",
    "epoch",
    "launches",
    "process",
    "base_processes",
    "head_processes",
    "base_sessions",
    "pairs",
)
_SIDES = _COUNTS[4:]
_YES_NO = ("dirty", "gate")

_Facts = dict[str, object]


def of_run(run: Run) -> "DataFrame":
    """Return one row per workload, metric and process; ``unit`` is the unit of ``value``."""
    common: _Facts = {
        "run": run.id,
        "started_at": run.started_at,
        "commit": run.source.commit,
        "branch": run.source.branch,
        "dirty": run.source.dirty,
        "machine": provenance.machine(run.environment.hard),
        "suite": run.suite,
    }
    measured = (
        facts
        for workload in run.measured
        for facts in _measured(workload, launch_numbers.of_workload(workload, run), "measured")
    )
    failed = (facts for workload in run.failed for facts in _failed(workload))
    return _frame((common | facts for facts in (*measured, *failed)), _RUN_COLUMNS)


def of_comparison(comparison: Comparison) -> "DataFrame":
    """Return one row per row of the comparison, in its order; absent values are empty."""
    common: _Facts = {
        "run": comparison.head.run,
        "base_commit": comparison.base.source.commit,
        "head_commit": comparison.head.source.commit,
        "machine": provenance.machine(comparison.head.machine),
        "suite": comparison.suite,
    }
    return _frame((common | _row(row) for row in comparison.rows), _COMPARISON_COLUMNS)


def of_history(history: BranchHistory) -> "DataFrame":
    """Return one row per session and metric: its centre, and its lowest and highest launch.

    ``level_change`` says that another level begins there: "accepted", "not accepted", or empty.
    """
    every = (facts for each in history.workloads for facts in _history(history, each))
    return _frame(every, _HISTORY_COLUMNS)


def _history(history: BranchHistory, each: WorkloadHistory) -> Iterable[_Facts]:
    changes = {
        (line.metric, change.session): "accepted" if change.accepted else "not accepted"
        for line in each.metrics
        for change in line.changes
    }
    for place, session in enumerate(each.sessions):
        commit = history.commits[session.commit]
        common: _Facts = {
            "machine": each.machine,
            "suite": each.suite,
            "workload": each.workload,
            "session": place,
            "run": session.run,
            "recorded_at": session.recorded_at,
            "measured_commit": session.source.commit,
            "commit": commit.id,
            "author": commit.author,
            "date": commit.date,
            "reason": session.reason,
        }
        for metric in metrics.ALL:
            values = metric_values.of_session(session, metric.name)
            if values:
                yield common | {
                    "metric": metric.name,
                    "unit": metric.unit.value,
                    "epoch": session.epochs.get(metric.name, 0),
                    "launches": len(values),
                    "value": metric_values.centre(metric.kind, [values]),
                    "low": min(values),
                    "high": max(values),
                    "level_change": changes.get((metric.name, place), ""),
                }


def csv(frame: "DataFrame") -> str:
    """Write the frame as CSV text, in which no cell commands a spreadsheet, a terminal or a CI."""
    texts = {
        name: column.map(escape.spreadsheet_cell, na_action="ignore")
        for name, column in frame.select_dtypes("string").items()
    }
    text: str = frame.assign(**texts).to_csv(index=False, lineterminator="\n")
    return text


def parquet(frame: "DataFrame") -> bytes:
    """Write the frame as the bytes of a Parquet file."""
    _need("pyarrow")
    buffer = BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


def require(form: str) -> None:
    """Check before the work that a table can be made. Raises CiPerfError."""
    _need("pandas")
    if form == "parquet":
        _need("pyarrow")


def _measured(
    workload: Measured | Failed, values: Iterable[Numbers], outcome: str
) -> Iterable[_Facts]:
    """Spread a workload over its processes and metrics."""
    for process, of_process in zip(workload.processes, values, strict=True):
        for metric, value in of_process.items():
            yield {
                "workload": workload.workload,
                "parameters": _json(workload.parameters),
                "outcome": outcome,
                "metric": metric,
                "unit": metrics.BY_NAME[metric].unit.value,
                "process": process.index,
                "value": value,
                "reason": "",
            }


def _failed(workload: Failed) -> Iterable[_Facts]:
    yield {
        "workload": workload.workload,
        "parameters": _json(workload.parameters),
        "outcome": "failed",
        "metric": "",
        "unit": "",
        "reason": f"{workload.phase.value}: {workload.reason}",
    }
    yield from _measured(workload, map(launch_numbers.of_process, workload.processes), "failed")


def _row(row: Row) -> _Facts:
    metric = str(phrases.metric(row))
    unit = phrases.unit(metric)
    said: _Facts = {
        "workload": row.workload,
        "metric": metric,
        "unit": unit.value if unit else "",
        "verdict": row.verdict.value,
        "code": row.code.value,
    }
    if isinstance(row, Change):
        return said | _compared(row)
    if isinstance(row, Numerics):
        said |= {"difference": row.difference, "limit": row.tolerance, "gate": row.gate}
    return said | {"note": row.note}


def _compared(row: Change) -> _Facts:
    fields = ("base", "head", "ratio", "limit", "gate", "note", "drift", *_SIDES)
    said: _Facts = {name: getattr(row, name) for name in fields}
    said["smallest_detectable"] = row.smallest_detectable
    said["signs"] = row.signs.direction if row.signs else None
    if row.interval is not None:
        said |= {name: getattr(row.interval, name) for name in ("low", "high")}
    return said


def _json(parameters: Mapping[str, Scalar]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _frame(rows: Iterable[_Facts], columns: tuple[str, ...]) -> "DataFrame":
    """Give every column one type, also when there is no row or every value is absent."""
    pandas = _need("pandas")
    types = dict.fromkeys(_NUMBERS, "float64")
    types |= dict.fromkeys(_COUNTS, "Int64") | dict.fromkeys(_YES_NO, "boolean")
    frame = pandas.DataFrame(list(rows), columns=list(columns))
    return frame.astype({name: types.get(name, "string") for name in columns})


def _need(name: str) -> ModuleType:
    """Import late: pandas takes longer than everything else that ci-perf does."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CiPerfError(
            f"tables need {name}, which is not installed: expected it beside ci-perf; "
            "next: `pip install '.[frames]'` in a checkout of ci_perf"
        ) from None

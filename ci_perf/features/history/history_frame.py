"""The history of a branch as a table: one row per session and metric."""

from collections.abc import Iterator

from ci_perf.features.history.branch_history import BranchHistory
from ci_perf.judging import metric_values
from ci_perf.model.metrics import ALL
from ci_perf.report.frame import Facts, TidyTable, name_metric

_COLUMNS = {
    "machine": "string",
    "suite": "string",
    "workload": "string",
    "metric": "string",
    "unit": "string",
    "session": "Int64",
    "run": "string",
    "recorded_at": "string",
    "measured_commit": "string",
    "commit": "string",
    "author": "string",
    "date": "string",
    "reason": "string",
    "epoch": "Int64",
    "launches": "Int64",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "level_change": "string",
}


def from_history(history: BranchHistory) -> TidyTable:
    """Return one row per session and metric: its centre, and its lowest and highest launch.

    ``level_change`` says that another level begins there: "accepted", "not accepted", or empty.
    """
    return TidyTable(list(_history_rows(history)), _COLUMNS)


def _history_rows(history: BranchHistory) -> Iterator[Facts]:
    for each in history.workloads:
        changes = {
            (line.metric, change.session): "accepted" if change.accepted else "not accepted"
            for line in each.metrics
            for change in line.changes
        }
        for place, session in enumerate(each.sessions):
            commit = history.commits[session.commit]
            common: Facts = {
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
            for metric in metric_values.find_recorded([session], of=ALL):
                values = metric_values.list_session_values(session, metric.name)
                if values:
                    yield (
                        common
                        | name_metric(metric.name)
                        | {
                            "epoch": session.epochs.get(metric.name, 0),
                            "launches": len(values),
                            "value": metric_values.centre(metric.kind, [values]),
                            "low": min(values),
                            "high": max(values),
                            "level_change": changes.get((metric.name, place), ""),
                        }
                    )

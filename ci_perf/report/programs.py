"""A comparison in a few lines of JSON, for programs that find only the report."""

import json

from ci_perf.model.comparison import Change, Comparison, Numerics, Row
from ci_perf.report import rows as tables
from ci_perf.report import words

# History: 1 = first published form (0.1.0).
SCHEMA = "ci-perf/report/1"


def summary(comparison: Comparison, *, shown: int) -> str:
    """Give the verdict and the worst rows, one per line. ASCII only, so nothing in it is hidden."""
    head = {
        "schema": SCHEMA,
        "verdict": comparison.verdict.value,
        "exit_code": comparison.exit_code,
        "suite": comparison.suite,
        "validity": comparison.validity.status.value,
        "base_commit": comparison.base.source.commit,
        "head_commit": comparison.head.source.commit,
        "rows_left_out": max(0, len(comparison.rows) - shown),
    }
    worst = tables.worst_first(comparison.rows)
    rows = ",\n".join(json.dumps(_row(row)) for row in worst[:shown])
    text = f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}'
    # Inside a string the same for JSON; on a printed line GitHub's runner would obey it.
    return text.replace("##[", "##\\u005b")


def _row(row: Row) -> dict[str, object]:
    """Keep what a bot needs; a whole workload has an empty metric and no numbers."""
    said: dict[str, object] = {
        "workload": row.workload,
        "metric": str(words.metric(row)),
        "verdict": row.verdict.value,
        "code": row.code,
    }
    if isinstance(row, Numerics):
        said |= {
            "gate": row.gate,
            "difference": _rounded(row.difference),
            "limit": _rounded(row.tolerance),
        }
    if isinstance(row, Change):
        low, high = (row.interval.low, row.interval.high) if row.interval else (None, None)
        said |= {
            "gate": row.gate,
            "ratio": _rounded(row.ratio),
            "low": _rounded(low),
            "high": _rounded(high),
            "limit": _rounded(row.limit),
            "smallest_detectable": _rounded(row.smallest_detectable),
            "pairs": row.pairs,
            "drift": _rounded(row.drift),
        }
    return said


def _rounded(number: float | None) -> float | None:
    """Six digits: far below any noise."""
    return None if number is None else float(f"{number:.6g}")

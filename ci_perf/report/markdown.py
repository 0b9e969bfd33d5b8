"""A comparison as the Markdown that people read on a pull request."""

import json

from ci_perf.features.explain.report import MOST_EXPLAINED
from ci_perf.model.comparison import Change, Comparison, Numerics, Row
from ci_perf.report import comparison_page, phrases, table_rows, tables
from ci_perf.report.sentences import say
from ci_perf.report.tables import Fold, Listing

# GitHub's limit for a comment is 65,536, of characters or bytes depending on whom one asks;
# whoever publishes the report adds a few lines.
COMMENT_BYTES = 60_000
# Of the JSON in the report. History: 1 = first published form (0.1.0).
SCHEMA = "ci-perf/report/1"
# How many rows the table and the folded one may show, and how many explanations: the first that
# keeps the report within its bytes is taken. What is folded goes first.
_SHOWN = (
    (1_000, 1_000, MOST_EXPLAINED),
    (1_000, 100, MOST_EXPLAINED),
    (1_000, 10, MOST_EXPLAINED),
    (100, 10, 5),
    (30, 3, 3),
    (10, 3, 3),
    (3, 3, 1),
    (3, 3, 0),
)
# Rows in the JSON for programs; `ci-perf compare --format json` has all of them.
_SHOWN_TO_PROGRAMS = 100


def render(comparison: Comparison, *, max_bytes: int = COMMENT_BYTES) -> str:
    """Show the verdict, what to do, what changed; the rest folded. Cut at whole rows to fit."""
    opening = tables.markdown(list(comparison_page.introduce(comparison)))
    left = max_bytes - len(opening.encode()) - 1
    return f"{opening}\n{render_body(comparison, max_bytes=left)}"


def render_body(comparison: Comparison, *, max_bytes: int) -> str:
    """Return what stands below the opening, cut at whole rows to fit."""
    text = ""
    for rows, folded, explained in _SHOWN:
        data = summarise_json(comparison, shown=min(folded, _SHOWN_TO_PROGRAMS))
        page = [
            *comparison_page.continue_page(
                comparison, rows=rows, folded=folded, explained=explained
            ),
            *comparison_page.explain_table(comparison.rows),
            Fold(say("for_programs"), [Listing(data, "json")]),
            comparison_page.conclude(comparison),
        ]
        text = tables.join_markdown(page)
        if len(text.encode()) <= max_bytes:
            break
    return text


# --- JSON for programs that have only the report


def summarise_json(comparison: Comparison, *, shown: int) -> str:
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
    worst = table_rows.worst_first(comparison.rows)
    lines = ",\n".join(json.dumps(_summarise_row(row)) for row in worst[:shown])
    text = f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}'
    # Inside a string the same for JSON; on a printed line GitHub's runner would obey it.
    return text.replace("##[", "##\\u005b")


def _summarise_row(row: Row) -> dict[str, object]:
    """Keep what a bot needs; a whole workload has an empty metric and no numbers."""
    said: dict[str, object] = {
        "workload": row.workload,
        "metric": str(phrases.metric(row)),
        "verdict": row.verdict.value,
        "code": row.code.value,
    }
    numbers: dict[str, float | None] = {}
    if isinstance(row, Numerics):
        numbers = {"difference": row.difference, "limit": row.tolerance}
    if isinstance(row, Change):
        numbers = {
            "ratio": row.ratio,
            "low": row.interval.low if row.interval else None,
            "high": row.interval.high if row.interval else None,
            "limit": row.limit,
            "smallest_detectable": row.smallest_detectable,
            "pairs": row.pairs,
            "drift": row.drift,
        }
    if numbers:
        said["gate"] = row.gate
    for name, number in numbers.items():
        # Six digits: far below any noise.
        is_exact = number is None or isinstance(number, int)
        said[name] = number if is_exact else float(f"{number:.6g}")
    return said

"""The history of a branch to explore: hover, zoom and a choice of series, by bokeh.

An optional extra, and the only module that knows the library. Its JavaScript comes from the Python
package and is part of the page, whose content security policy knows each script by its hash.
"""

import base64
import hashlib
import importlib.util
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ci_perf.model.history import BranchHistory, WorkloadHistory
from ci_perf.report import branch_history
from ci_perf.report.escape import clean

# Told apart by most people who see colours otherwise (Okabe and Ito 2008).
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
# Of the machines, in their order.
_DASHES = ("solid", "dashed", "dotted", "dotdash", "dashdot")
_HEIGHT_PX = 420
# The height of each name below a picture; two stand in a row.
_NAME_PX = 13
_COMMIT = 10
_DATE = len("2026-11-21")
_SCRIPT = re.compile(r"<script(?![^>]*json)[^>]*>(.*?)</script>", re.DOTALL)


def is_known() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("bokeh") is not None


@dataclass(frozen=True, slots=True)
class _Line:
    """One workload on one machine: each session's commit, and how far it lies from the first."""

    label: str
    machine: str
    changes: Sequence[tuple[int, float]]


def render(history: BranchHistory) -> str:
    """Return a page with one picture per metric that moved, a line per workload and machine."""
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    names = dict.fromkeys(line.metric for each in history.workloads for line in each.metrics)
    machines = list(dict.fromkeys(each.machine for each in history.workloads))
    lines = {name: list(_lines(history.workloads, name)) for name in names}
    figures = [
        _figure(history, branch_history.title(name), lines[name], machines)
        for name in names
        if lines[name]
    ]
    html = file_html(column(*figures, sizing_mode="stretch_width"), INLINE, title="ci_perf history")
    return _guarded(html)


def _lines(workloads: Iterable[WorkloadHistory], metric: str) -> Iterable[_Line]:
    """Yield the lines of a metric, without those that never moved."""
    for each in workloads:
        centres = branch_history.centres(each, metric)
        first = next((value for value in centres if value), None)
        if first is None or branch_history.is_flat(centres):
            continue
        changes = [
            (session.commit, value / first - 1)
            for session, value in zip(each.sessions, centres, strict=True)
            if value is not None
        ]
        label = clean(f"{each.workload}, {each.suite}, {each.machine}")
        yield _Line(label, each.machine, changes)


def _figure(
    history: BranchHistory, title: str, lines: Sequence[_Line], machines: Sequence[str]
) -> Any:  # noqa: ANN401  bokeh has no types
    from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter
    from bokeh.plotting import figure

    plot = figure(
        height=_HEIGHT_PX + _NAME_PX * len(lines),
        sizing_mode="stretch_width",
        title=f"{title}: change since the first session",
        x_axis_label="commits that changed baselines, in their order",
        tools="xpan,xwheel_zoom,box_zoom,reset",
        active_drag="box_zoom",
    )
    plot.yaxis.formatter = NumeralTickFormatter(format="+0.0%")
    for number, line in enumerate(lines):
        places = [place for place, _ in line.changes]
        commits = [history.commits[place] for place in places]
        source = ColumnDataSource(
            {
                "place": places,
                "change": [change for _, change in line.changes],
                "commit": [commit.id[:_COMMIT] for commit in commits],
                "date": [commit.date[:_DATE] for commit in commits],
            }
        )
        plot.line(
            "place",
            "change",
            source=source,
            name=line.label,
            legend_label=line.label,
            color=_COLORS[number % len(_COLORS)],
            line_dash=_DASHES[machines.index(line.machine) % len(_DASHES)],
            line_width=1.5,
        )
    facts = [("", "$name"), ("change", "@change{+0.0%}"), ("commit", "@commit"), ("on", "@date")]
    plot.add_tools(HoverTool(tooltips=facts))
    plot.legend.click_policy = "hide"
    plot.add_layout(plot.legend[0], "below")
    plot.legend.ncols = 2
    return plot


def _guarded(html: str) -> str:
    """Allow the scripts of the page by their hashes, and nothing from elsewhere."""
    scripts = " ".join(f"'sha256-{_digest(script)}'" for script in _SCRIPT.findall(html))
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
    )
    return html.replace("<head>", f"<head>{head}", 1)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

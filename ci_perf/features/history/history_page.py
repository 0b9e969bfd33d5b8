"""The history of a branch as one self-contained page of HTML: no script, no request."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.features.history import level_changes, report, timelines
from ci_perf.features.history.branch_history import BranchHistory, WorkloadHistory
from ci_perf.features.history.level_changes import SharedCause
from ci_perf.features.history.timelines import TimelinePlot
from ci_perf.model import metrics
from ci_perf.report import page, units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.phrases import metric_title
from ci_perf.report.tables import Table

# As many as the file itself keeps: what a check compares with.
_MOST_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSection:
    """Everything of one workload on one machine; `sessions` has the numbers of the newest."""

    workload: str
    machine: str
    suite: str
    removed: Phrase
    timelines: tuple[TimelinePlot, ...]
    still: Phrase
    sessions: Table


def render(history: BranchHistory, lines: Sequence[Phrase] = ()) -> str:
    """Return the page, with the lines of other features."""
    causes = level_changes.find_causes(history)
    recent = [cause for cause in causes if cause.is_recent]
    has_drifted = any(line.has_drifted for each in history.workloads for line in each.metrics)
    is_open = has_drifted or any(cause.is_worse and not cause.accepted for cause in recent)
    return page.render_styled(
        "history.html.jinja",
        "history.css",
        headline=headline(recent),
        counts=report.headline(history),
        footer=report.subline(history),
        tone="open" if is_open else "same",
        warnings=[*report.notices(history), *lines],
        days=level_changes.RECENT_DAYS,
        recent=report.build_changes_table(history, recent),
        older=report.build_changes_table(history, [each for each in causes if not each.is_recent]),
        seen_only=report.SEEN_ONLY,
        workloads=[_workload(history, each) for each in history.workloads],
    )


def headline(recent: Sequence[SharedCause]) -> Phrase:
    """Say how much moved lately, and how much of it nobody accepted."""
    days = f"in the last {level_changes.RECENT_DAYS} days"
    if not recent:
        return (Words(f"Nothing moved {days}"),)
    unknown = sum(not cause.accepted for cause in recent)
    by_nobody = f", {unknown:,} of them accepted by nobody" if unknown else ", all accepted"
    return (Words(f"{units.render_count(len(recent), 'change')} {days}{by_nobody}"),)


def _workload(history: BranchHistory, each: WorkloadHistory) -> WorkloadSection:
    commits = [history.commits[session.commit] for session in each.sessions]
    dates = list(map(report.date, commits))
    columns = {line.metric: report.centres(each, line.metric) for line in each.metrics}
    flat = {name for name, centres in columns.items() if report.is_flat(centres)}
    drawn = (timelines.draw(each, line, dates) for line in each.metrics if line.metric not in flat)
    still = ", ".join(
        f"{metric_title(line.metric)} {_value(line.centre, line.metric)}"
        for line in each.metrics
        if line.metric in flat
    )
    removed: Phrase = ()
    if each.removed is not None:
        commit = history.commits[each.removed]
        words = f"Its file was removed on {report.date(commit)} by "
        removed = (Words(words), commit.author, Words(", commit "), report.link(history, commit))
    return WorkloadSection(
        workload=each.workload,
        machine=each.machine,
        suite=each.suite,
        removed=removed,
        timelines=tuple(timeline for timeline in drawn if timeline is not None),
        still=(Words(f"Never changed: {still}"),) if still else (),
        sessions=Table(
            ("date", "commit", *map(metric_title, columns), "reason"),
            [
                (
                    dates[at],
                    report.link(history, commits[at]),
                    *(_value(centres[at], name) for name, centres in columns.items()),
                    Sentence(each.sessions[at].reason),
                )
                for at in reversed(range(len(each.sessions))[-_MOST_ROWS:])
            ],
        ),
    )


def _value(value: float | None, metric: str) -> Words:
    return units.NOTHING if value is None else units.value(value, metrics.metric_of(metric).unit)

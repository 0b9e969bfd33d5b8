"""The history of a branch as one self-contained page of HTML: no script, no request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.history import BranchHistory, Commit, WorkloadHistory
from ci_perf.report import branch_history, level_changes, page, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.level_changes import SharedCause
from ci_perf.report.page import timelines
from ci_perf.report.page.timelines import TimelinePlot
from ci_perf.report.phrases import Phrase

_COMMIT = 10
_DATE = len("2026-11-21")
# As many as the file itself keeps: what a check compares with.
_MOST_ROWS = 20
_SHAPES = {"worse": "▲", "better": "▼", "open": "◆"}


@dataclass(frozen=True, slots=True)
class CommitLink:
    """A commit, with the address that shows it; "" without one."""

    id: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRow:
    """A line of what moved. Each move is a shape, a tone, a workload and our words."""

    date: str
    commit: CommitLink
    machine: str
    moves: tuple[tuple[str, str, str, Words], ...]
    more: Words
    accepted_by: Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersTable:
    """The last sessions of a workload as numbers, newest first."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, CommitLink, str, str, tuple[Words, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSection:
    """Everything of one workload on one machine."""

    anchor: str
    workload: str
    removed: Phrase
    timelines: tuple[TimelinePlot, ...]
    still: Phrase
    numbers: NumbersTable


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSection:
    """The workloads of one suite on one class of machine."""

    anchor: str
    machine: str
    suite: str
    workloads: tuple[WorkloadSection, ...]


def render(history: BranchHistory, *, together: Sequence[str] = (), explorer: str = "") -> str:
    """Return the page. The machines `together` are drawn on one axis, too, where there are two.

    `explorer` is the file of a page to explore, which it links to.
    """
    causes = level_changes.causes(history)
    recent = level_changes.recent(causes)
    older = [cause for cause in causes if not cause.is_recent]
    return page.styled(
        "history.html.jinja",
        "history.css",
        headline=headline(recent),
        counts=branch_history.headline(history),
        footer=branch_history.subline(history),
        tone="open" if _needs_a_look(history, recent) else "same",
        warnings=branch_history.notices(history),
        days=level_changes.RECENT_DAYS,
        recent=[_moved(history, cause) for cause in recent],
        older=[_moved(history, cause) for cause in older],
        seen_only=branch_history.SEEN_ONLY,
        together=timelines.of_two_machines(history, together),
        names=tuple(together),
        explorer=explorer,
        machines=_machines(history),
    )


def headline(recent: Sequence[SharedCause]) -> Phrase:
    """Say how much moved lately, and how much of it nobody accepted."""
    days = f"in the last {level_changes.RECENT_DAYS} days"
    if not recent:
        return (Words(f"Nothing moved {days}"),)
    unknown = sum(not cause.accepted for cause in recent)
    by_nobody = f", {unknown:,} of them accepted by nobody" if unknown else ", all accepted"
    return (Words(f"{units.numbered(len(recent), 'change')} {days}{by_nobody}"),)


def _needs_a_look(history: BranchHistory, recent: Iterable[SharedCause]) -> bool:
    has_drifted = any(line.has_drifted for each in history.workloads for line in each.metrics)
    return has_drifted or any(cause.is_worse and not cause.accepted for cause in recent)


def _link(history: BranchHistory, commit: Commit) -> CommitLink:
    url = history.repository_url
    return CommitLink(commit.id[:_COMMIT], f"{url}/commit/{commit.id}" if url else "")


def _moved(history: BranchHistory, cause: SharedCause) -> MovedRow:
    moves = []
    for move in cause.moves[: branch_history.MOST_MOVES]:
        tone = "open" if cause.starts_anew else "worse" if move.is_worse else "better"
        words = Words(f"{branch_history.title(move.metric)} {move.words}")
        moves.append((_SHAPES[tone], tone, move.workload, words))
    return MovedRow(
        date=cause.commit.date[:_DATE],
        commit=_link(history, cause.commit),
        machine=cause.machine,
        moves=tuple(moves),
        more=branch_history.more_moves(cause),
        accepted_by=branch_history.accepted_by(cause),
    )


# --- each machine, suite and workload


def _machines(history: BranchHistory) -> list[MachineSection]:
    keys = dict.fromkeys((each.machine, each.suite) for each in history.workloads)
    sections = []
    for number, (machine, suite) in enumerate(keys):
        members = [e for e in history.workloads if (e.machine, e.suite) == (machine, suite)]
        workloads = tuple(
            _workload(history, each, f"m{number}w{place}") for place, each in enumerate(members)
        )
        sections.append(
            MachineSection(anchor=f"m{number}", machine=machine, suite=suite, workloads=workloads)
        )
    return sections


def _workload(history: BranchHistory, each: WorkloadHistory, anchor: str) -> WorkloadSection:
    dates = [history.commits[session.commit].date[:_DATE] for session in each.sessions]
    moving = [line for line in each.metrics if not _is_still(each, line.metric)]
    drawn = (timelines.of(each, line, dates) for line in moving)
    return WorkloadSection(
        anchor=anchor,
        workload=each.workload,
        removed=_removed(history, each),
        timelines=tuple(timeline for timeline in drawn if timeline is not None),
        still=_still(each),
        numbers=_numbers(history, each),
    )


def _is_still(each: WorkloadHistory, metric: str) -> bool:
    return branch_history.is_flat(branch_history.centres(each, metric))


def _removed(history: BranchHistory, each: WorkloadHistory) -> Phrase:
    if each.removed is None:
        return ()
    commit = history.commits[each.removed]
    return (
        Words(f"Its file was removed on {commit.date[:_DATE]} by "),
        commit.author,
        Words(", commit "),
        commit.id[:_COMMIT],
    )


def _still(each: WorkloadHistory) -> Phrase:
    """Name the metrics that never changed, with their value."""
    parts = [
        f"{branch_history.title(line.metric)} "
        f"{units.value(line.centre, metrics.BY_NAME[line.metric].unit)}"
        for line in each.metrics
        if _is_still(each, line.metric)
    ]
    return (Words(f"Never changed: {', '.join(parts)}"),) if parts else ()


def _numbers(history: BranchHistory, each: WorkloadHistory) -> NumbersTable:
    names = [line.metric for line in each.metrics]
    columns = [branch_history.centres(each, name) for name in names]
    rows = []
    for place in range(len(each.sessions))[-_MOST_ROWS:][::-1]:
        session = each.sessions[place]
        commit = history.commits[session.commit]
        values = tuple(
            _value(column[place], name) for name, column in zip(names, columns, strict=True)
        )
        rows.append(
            (
                commit.date[:_DATE],
                _link(history, commit),
                commit.author,
                Sentence(session.reason),
                values,
            )
        )
    titles = tuple(branch_history.title(name) for name in names)
    return NumbersTable(titles=titles, rows=tuple(rows))


def _value(value: float | None, metric: str) -> Words:
    return units.NOTHING if value is None else units.value(value, metrics.BY_NAME[metric].unit)

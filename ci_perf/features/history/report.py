"""The history of a branch in words, and as tables for a terminal."""

from collections.abc import Iterable, Iterator, Sequence

from ci_perf.features.history import level_changes
from ci_perf.features.history.branch_history import (
    BranchHistory,
    MetricTimeline,
    SkippedFile,
    WorkloadHistory,
)
from ci_perf.features.history.level_changes import RECENT_DAYS, SharedCause
from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.commit import Commit
from ci_perf.report import units
from ci_perf.report.escape import Link, Phrase, Sentence, Words
from ci_perf.report.phrases import metric_title, name_worsening
from ci_perf.report.tables import Page, Table

_DATE = len("2026-11-21")
_COMMIT = 10
# As many sessions as fit beside the numbers of a row.
_SPARK_SESSIONS = 20
_MOST_MOVES = 4
_MOST_EARLIER = 5
# Bars of less than this share of a value would make noise look like news.
_NOISE = 0.02
_BARS = "▁▂▃▄▅▆▇█"
# What rounding adds.
_SAME = 1e-6
_MOST_SKIPPED = 5
_NOT_ACCEPTED = Words("nobody")
SEEN_ONLY = Words(
    "A change that nobody has accepted is seen in the series: for information, never a gate."
)
_COMPLETE_CLONE = Words("next: git fetch --unshallow, or fetch-depth: 0 in actions/checkout")


def headline(history: BranchHistory) -> Phrase:
    """Say how much there is, of which branch, and since when."""
    sessions = {session.run for each in history.workloads for session in each.sessions}
    machines = {each.machine for each in history.workloads}
    workloads = {(each.suite, each.workload) for each in history.workloads}
    counted = ", ".join(
        (
            units.render_count(len(sessions), "session"),
            units.render_count(len(workloads), "workload"),
            units.render_count(len(machines), "machine"),
        )
    )
    return (Words("Baselines along "), history.ref, Words(f": {counted}"))


def subline(history: BranchHistory) -> Phrase:
    """Name the commits and the time that they span."""
    first, last = history.commits[0], history.commits[-1]
    return (
        Words(f"{units.render_count(len(history.commits), 'commit')}, "),
        Words(" to ".join(dict.fromkeys([date(first), date(last)]))),
        Words(f"; read on {history.read_at[:_DATE]} at "),
        history.commit[:_COMMIT],
    )


def notices(history: BranchHistory) -> list[Phrase]:
    """Say what is missing from the history, before its numbers."""
    said: list[Phrase] = []
    if history.is_shallow:
        words = "This clone is shallow: what was committed before its first commit is missing; "
        said.append((Words(words), _COMPLETE_CLONE))
    if history.skipped:
        number = units.render_count(len(history.skipped), "version")
        said.append((Words(f"Skipped {number} of files that could not be read or taken:"),))
        said += map(_describe_skipped, history.skipped[:_MOST_SKIPPED])
        if len(history.skipped) > _MOST_SKIPPED:
            rest = len(history.skipped) - _MOST_SKIPPED
            said.append((Words(f"and {rest:,} more, in the JSON under skipped"),))
    if not history.has_change_points:
        words = "No change points: ruptures (the extra history) is not installed."
        said.append((Words(words),))
    said += [
        _drift(each, line)
        for each in history.workloads
        for line in each.metrics
        if line.has_drifted
    ]
    return said


def _describe_skipped(skipped: SkippedFile) -> Phrase:
    return (Words("commit "), skipped.commit[:_COMMIT], Words(": "), Sentence(skipped.reason))


def _drift(each: WorkloadHistory, line: MetricTimeline) -> Phrase:
    moved = units.percent((line.trend or 1.0) - 1)
    return (
        each.workload,
        Words(" "),
        metric_title(line.metric),
        Words(f" has drifted by {moved} within its epoch, on "),
        each.machine,
    )


def date(commit: Commit) -> Words:
    """Return the day of a commit; its text was made by us."""
    return Words(commit.date[:_DATE])


def link(history: BranchHistory, commit: Commit) -> Link:
    """Name a commit, with the address that shows it where the repository has one."""
    url = history.repository_url
    return Link(commit.id[:_COMMIT], f"{url}/commit/{commit.id}" if url else "")


def _moves_phrase(cause: SharedCause) -> Phrase:
    """Say in one line what moved; ▲ is worse. A history that began anew says of neither."""
    parts: list[str] = []
    for move in cause.moves[:_MOST_MOVES]:
        mark = "◆" if cause.starts_anew else "▲" if move.is_worse else "▼"
        between = "; " if parts else ""
        parts += [Words(f"{between}{mark} "), move.workload, Words(" ")]
        parts += [metric_title(move.metric), Words(f" {move.words}")]
    rest = len(cause.moves) - _MOST_MOVES
    return (*parts, Words(f"; and {rest:,} more" if rest > 0 else ""))


def _describe_acceptance(cause: SharedCause) -> Phrase:
    """Say who accepted a change and why; or that nobody did."""
    if not cause.accepted:
        return (_NOT_ACCEPTED,)
    anew = Words(" (history begun anew)" if cause.starts_anew else "")
    reason = Sentence(cause.reason) if cause.reason else Words("no reason given")
    return (cause.commit.author, anew, Words(": "), reason)


def centres(each: WorkloadHistory, metric: str) -> list[float | None]:
    """Return the centre of a metric in each session; `None` where a session lacks it."""
    kind = metrics.metric_of(metric).kind
    values = [metric_values.list_session_values(session, metric) for session in each.sessions]
    return [
        metric_values.centre(kind, [of_session]) if of_session else None for of_session in values
    ]


def _spark(values: Sequence[float | None]) -> Words:
    """Draw the last values as bars of a line of text, without sessions that lack the metric."""
    known = [value for value in values if value is not None][-_SPARK_SESSIONS:]
    if not known:
        return units.NOTHING
    low, height = min(known), max(max(known) - min(known), _NOISE * max(known))
    step = height / (len(_BARS) - 1)
    return Words("".join(_BARS[round((value - low) / step) if step else 0] for value in known))


def is_flat(values: Sequence[float | None]) -> bool:
    """Whether a metric of several sessions has always been the same."""
    known = [value for value in values if value is not None]
    return len(known) > 1 and max(known) - min(known) <= abs(max(known)) * _SAME


# --- for a terminal


def page(history: BranchHistory) -> Page:
    """Return the sentences and tables of a terminal: what moved, then every metric that gates."""
    causes = level_changes.find_causes(history)
    recent = [cause for cause in causes if cause.is_recent]
    shown = recent or causes[:_MOST_EARLIER]
    moved = f"What moved in the last {RECENT_DAYS} days:"
    if not recent:
        moved = f"Nothing moved in the last {RECENT_DAYS} days."
        if shown:
            moved += f" Earlier changes, newest first, {len(shown)} of {len(causes):,}:"
    parts: list[Phrase | Table] = [headline(history), subline(history), *notices(history)]
    parts.append((Words(moved),))
    if shown:
        parts.append(build_changes_table(history, shown))
    if not all(cause.accepted for cause in shown):
        parts.append((SEEN_ONLY,))
    for machine, suite in dict.fromkeys((each.machine, each.suite) for each in history.workloads):
        members = [
            each for each in history.workloads if (each.machine, each.suite) == (machine, suite)
        ]
        rows = list(_rows(members))
        flat = sum(len(each.metrics) for each in members) - len(rows)
        still = f"; {units.render_count(flat, 'metric')} that never changed" if flat else ""
        parts.append((machine, Words(", suite "), suite, Words(still)))
        if rows:
            parts.append(Table(heading=_HEADING, rows=rows, left=_HEADING[:3]))
    return parts


_HEADING = (
    "workload",
    "metric",
    f"last {_SPARK_SESSIONS} sessions",
    "sessions",
    "now",
    "spread",
    "excludes",
    "trend",
)


def build_changes_table(history: BranchHistory, causes: Iterable[SharedCause]) -> Table:
    """Make a table of what moved, and who accepted it."""
    heading = ("date", "commit", "machine", "what moved", "accepted by")
    rows: list[list[str | Phrase]] = [
        [
            date(cause.commit),
            link(history, cause.commit),
            cause.machine,
            _moves_phrase(cause),
            _describe_acceptance(cause),
        ]
        for cause in causes
    ]
    return Table(heading=heading, rows=rows, left=heading)


def _rows(members: Iterable[WorkloadHistory]) -> Iterator[list[str | Phrase]]:
    for each in members:
        for line in each.metrics:
            if is_flat(centres(each, line.metric)):
                continue
            yield [
                each.workload,
                metric_title(line.metric),
                _spark(centres(each, line.metric)),
                Words(f"{len(each.sessions):,}"),
                units.value(line.centre, metrics.metric_of(line.metric).unit),
                units.NOTHING if line.spread is None else Words(f"{100 * line.spread:.2f} %"),
                _excludes(line),
                _trend(line),
            ]


def _trend(line: MetricTimeline) -> Words:
    if line.trend is None:
        return units.NOTHING
    return Words(units.percent(line.trend - 1) + (", drifted" if line.has_drifted else ""))


def _excludes(line: MetricTimeline) -> Words:
    """Say which change for the worse a check excludes where all of its pairs are taken."""
    if line.excludes is None:
        return units.NOTHING
    return Words(f"a {name_worsening(line.metric)} above {units.round_up(line.excludes)}")

"""What GitHub is told of a comparison beside the whole report: a headline, findings, one line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ci_perf.model.comparison import Comparison, Row, Severity, severity_of
from ci_perf.report import cells, escape, headline, markdown, phrases, table_rows, units
from ci_perf.report.cells import TableRow
from ci_perf.report.escape import Markdown, Sentence

_FAILS = frozenset(
    {
        Severity.FAILED,
        Severity.NUMERICS_CHANGED,
        Severity.NUMERICS_VARY,
        Severity.REGRESSED,
        Severity.MISSING,
    }
)
_WARNS = frozenset(
    {Severity.UNCONFIRMED, Severity.LIKELY_SLOWER, Severity.WARNING, Severity.INVALID}
)
_MAX_BRANCH_CHARS = 50
_FROM_A_FORK = "> ⚠️ Measured by code from a fork, whose author could have made up these numbers."


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a comparison was measured. ``url`` may be empty; it is ours, or GitHub's.

    ``base`` is the branch that the head is judged for; empty where there is no pull request.
    """

    url: str
    attempt: int
    is_fork: bool
    base: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is said in addition to the comparison: below the headline, and folded at the end."""

    note: Markdown
    folded: Markdown


NO_EXTRAS = Extras(note=Markdown(""), folded=Markdown(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNote:
    """A row that somebody should see beside the file of its workload. Plain text."""

    workload: str
    level: Literal["warning", "failure"]
    title: str
    message: str


def brief(comparison: Comparison, origin: Origin, extras: Extras = NO_EXTRAS) -> str:
    """Say the verdict, the counts, and where they come from: what always has room in a comment."""
    lines: list[str] = [markdown.opening(comparison)]
    if origin.is_fork:
        lines.append(_FROM_A_FORK)
    if extras.note:
        lines.append(extras.note)
    return "\n\n".join([*lines, *_measured(origin)])


def rest(
    comparison: Comparison, origin: Origin, *, max_bytes: int, extras: Extras = NO_EXTRAS
) -> str:
    """Show everything below the headline, within `max_bytes`; else say where it is."""
    end = f"\n{extras.folded}" if extras.folded else ""
    report = markdown.render(comparison, max_bytes=max_bytes - len(end.encode()))
    text = report.removeprefix(markdown.opening(comparison)).strip() + "\n"
    for whole_text in (text + end, text):
        if len(whole_text.encode()) <= max_bytes:
            return whole_text
    where = f"[summary of its job]({origin.url})" if origin.url else "summary of its job"
    return f"The whole report is too long to show here: the {where} has it.\n"


def whole(
    comparison: Comparison, origin: Origin, *, max_bytes: int, extras: Extras = NO_EXTRAS
) -> str:
    """Show all of it in one piece, within `max_bytes` where those are more than a few lines."""
    head = brief(comparison, origin, extras) + "\n\n"
    left = max_bytes - len(head.encode())
    return head + rest(comparison, origin, max_bytes=left, extras=extras)


def title(comparison: Comparison, *, base: str = "", max_chars: int = 1_000) -> str:
    """Say the verdict, and for which branch it holds, in one line of plain text."""
    verdict = phrases.plain(headline.of(comparison))
    ending = f" · for {escape.clean(base, limit=_MAX_BRANCH_CHARS)}" if base else ""
    room = max_chars - len(ending)
    return (verdict if len(verdict) <= room else f"{verdict[: room - 1]}…") + ending


def file_notes(comparison: Comparison) -> list[FileNote]:
    """Name what failed, regressed or is suspected, worst first."""
    return [_file_note(row) for row in table_rows.worst_first(comparison.rows) if _is_shown(row)]


def _measured(origin: Origin) -> Iterable[str]:
    """Say for which branch the verdict holds, and which run measured."""
    base = escape.code(origin.base, limit=_MAX_BRANCH_CHARS)
    said = [f"Judged for the branch {base}."] if base else []
    if origin.url:
        again = f", attempt {origin.attempt}" if origin.attempt > 1 else ""
        said.append(f"Measured by [this run]({origin.url}){again}.")
    if said:
        yield f"<sub>{' '.join(said)}</sub>"


def _is_shown(row: Row) -> bool:
    return severity_of(row) in _FAILS | _WARNS


def _file_note(row: Row) -> FileNote:
    shown = cells.shown(row)
    return FileNote(
        workload=row.workload,
        level="failure" if row.gate and shown.severity in _FAILS else "warning",
        title=f"ci_perf: {phrases.plain((shown.workload,))}: {shown.severity.value}",
        message=_message(shown),
    )


def _message(shown: TableRow) -> str:
    note = phrases.plain((Sentence(shown.note),))
    if shown.change == units.NOTHING:
        return ": ".join(filter(None, (phrases.plain((shown.metric,)), shown.remark, note)))
    values = f"{units.both(shown.base, shown.head)} ({shown.change}), limit {shown.limit}"
    said = ": ".join(filter(None, (shown.remark, note)))
    moved = f"{phrases.plain((shown.metric,))}: {values}"
    return "; ".join(filter(None, (moved, shown.evidence, said)))

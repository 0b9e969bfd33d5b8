"""What GitHub is told beside the report: titles, and findings at files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ci_perf.model.comparison import Code, Comparison, Row, Severity, Uncompared, severity_of
from ci_perf.report import cells, headline, phrases, table_rows, tables
from ci_perf.report.escape import Sentence, Words, clean
from ci_perf.report.headline import HeadlineWord
from ci_perf.report.sentences import say

_FAILS = frozenset({Severity.FAILED, Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_WARNS = frozenset({Severity.LIKELY_SLOWER, Severity.WARNING})
_WORST_FIRST = (HeadlineWord.FAIL, HeadlineWord.NO_ANSWER, HeadlineWord.PASS)
_MAX_NAME_CHARS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNote:
    """A row that somebody should see beside the file of its workload. Plain text."""

    workload: str
    level: Literal["warning", "failure"]
    title: str
    message: str


def summarise_machines(named: Sequence[tuple[str, Comparison]]) -> str:
    """Say in one line what the comparisons of several machines say together; empty for one."""
    if len(named) < 2:
        return ""
    words = {name: headline.choose_word(comparison) for name, comparison in named}
    worst = min(words.values(), key=_WORST_FIRST.index)
    names = [(clean(name, limit=_MAX_NAME_CHARS),) for name in words if words[name] is worst]
    title = Words(f"{headline.ICON[worst]} {worst.value}")
    return tables.join_markdown([say("machines", title=title, names=names, every=len(words)), ""])


def write_title(comparison: Comparison, *, base: str = "", max_chars: int = 255) -> str:
    """Say the verdict, and for which branch it holds, in one line of plain text."""
    verdict = phrases.plain(headline.summarise(comparison))
    ending = f" · for {clean(base, limit=_MAX_NAME_CHARS)}" if base else ""
    room = max_chars - len(ending)
    return (verdict if len(verdict) <= room else f"{verdict[: room - 1]}…") + ending


def list_file_notes(comparison: Comparison) -> list[FileNote]:
    """Name what failed, regressed or is suspected, worst first."""
    return [
        _make_file_note(row)
        for row in table_rows.worst_first(comparison.rows)
        if severity_of(row) in _FAILS | _WARNS or (row.gate and row.code is Code.UNTRUSTED)
    ]


def _make_file_note(row: Row) -> FileNote:
    words, severity = cells.describe(row), severity_of(row)
    said = [words.metric]
    if not isinstance(row, Uncompared):
        said = [f"{words.metric}: {words.values} ({words.change}), limit {words.limit}"]
        said.append(words.evidence)
    said += [words.remark, phrases.plain((Sentence(words.note),))]
    return FileNote(
        workload=row.workload,
        level="failure" if row.gate and severity in _FAILS else "warning",
        title=f"ci_perf: {phrases.plain((row.workload,))}: {severity.value}",
        message=phrases.plain((Sentence("; ".join(filter(None, said))),)),
    )

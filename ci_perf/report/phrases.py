"""Parts of sentences that every report shares, the same in Markdown and on a terminal.

A phrase is a tuple: `Words` are ours and read the same everywhere, a `Command` is shown whole, any
other string is foreign and left to the renderer to escape.
"""

import string
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Numerics,
    Row,
    Severity,
    is_of_workload,
    severity_of,
)
from ci_perf.model.metrics import Better
from ci_perf.report import units
from ci_perf.report.escape import (
    MAX_SENTENCE_CHARS,
    Command,
    Emphasis,
    Markdown,
    Sentence,
    Words,
    clean,
)

Phrase = tuple[str, ...]

# A sentence with more names than this is hard to read.
MAX_NAMED = 5
STEP_TIME = metrics.STEP_TIME.name
NUMERICS = Words("numerics")


@dataclass(frozen=True, slots=True)
class SeverityMark:
    """How a severity looks in a table: its icon, what that means, and its style on a terminal."""

    icon: Words
    meaning: str
    style: str = ""


MARKS = {
    Severity.FAILED: SeverityMark(Words("💥"), "failed or missing", "bold red"),
    Severity.NUMERICS_CHANGED: SeverityMark(Words("🔢"), "numerics changed", "bold red"),
    Severity.REGRESSED: SeverityMark(Words("❌"), "proven worse (see limit)", "bold red"),
    Severity.LIKELY_SLOWER: SeverityMark(Words("🐢"), "likely worse, not proven", "bold yellow"),
    Severity.INCONCLUSIVE: SeverityMark(Words("❓"), "inconclusive", "yellow"),
    Severity.NEW: SeverityMark(Words("🆕"), "new", "cyan"),
    Severity.WARNING: SeverityMark(Words("⚠️"), "worse, but cannot fail the job", "yellow"),
    Severity.IMPROVED: SeverityMark(Words("🚀"), "proven better (see limit)", "green"),
    Severity.UNCHANGED: SeverityMark(Words("✅"), "unchanged"),
    Severity.NOT_GATING: SeverityMark(
        Words("➖"),  # noqa: RUF001  an icon, not a minus
        "undecided, and so it does not fail the job",
    ),
}

# Singular and plural of a counted metric; of a whole workload.
_METRICS = {
    Severity.FAILED: ("metric missing", "metrics missing"),
    Severity.NUMERICS_CHANGED: (
        "workload with changed numerics",
        "workloads with changed numerics",
    ),
    Severity.REGRESSED: ("regression", "regressions"),
    Severity.LIKELY_SLOWER: ("likely slower", "likely slower"),
    Severity.INCONCLUSIVE: ("inconclusive", "inconclusive"),
    Severity.NEW: ("new metric", "new metrics"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.IMPROVED: ("improvement", "improvements"),
    Severity.UNCHANGED: ("unchanged", "unchanged"),
    Severity.NOT_GATING: ("unclear, not gating", "unclear, not gating"),
}
_WORKLOADS = _METRICS | {
    Severity.FAILED: ("workload failed or missing", "workloads failed or missing"),
    Severity.INCONCLUSIVE: ("workload inconclusive", "workloads inconclusive"),
    Severity.NEW: ("new workload", "new workloads"),
    Severity.UNCHANGED: (
        "workload with the same program",
        "workloads with the same program",
    ),
}


def metric_title(name: str) -> str:
    """Return our title of a metric, or the foreign name of a metric unknown to this version."""
    known = metrics.BY_NAME.get(name)
    return Words(known.title) if known else name


def metric(row: Row) -> str:
    """Name what a row is about, as a program would: the metric, or "numerics"."""
    return NUMERICS if isinstance(row, Numerics) else row.metric


def moved(name: str, ratio: float) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them makes a ratio worse."""
    known = metrics.BY_NAME.get(name)
    if known and known.better is Better.HIGHER:
        return units.percent(1 / ratio - 1)
    return units.percent(ratio - 1)


def unit(name: str) -> metrics.Unit | None:
    """Look up the unit of a metric; `None` for one that this version does not know."""
    known = metrics.BY_NAME.get(name)
    return known.unit if known else None


def tally(rows: Iterable[Row]) -> Words:
    """Count rows by severity, whole workloads apart from metrics."""
    counted = Counter((severity_of(row), is_of_workload(row)) for row in rows)
    parts = []
    for severity in Severity:
        for whole, nouns in ((True, _WORKLOADS), (False, _METRICS)):
            if number := counted[severity, whole]:
                parts.append(f"{number:,} {nouns[severity][number != 1]}")
    return Words(" · ".join(parts))


def explain_marks(rows: Iterable[Row]) -> Phrase:
    """Explain the marks of rows."""
    present = {severity_of(row) for row in rows}
    marks = (f"{mark.icon} {mark.meaning}" for each, mark in MARKS.items() if each in present)
    return (Words(f"Marks: {', '.join(marks)}."),)


def names(rows: Iterable[Row]) -> list[str]:
    """Name the workloads of `rows`, each once, in order."""
    return list(dict.fromkeys(row.workload for row in rows))


def named(rows: Iterable[Row]) -> Phrase:
    """Name the workloads of `rows` in a sentence; many are only counted."""
    return joined((name,) for name in names(rows))


def titled(row: Row) -> Phrase:
    """Name one row in a sentence: its workload and its metric."""
    return (row.workload, Words(" "), metric_title(metric(row)))


def titles(rows: Iterable[Row]) -> Phrase:
    """Name rows in a sentence, each by its workload and its metric."""
    return joined(map(titled, rows))


def fill(template: str, **parts: Phrase) -> Phrase:
    """Put phrases into a sentence of ours; what stands in backticks there is a command."""
    said: list[str] = []
    for text, name, _, _ in string.Formatter().parse(template):
        for position, piece in enumerate(text.split("`")):
            if piece:
                said.append(Command(piece) if position % 2 else Words(piece))
        if name:
            said += parts[name]
    return tuple(said)


def joined(phrases: Iterable[Phrase], *, most: int = MAX_NAMED, between: str = ", ") -> Phrase:
    """Put commas between phrases; beyond the first few they are only counted."""
    every = list(phrases)
    parts: list[str] = []
    for position, phrase in enumerate(every[:most]):
        parts += [Words(between), *phrase] if position else phrase
    more = len(every) - most
    return (*parts, Words(f" and {more:,} more")) if more > 0 else tuple(parts)


def plain(phrase: Phrase) -> Markdown:
    """Join a phrase as plain text, its foreign parts cleaned."""
    return Markdown("".join(map(_plain_part, phrase)))


def _plain_part(part: str) -> str:
    if isinstance(part, Markdown):
        return "" if isinstance(part, Emphasis) else part
    if isinstance(part, Command):
        return clean(part, limit=len(part) + 1)
    return clean(part, limit=MAX_SENTENCE_CHARS) if isinstance(part, Sentence) else clean(part)

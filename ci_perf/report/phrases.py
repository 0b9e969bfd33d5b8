"""Parts of sentences that every report shares, the same in Markdown and on a terminal.

A phrase is a tuple: `Words` are ours and read the same everywhere, a `Command` is shown whole, any
other string is foreign and left to the renderer to escape.
"""

import itertools
import string
from collections.abc import Iterable, Iterator

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Numerics, Row, Severity
from ci_perf.model.metrics import Better, Unit
from ci_perf.report import units
from ci_perf.report.escape import (
    MAX_SENTENCE_CHARS,
    Command,
    Emphasis,
    Markdown,
    Phrase,
    Sentence,
    Words,
    clean,
)

# A sentence with more names than this is hard to read.
MAX_NAMED = 5
STEP_TIME = metrics.STEP_TIME.name
NUMERICS = Words("numerics")
OF_TIME = frozenset({Unit.SECOND, Unit.PER_SECOND, Unit.ITEM_PER_SECOND})


# How a row of each severity looks: its mark, and its style on a terminal.
MARKS = {
    Severity.FAILED: ("💥", "bold red"),
    Severity.NUMERICS_CHANGED: ("🔢", "bold red"),
    Severity.REGRESSED: ("❌", "bold red"),
    Severity.LIKELY_SLOWER: ("🐢", "bold yellow"),
    Severity.INCONCLUSIVE: ("❓", "yellow"),
    Severity.NEW: ("🆕", "cyan"),
    Severity.WARNING: ("⚠️", "yellow"),
    Severity.IMPROVED: ("🚀", "green"),
    Severity.UNCHANGED: ("✅", ""),
    Severity.NOT_GATING: ("➖", ""),  # noqa: RUF001  an icon, not a minus
}


def metric_title(name: str) -> str:
    """Return our title of a metric, or the foreign name of any other: shown as one."""
    known = metrics.find_metric(name)
    if known is None:
        return name
    return Words(known.title) if name in metrics.BY_NAME else known.title


def metric(row: Row) -> str:
    """Name what a row is about, as a program would: the metric, or "numerics"."""
    return NUMERICS if isinstance(row, Numerics) else row.metric


def render_moved(name: str, ratio: float) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them makes a ratio worse."""
    known = metrics.find_metric(name)
    if known and known.better is Better.HIGHER:
        return units.percent(1 / ratio - 1)
    return units.percent(ratio - 1)


def name_worsening(name: str) -> Words:
    """Name a change for the worse of a metric in the word of its unit."""
    known = metrics.find_metric(name)
    if known is None or known.unit in OF_TIME:
        return Words("slowdown")
    return Words("drop" if known.better is Better.HIGHER else "growth")


def name_severity(severity: Severity, metric: str) -> str:
    """Name a severity; what is likely, in the word of the unit of a metric."""
    if severity is not Severity.LIKELY_SLOWER:
        return str(severity.value)
    of_metric = unit(metric)
    if of_metric in OF_TIME:
        return "likely slower"
    return "likely more memory" if of_metric is Unit.BYTE else "likely worse"


def unit(name: str) -> Unit | None:
    """Look up the unit of a metric; `None` for one that this version does not know."""
    known = metrics.find_metric(name)
    return known.unit if known else None


def names(rows: Iterable[Row]) -> list[str]:
    """Name the workloads of `rows`, each once, in order."""
    return list(dict.fromkeys(row.workload for row in rows))


def name_workloads(rows: Iterable[Row]) -> Phrase:
    """Name the workloads of `rows` in a sentence, cases by their family; many are only counted."""
    groups: dict[tuple[bool, str], dict[str, None]] = {}
    for row in rows:
        family = row.family if isinstance(row, Change) else None
        key = (True, family.name) if family else (False, row.workload)
        groups.setdefault(key, {})[row.workload] = None
    named: list[Phrase] = [
        (name, Words(f" ({len(group):,} cases)")) if len(group) > 1 else tuple(group)
        for (_, name), group in groups.items()
    ]
    rest = itertools.chain.from_iterable(list(groups.values())[MAX_NAMED:])
    return join_phrases([*named[:MAX_NAMED], *((name,) for name in rest)])


def title_row(row: Row) -> Phrase:
    """Name one row in a sentence: its workload and its metric."""
    return (row.workload, Words(" "), metric_title(metric(row)))


def titles(rows: Iterable[Row]) -> Phrase:
    """Name rows in a sentence, each by its workload and its metric."""
    return join_phrases(map(title_row, rows))


def fill(template: str, **parts: Phrase) -> Phrase:
    """Put phrases into a sentence of ours; what stands in backticks there is a command."""
    said: list[str] = []
    for text, name, _, _ in string.Formatter().parse(template):
        said += split_commands(text)
        said += parts[name] if name else ()
    return tuple(said)


def split_commands(text: str) -> Iterator[str]:
    """Yield our words, and what stands in backticks among them as commands."""
    for position, piece in enumerate(text.split("`")):
        if piece:
            yield Command(piece) if position % 2 else Words(piece)


def join_phrases(
    phrases: Iterable[Phrase], *, most: int = MAX_NAMED, between: str = ", "
) -> Phrase:
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

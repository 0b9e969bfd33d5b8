"""Which function of the head does what differently, below the table.

Counts are exact evidence of a difference, and no proof that it takes the time: no sentence says
"because".
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_perf.features.explain import limits_report
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.explanation import AuthorFunction, Cause, CauseKind, Explanation
from ci_perf.model.metrics import Unit
from ci_perf.report import cells, escape, phrases, units
from ci_perf.report.escape import BOLD, Phrase, Sentence, Words
from ci_perf.report.tables import Block, Table

_HEADING = tuple(map(Words, ("Evidence", "Where", "What the head does", "Base → head per step")))
MOST_EXPLAINED = 10
# Names of other functions in one line.
_MOST_OTHERS = 4
# GitHub refuses larger numbers; measured code may name any.
_LAST_LINE = 2**31 - 1
_PER_STEP = Words(" per step")

_WORDS: dict[CauseKind, str] = {
    "new": "new: ",
    "more": "more: ",
    "other_shape": "other arguments: ",
    "gone": "gone: ",
    "fewer": "fewer: ",
    "synchronises": "waits for the device: ",
    "slower": "same work, slower: ",
    "faster": "same work, faster: ",
}
_OF_FUNCTION: dict[CauseKind, str] = {
    "slower": "as many calls, and the function itself takes longer",
    "faster": "as many calls, and the function itself takes less time",
}
_SAME = (
    ": a step does the same on both sides: the same operators and functions, equally often. The "
    "change is in {}, or in what is not counted."
)
_NO_CAUSE = ": no difference between the steps explains a change in this direction."


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNote:
    """A cause to see beside its line in the head. Plain text; ``path`` is measured code's word."""

    path: str
    line: int
    title: str
    message: str


def explain_rows(rows: Iterable[Row], *, most: int = MOST_EXPLAINED) -> Iterator[Block]:
    """Yield what the head does differently in the worst rows that moved, of so many at most."""
    for row in _rows(rows, most):
        if row.explanation:
            is_memory = phrases.unit(row.metric) is Unit.BYTE
            yield from describe((BOLD, *_title(row), BOLD), row.explanation, is_memory=is_memory)


def list_line_notes(rows: Iterable[Row]) -> Iterator[LineNote]:
    """Yield the causes of losses, worst row first, at their lines in the head."""
    for row in _rows(rows):
        causes = row.explanation.causes if row.explanation else ()
        title = phrases.plain((*_title(row), Words(": what a step does differently")))
        for cause in causes if row.verdict is not Verdict.IMPROVED else ():
            if cause.in_head and cause.place:
                yield LineNote(
                    path=cause.place.file,
                    line=min(max(cause.line or cause.place.line, 1), _LAST_LINE),
                    title=f"ci_perf: {title}",
                    message=phrases.plain((*_what(cause), Words("; "), *_calls(cause), _PER_STEP)),
                )


def _rows(rows: Iterable[Row], most: int = MOST_EXPLAINED) -> list[Change]:
    explained = (row for row in rows if isinstance(row, Change) and row.explanation is not None)
    return list(itertools.islice(explained, min(most, MOST_EXPLAINED)))


def describe(
    title: Phrase, explanation: Explanation, *, is_memory: bool = False
) -> Iterator[Block]:
    """Yield one explanation: its title, a table, a note; ``is_memory`` tells bytes from times."""
    if explanation.trouble:
        yield (*title, Words(" is not known: "), Sentence(explanation.trouble))
        return
    note = _note(explanation)
    if explanation.causes:
        what = "what" if note or len(explanation.causes) > 1 else "the only thing that"
        pairs = units.render_count(explanation.pairs, "profiled pair")
        yield (*title, Words(f": {what} a step does differently, by {pairs} of launches"))
        rows = [
            ((Words(cause.evidence),), _where(cause), _what(cause), _calls(cause))
            for cause in explanation.causes
        ]
        yield Table(_HEADING, rows, left=_HEADING[:3])
    else:
        moved = "what they allocate or keep" if is_memory else "how long they take, in waiting"
        is_same = not (explanation.others or explanation.further)
        yield (*title, Words(_SAME.format(moved) if is_same else _NO_CAUSE))
    if note:
        yield note


def _title(row: Change) -> Phrase:
    """Ask why: "Why bert_finetune is 8.1 % slower"."""
    why, size = Words("Why "), cells.render_moved(row).lstrip(f"+{units.MINUS}")
    is_gain = row.verdict is Verdict.IMPROVED
    match phrases.unit(row.metric):
        case Unit.SECOND if row.metric == metrics.STEP_TIME.name:
            return (why, row.workload, Words(f" is {size} {'faster' if is_gain else 'slower'}"))
        case Unit.BYTE:
            word = "less" if is_gain else "more"
            return (why, row.workload, Words(f" takes {size} {word} memory"))
        case _:
            title = phrases.metric_title(row.metric)
            moved = Words(f" has moved by {cells.render_moved(row)}")
            return (why, row.workload, Words(", "), title, Words(","), moved)


# --- the cells of a cause


def _where(cause: Cause) -> Phrase:
    place: Phrase = (Words("outside of the repository's functions"),)
    if cause.place:
        place = (cause.place.function, Words(" "), _location(cause.place, cause.line))
    parts: list[Phrase] = [place]
    if cause.is_backward:
        parts.append((Words("backward"),))
    if not cause.in_head:
        parts.append((Words("in the base"),))
    return phrases.join_phrases(parts)


def _location(place: AuthorFunction, line: int) -> str:
    """Return "model.py:57"; of a long path only its end, for the line must be seen."""
    text = f"{escape.clean(place.file, limit=len(place.file) + 1)}:{line or place.line}"
    return text if len(text) <= escape.MAX_CHARS else f"…{text[1 - escape.MAX_CHARS :]}"


def _what(cause: Cause) -> Phrase:
    """Say what the function does differently, by kinds of difference."""
    parts: list[Phrase] = []
    if cause.kind == "calls":
        called = "calls it more often" if cause.calls_head > cause.calls_base else ""
        called = called or "calls it less often"
        if not (cause.calls_base and cause.calls_head):
            called = "does not call it" if cause.calls_base else "calls it; the base does not"
        parts.append((Words(called),))
    elif not cause.operators:
        return (Words(_OF_FUNCTION.get(cause.kind, "does something else")),)
    for kind in dict.fromkeys(change.kind for change in cause.operators):
        named = phrases.join_phrases(
            (change.operator,) for change in cause.operators if change.kind == kind
        )
        shapes: Phrase = ()
        if kind == cause.kind and cause.arguments_base and cause.arguments_head:
            shapes = (Words(" ("), cause.arguments_base, Words(" → "), cause.arguments_head)
            shapes = (*shapes, Words(")"))
        parts.append((Words(_WORDS.get(kind, "")), *named, *shapes))
    if cause.further:
        differ = "differs" if cause.further == 1 else "differ"
        parts.append((Words(f"{cause.further:,} more {differ}"),))
    return phrases.join_phrases(parts, most=len(parts), between="; ")


def _calls(cause: Cause) -> Phrase:
    return (Words(f"{units.count(cause.calls_base)} → {units.count(cause.calls_head)}"),)


# --- below the table


def _note(explanation: Explanation) -> Phrase:
    """Say what else is known: each sentence only where there is something to say."""
    sentences: list[Phrase] = []
    if explanation.limits:
        sentences.append(limits_report.describe_growth(explanation.limits))
    if others := len(explanation.others) + explanation.further:
        places = (cause.place for cause in explanation.others)
        named: list[Phrase] = []
        named += [(place.function,) for place in places if place][:_MOST_OTHERS]
        if more := others - len(named):
            named.append((units.render_count(more, "further place"),))
        sentences.append((Words("Also different: "), *phrases.join_phrases(named), Words(".")))
    if explanation.varying:
        vary = "varies by itself" if explanation.varying == 1 else "vary by themselves"
        things = units.render_count(explanation.varying, "count")
        sentences.append((Words(f"Not compared: {things} that {vary}."),))
    if explanation.traces:
        traces = phrases.join_phrases((name,) for name in explanation.traces)
        sentences.append((Words("Traces: "), *traces, Words("; open them in ui.perfetto.dev.")))
    return phrases.join_phrases(sentences, most=len(sentences), between=" ")

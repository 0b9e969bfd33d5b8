"""Which function of the head does what differently, below the table: one explanation a workload.

The counts are exact evidence of a difference, and no proof that it takes the time: no sentence says
"because".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.explanation import Cause, CauseKind, Explanation
from ci_perf.model.metrics import Unit
from ci_perf.model.step_counts import AuthorFunction
from ci_perf.report import cells, escape, phrases, table_rows, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase

HEADING = (Words("Where"), Words("What the head does"), Words("Base → head per step"))
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
    "calls": "",
}
_SAME = (
    ": a step does the same on both sides: the same operators and functions, equally often. The "
    "change is in {}, or in what is not counted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One explained row: a title, lines of a table below `HEADING` (maybe none), and a note."""

    title: Phrase
    rest: Phrase
    lines: tuple[tuple[Phrase, Phrase, Phrase], ...] = ()
    note: Phrase = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNote:
    """A cause to see beside its line in the head. Plain text; ``path`` is measured code's word."""

    path: str
    line: int
    title: str
    message: str


def of(rows: Iterable[Row], *, most: int = MOST_EXPLAINED) -> list[Explained]:
    """Return the explanations of the worst rows, at most so many."""
    return [_explained(row, row.explanation) for row in _rows(rows, most) if row.explanation]


def line_notes(rows: Iterable[Row]) -> Iterator[LineNote]:
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
    changes = [row for row in table_rows.worst_first(rows) if isinstance(row, Change)]
    return [row for row in changes if row.explanation is not None][:most]


def _explained(row: Change, explanation: Explanation) -> Explained:
    title = _title(row)
    if explanation.trouble:
        trouble = (Words(" is not known: "), Sentence(explanation.trouble))
        return Explained(title=title, rest=trouble)
    note = _note(explanation)
    if not explanation.causes:
        is_memory = phrases.unit(row.metric) is Unit.BYTE
        moved = "what they allocate or keep" if is_memory else "how long they take, in waiting"
        return Explained(title=title, rest=(Words(_SAME.format(moved)),), note=note)
    what = "what" if note or len(explanation.causes) > 1 else "the only thing that"
    said = f": {what} a step does differently, counted in one launch of each side"
    return Explained(
        title=title,
        rest=(Words(said),),
        lines=tuple((_where(cause), _what(cause), _calls(cause)) for cause in explanation.causes),
        note=note,
    )


def _title(row: Change) -> Phrase:
    """Ask why: "Why bert_finetune is 8.1 % slower"."""
    why, size = Words("Why "), cells.moved(row).lstrip(f"+{units.MINUS}")
    is_gain = row.verdict is Verdict.IMPROVED
    match phrases.unit(row.metric):
        case Unit.SECOND if row.metric == metrics.STEP_TIME.name:
            return (why, row.workload, Words(f" is {size} {'faster' if is_gain else 'slower'}"))
        case Unit.BYTE:
            word = "less" if is_gain else "more"
            return (why, row.workload, Words(f" takes {size} {word} memory"))
        case _:
            title = phrases.metric_title(row.metric)
            moved = Words(f" has moved by {cells.moved(row)}")
            return (why, row.workload, Words(", "), title, Words(","), moved)


# --- the cells of a cause


def _where(cause: Cause) -> Phrase:
    if cause.place is None:
        place: Phrase = (Words("outside of the repository's functions"),)
    else:
        place = (cause.place.function, Words(" "), _location(cause.place, cause.line))
    parts: list[Phrase] = [place]
    if cause.phase:
        parts.append((Words("phase "), cause.phase))
    if cause.is_backward:
        parts.append((Words("backward"),))
    if not cause.in_head:
        parts.append((Words("in the base"),))
    return phrases.joined(parts)


def _location(place: AuthorFunction, line: int) -> str:
    """Return "model.py:57"; of a long path only its end, for the line must be seen."""
    text = f"{escape.clean(place.file, limit=len(place.file) + 1)}:{line or place.line}"
    return text if len(text) <= escape.MAX_CHARS else f"…{text[1 - escape.MAX_CHARS :]}"


def _what(cause: Cause) -> Phrase:
    if cause.kind == "calls":
        return (Words(_called(cause)),)
    kinds = list(dict.fromkeys(change.kind for change in cause.operators))
    parts: list[Phrase] = []
    for kind in kinds:
        named = [(change.operator,) for change in cause.operators if change.kind == kind]
        shapes = _shapes(cause) if kind == cause.kind == "other_shape" else ()
        parts.append((Words(_WORDS[kind]), *phrases.joined(named), *shapes))
    said = _separated(parts)
    differ = "differs" if cause.further == 1 else "differ"
    return (*said, Words(f"; {cause.further:,} more {differ}")) if cause.further else said


def _called(cause: Cause) -> str:
    if not cause.calls_base:
        return "calls it; the base does not"
    if not cause.calls_head:
        return "does not call it"
    return "calls it more often" if cause.calls_head > cause.calls_base else "calls it less often"


def _shapes(cause: Cause) -> Phrase:
    if not (cause.arguments_base and cause.arguments_head):
        return ()
    return (Words(" ("), cause.arguments_base, Words(" → "), cause.arguments_head, Words(")"))


def _calls(cause: Cause) -> Phrase:
    return (Words(f"{units.count(cause.calls_base)} → {units.count(cause.calls_head)}"),)


def _separated(parts: Iterable[Phrase]) -> Phrase:
    said: list[str] = []
    for part in parts:
        said += [Words("; "), *part] if said else part
    return tuple(said)


# --- below the table


def _note(explanation: Explanation) -> Phrase:
    said: list[str] = []
    if others := len(explanation.others) + explanation.further:
        places = (cause.place for cause in explanation.others)
        named: list[Phrase] = []
        named += [(place.function,) for place in places if place][:_MOST_OTHERS]
        if more := others - len(named):
            named.append((units.numbered(more, "further place"),))
        said += (Words("Also different: "), *phrases.joined(named), Words("."))
    if explanation.varying:
        vary = "varies" if explanation.varying == 1 else "vary"
        things = units.numbered(explanation.varying, "count")
        space = " " if said else ""
        said.append(Words(f"{space}Not compared: {things} that {vary} from step to step."))
    return tuple(said)

"""Which function of the head does what differently, below the table, and how much that takes.

Counts are exact evidence of a difference, and no proof that it takes the time: no sentence says
"because". A share of the change stands only where profiled pairs resolve it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_perf.features.explain import limits_report
from ci_perf.features.explain.model import AuthorFunction, Cause, CauseKind, Explanation
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.metrics import Unit
from ci_perf.report import cells, escape, phrases, table_rows, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase

HEADING = tuple(
    map(
        Words,
        (
            "Evidence",
            "Where",
            "What the head does",
            "Base → head per step",
            "Share of the change",
        ),
    )
)
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
    "recomputed": "runs again in the backward pass: ",
    "synchronises": "waits for the device: ",
    "slower": "same work, slower: ",
    "faster": "same work, faster: ",
    "grows": "each step leaves memory behind: ",
    "holds_more": "holds more at the peak: ",
    "holds_less": "holds less at the peak: ",
}
_OF_FUNCTION: dict[CauseKind, str] = {
    "slower": "as many calls, and its own Python takes longer",
    "faster": "as many calls, and it takes less time itself",
    "waits": "waits longer",
    "breaks_graph": "breaks the graph more often",
}
_SAME = (
    ": a step does the same on both sides: the same operators and functions, equally often. The "
    "change is in {}, or in what is not counted."
)
_ALL_SMALL = ": nothing that a step does differently takes a tenth of the change."
# Of a change: less is not worth a sentence.
_NOTABLE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One explained row: a title, lines of a table below `HEADING` (maybe none), and a note."""

    title: Phrase
    rest: Phrase
    lines: tuple[tuple[Phrase, ...], ...] = ()
    note: Phrase = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineNote:
    """A cause to see beside its line in the head. Plain text; ``path`` is measured code's word."""

    path: str
    line: int
    title: str
    message: str


def describe_rows(rows: Iterable[Row], *, most: int = MOST_EXPLAINED) -> list[Explained]:
    """Return the explanations of the worst rows, at most so many."""
    return [
        describe(_title(row), row.explanation, is_memory=phrases.unit(row.metric) is Unit.BYTE)
        for row in _rows(rows, most)
        if row.explanation
    ]


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
                    message=phrases.plain((*_what(cause), Words("; "), *_said(cause))),
                )


def _rows(rows: Iterable[Row], most: int = MOST_EXPLAINED) -> list[Change]:
    changes = [row for row in table_rows.worst_first(rows) if isinstance(row, Change)]
    return [row for row in changes if row.explanation is not None][:most]


def describe(title: Phrase, explanation: Explanation, *, is_memory: bool = False) -> Explained:
    """Return one explanation below a title; ``is_memory`` tells bytes from times."""
    if explanation.trouble:
        trouble = (Words(" is not known: "), Sentence(explanation.trouble))
        return Explained(title=title, rest=trouble)
    note = _note(explanation)
    if not explanation.causes:
        moved = "what they allocate or keep" if is_memory else "how long they take, in waiting"
        is_same = not (explanation.others or explanation.further)
        rest = Words(_SAME.format(moved) if is_same else _ALL_SMALL)
        return Explained(title=title, rest=(rest,), note=note)
    what = "what" if note or len(explanation.causes) > 1 else "the only thing that"
    pairs = units.numbered(explanation.pairs, "profiled pair")
    said = f": {what} a step does differently, by {pairs} of launches"
    return Explained(
        title=title,
        rest=(Words(said),),
        lines=tuple(
            ((Words(cause.evidence),), _where(cause), _what(cause), _numbers(cause), _share(cause))
            for cause in explanation.causes
        ),
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
    if cause.kind == "breaks_graph":
        place: Phrase = (Words("torch.compile"),)
    elif cause.place is None:
        place = (Words("outside of the repository's functions"),)
    else:
        place = (cause.place.function, Words(" "), _location(cause.place, cause.line))
    parts: list[Phrase] = [place]
    if cause.phase:
        parts.append((Words("phase "), cause.phase))
    if cause.is_backward:
        parts.append((Words("backward"),))
    if not cause.in_head:
        parts.append((Words("in the base"),))
    if cause.in_build:
        parts.append((Words("made by build"),))
    return phrases.joined(parts)


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
        words = Words(_OF_FUNCTION.get(cause.kind, "does something else"))
        waits = (Words(" in "), cause.waits_in) if cause.waits_in else ()
        return (words, *waits)
    for kind in dict.fromkeys(change.kind for change in cause.operators):
        named = phrases.joined(
            (change.operator,) for change in cause.operators if change.kind == kind
        )
        shapes: Phrase = ()
        if kind == cause.kind and cause.arguments_base and cause.arguments_head:
            shapes = (Words(" ("), cause.arguments_base, Words(" → "), cause.arguments_head)
            shapes = (*shapes, Words(")"))
        parts.append((Words(_WORDS.get(kind, "")), *named, *shapes))
    if cause.waits_in:
        parts.append((Words("waits in "), cause.waits_in))
    if cause.further:
        differ = "differs" if cause.further == 1 else "differ"
        parts.append((Words(f"{cause.further:,} more {differ}"),))
    return _join(parts, Words("; "))


def _numbers(cause: Cause) -> Phrase:
    """Show calls, or bytes of a cause of memory, on both sides."""
    if cause.bytes_base is not None and cause.bytes_head is not None:
        return (units.both(units.size(cause.bytes_base), units.size(cause.bytes_head)),)
    calls = f"{units.count(cause.calls_base)} → {units.count(cause.calls_head)}"
    return (Words(f"{calls} per launch" if cause.kind == "breaks_graph" else calls),)


def _share(cause: Cause) -> Phrase:
    """Show which part of the row's change a cause takes, where that is resolved."""
    if (share := cause.share) is not None:
        text = units.about(share.share) if share.share > 0 else units.percent(share.share)
        if share.low == share.high:
            return (text,)
        low, high = (
            f"{100 * bound:.0f}".replace("-", units.MINUS) for bound in (share.low, share.high)
        )
        return (Words(f"{text} [{low} … {high}]"),)
    if cause.bytes_base is not None or cause.kind == "breaks_graph":
        return (units.NOTHING,)
    return (Words("not timed" if cause.delta_s is None else "size not resolved"),)


def _said(cause: Cause) -> Phrase:
    """Say the numbers of a cause in a sentence."""
    per = () if cause.kind in {"breaks_graph", "holds_more", "holds_less"} else (_PER_STEP,)
    of = (Words("; "), *_share(cause), Words(" of the change")) if cause.share else ()
    return (*_numbers(cause), *per, *of)


# --- below the table


def _note(explanation: Explanation) -> Phrase:
    """Say what else is known: each sentence only where there is something to say."""
    sentences: list[Phrase] = []
    if (factor := explanation.common_factor) is not None:
        else_ = "All else" if explanation.causes else "Everything"
        sentences.append((Words(f"{else_} takes {factor:.3g} × as long: not one operator."),))  # noqa: RUF001
    shares = [cause.share.share for cause in explanation.causes if cause.share]
    rest = 1 - sum(shares)
    if shares and len(shares) == len(explanation.causes) and rest >= _NOTABLE:
        sentences.append((Words(f"Not explained: {units.about(rest)}."),))
    if explanation.limits:
        sentences.append(limits_report.describe_growth(explanation.limits))
    if others := len(explanation.others) + explanation.further:
        places = (cause.place for cause in explanation.others)
        named: list[Phrase] = []
        named += [(place.function,) for place in places if place][:_MOST_OTHERS]
        if more := others - len(named):
            named.append((units.numbered(more, "further place"),))
        sentences.append((Words("Also different: "), *phrases.joined(named), Words(".")))
    if explanation.varying:
        vary = "varies by itself" if explanation.varying == 1 else "vary by themselves"
        things = units.numbered(explanation.varying, "count")
        sentences.append((Words(f"Not compared: {things} that {vary}."),))
    if explanation.ranks:
        sentences.append(limits_report.describe_ranks(explanation.ranks))
    if explanation.traces:
        traces = phrases.joined((name,) for name in explanation.traces)
        sentences.append((Words("Traces: "), *traces, Words("; open them in ui.perfetto.dev.")))
    return _join(sentences, Words(" "))


def _join(parts: Iterable[Phrase], between: Words) -> Phrase:
    said: list[str] = []
    for part in parts:
        said += [between, *part] if said else part
    return tuple(said)

"""A back-test as a page: how many merges moved, which, by how much, and why."""

from collections import Counter
from collections.abc import Iterator

from ci_perf import hooks
from ci_perf.errors import CiPerfError
from ci_perf.features.backtest.backtested import FILE, Backtest, BacktestedMerge, MergeOutcome
from ci_perf.model.comparison import Change
from ci_perf.report import phrases, units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Block, Page, Table
from ci_perf.system import files

_ID = 10
_MOST_ROWS = 100
# One, and several.
_OUTCOMES = {
    MergeOutcome.SAME_PROGRAM: ("same program", "same program"),
    MergeOutcome.UNCHANGED: ("unchanged", "unchanged"),
    MergeOutcome.MOVED: ("moved", "moved"),
    MergeOutcome.SUSPECTED: ("to be measured again", "to be measured again"),
    MergeOutcome.UNCONFIRMED: ("moved only once", "moved only once"),
    MergeOutcome.UNDECIDED: ("undecided", "undecided"),
    MergeOutcome.BROKEN: ("does not build", "do not build"),
    MergeOutcome.FAILED: ("lacks the workload, or fails", "lack the workload, or fail"),
    MergeOutcome.OPEN: ("left for the next call", "left for the next call"),
}


def build_page(backtest: Backtest) -> Page:
    """Count the merges, say what moved and why, then list all that were looked at."""
    parts: list[Block] = [headline(backtest)]
    moved = [each for each in backtest.merges if each.outcome is MergeOutcome.MOVED]
    for merge in moved:
        parts += (_describe_change(merge, change) for change in merge.changes)
        for explain in map(hooks.load, hooks.find_targets("section")):
            parts += explain(merge.changes)
    if backtest.ended != "finished":
        how = "The budget is spent" if backtest.ended == "budget" else "It was interrupted"
        parts.append((Words(f"{how}: the same command goes on."),))
    table = _table(backtest)
    parts += [table] if table.rows else []
    parts += [fill("note: {note}", note=(Sentence(note),)) for note in backtest.notes]
    return parts


def headline(backtest: Backtest) -> Phrase:
    """Say the whole in a line, with each merge that moved."""
    counted = Counter(each.outcome for each in backtest.merges)
    said: list[Phrase] = []
    for outcome, words_of in _OUTCOMES.items():
        if not (count := counted[outcome]):
            continue
        words: Phrase = (Words(f"{count} {words_of[count > 1]}"),)
        if outcome is MergeOutcome.MOVED:
            words = (*words, Words(" ("), *_join(_list_moved(backtest), "; "), Words(")"))
        said.append(words)
    total = units.render_count(len(backtest.merges), "merge")
    hours = units.duration(backtest.duration_s)
    return (Words(f"{total}: "), *_join(said, ", "), Words(f"; {hours}"))


def list_history_lines() -> list[Phrase]:
    """Say what `backtest.json` of the current folder has found, for the page of the history."""
    path = files.current_folder() / FILE
    if files.is_missing(path):
        return []
    try:
        return [(Words("Back-test: "), *headline(files.read(path, Backtest)))]
    except CiPerfError as error:
        return [(Words("Back-test: "), Sentence(str(error)))]


def _list_moved(backtest: Backtest) -> list[Phrase]:
    return [
        (merge.commit.id[:_ID], Words(" "), *_describe(merge.changes[0]))
        for merge in backtest.merges
        if merge.changes
    ]


def _join(parts: list[Phrase], between: str) -> Phrase:
    joined: Phrase = ()
    for at, part in enumerate(parts):
        joined = (*joined, *[Words(between)] * bool(at), *part)
    return joined


def _describe(change: Change) -> Phrase:
    unit = phrases.unit(change.metric)
    size: Phrase = (
        phrases.metric_title(change.metric),
        Words(f" {units.both(units.value(change.base, unit), units.value(change.head, unit))}"),
    )
    if change.ratio is not None:
        ends = (change.interval.low, change.interval.high) if change.interval else (None, None)
        size = (phrases.metric_title(change.metric), Words(f" {units.change(change.ratio, *ends)}"))
    causes = change.explanation.causes if change.explanation else ()
    places = [cause.place for cause in causes if cause.place is not None]
    return (*size, Words(", function "), places[0].function) if places else size


def _describe_change(merge: BacktestedMerge, change: Change) -> Phrase:
    return fill(
        f"{{name}}: {{workload}}: {{change}}, by {{pairs}}; `git show {merge.commit.id[:_ID]}`",
        name=(_name(merge),),
        workload=(change.workload,),
        change=_describe(change),
        pairs=(Words(units.render_count(change.pairs, "fresh pair")),),
    )


def _name(merge: BacktestedMerge) -> str:
    return f"{merge.commit.id[:_ID]} {merge.commit.title}".strip()


def _table(backtest: Backtest) -> Table:
    quiet = {MergeOutcome.SAME_PROGRAM, MergeOutcome.OPEN}
    shown = [each for each in backtest.merges if each.outcome not in quiet]
    heading = ("merge", "became")
    return Table(heading, [_row(each) for each in shown[:_MOST_ROWS]], left=heading[1:])


def _row(merge: BacktestedMerge) -> tuple[str | Phrase, ...]:
    said: Iterator[Phrase] = (_describe(each) for each in merge.changes or merge.first)
    words: Phrase = (Words(_OUTCOMES[merge.outcome][0]),)
    parts = [*said, *([(Sentence(merge.note),)] if merge.note else [])]
    return (_name(merge), (*words, Words(": "), *_join(parts, "; ")) if parts else words)

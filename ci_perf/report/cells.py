"""The six cells of a line of a table, the same for Markdown, HTML and a terminal."""

from ci_perf.report import units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.rows import Line
from ci_perf.report.words import Phrase

HEADING = tuple(
    map(Words, ("", "Workload, metric", "Base → head", "Change [interval]", "Limit", "Evidence"))
)

# What stands below each other in a cell.
Cell = tuple[Phrase, ...]


def of(line: Line, *, is_brief: bool = False) -> tuple[Cell, ...]:
    """Return the mark, the name, both values, the change, the limit and the evidence.

    Brief: without the throughput, and without what could have been detected.
    """
    first, rows = line.first, line.rows
    rate, detects = ((), ()) if is_brief else (_part(first.rate), _part(first.detects))
    return (
        ((first.icon,),),
        _name(line),
        (*_values(line), *rate),
        _each([row.change for row in rows]),
        (*_each([row.limit for row in rows]), *detects),
        (*_part(first.evidence), *_remark(line)),
    )


def _name(line: Line) -> Cell:
    """Name the workload where its lines begin, then the metrics of this one."""
    metrics: list[str] = []
    for row in line.rows:
        metrics += [Words(", "), row.metric] if metrics else [row.metric]
    workload = ((line.first.workload,),) if line.opens else ()
    return (*workload, tuple(metrics)) if any(metrics) else workload


def _values(line: Line) -> Cell:
    """Show both sides of every row, below each other unless nothing has moved."""
    shown = [units.both(row.base, row.head) for row in line.rows]
    if all(row.base == row.head for row in line.rows):
        return ((Words(", ".join(shown)),),)
    return tuple((text,) for text in shown)


def _each(shown: list[Words]) -> Cell:
    """Put the cells of the rows below each other; what they share stands once."""
    return tuple((text,) for text in (shown[:1] if len(set(shown)) == 1 else shown))


def _part(text: Words) -> Cell:
    return ((text,),) if text else ()


def _remark(line: Line) -> Cell:
    """Say what the numbers do not, and quote what the code that was measured said."""
    said = Words("; ".join(dict.fromkeys(row.remark for row in line.rows if row.remark)))
    note = Sentence(line.first.note)
    if not note:
        return _part(said)
    return ((said, Words(": "), note),) if said else ((note,),)

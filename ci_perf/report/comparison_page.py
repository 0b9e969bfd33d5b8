"""A comparison as a page: the verdict, what to do, what changed; the rest folded."""

from collections.abc import Iterable, Iterator, Sequence

from ci_perf.features.explain.report import HEADING, MOST_EXPLAINED, describe_rows
from ci_perf.model.comparison import Code, Comparison, Row, Uncompared
from ci_perf.report import (
    advice,
    escape,
    first_numbers,
    gate_words,
    gpu_differences,
    headline,
    notices,
    phrases,
    profiles,
    provenance,
    table_rows,
    units,
)
from ci_perf.report.escape import BOLD, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say
from ci_perf.report.table_rows import Line
from ci_perf.report.tables import Block, Bullets, Fold, Listing, Page, Paragraph, Table


def introduce(comparison: Comparison) -> Iterator[Block]:
    """Yield what every report begins with: the headline, the counts, what the gate becomes."""
    yield Paragraph(headline.summarise(comparison), "headline")
    yield headline.count_rows(comparison)
    if comparison.gate_changes:
        yield Paragraph((gate_words.TITLE,), "title")
        yield Bullets(gate_words.list_lines(comparison.gate_changes))


def continue_page(
    comparison: Comparison,
    *,
    rows: int,
    folded: int,
    explained: int = MOST_EXPLAINED,
    is_narrow: bool = False,
) -> Page:
    """Return what stands below `introduce`, with so many rows and explanations at most."""
    measured_first = first_numbers.from_comparison(comparison, shown=rows)
    compared = [row for row in comparison.rows if not first_numbers.is_first(row)]
    quiet = table_rows.list_quiet(compared)
    summary = table_rows.summarise_quiet(comparison.rows)
    return [
        *advise(comparison),
        *_tabulate(table_rows.list_changed(compared), rows, is_narrow=is_narrow),
        *([Paragraph(say("first_numbers"), "title"), measured_first] if measured_first else ()),
        *explain(comparison.rows, most=explained),
        *gpu_differences.describe(comparison),
        *_list_failures(comparison, most=rows),
        *([Fold(summary, list(_tabulate(quiet, folded)))] if summary else ()),
        *profiles.fold(comparison.profiles, shown=max(folded, 10)),
        *tell_origin(comparison),
    ]


def advise(comparison: Comparison) -> Iterator[Block]:
    """Yield what to do next, then what to know before the table."""
    if steps := advice.list_steps(comparison):
        yield Paragraph(say("next_steps"), "title")
        yield Bullets(steps)
    else:
        yield say("no_action", gate_changes=comparison.gate_changes)
    for notice in notices.list_notices(comparison):
        yield Paragraph(notice, "warning")
    if reasons := notices.list_reasons_to_distrust(comparison):
        yield Paragraph(reasons[0], "warning")
        yield Bullets(reasons[1:])


def explain(rows: Iterable[Row], *, most: int = MOST_EXPLAINED) -> Iterator[Block]:
    """Yield what the head does differently in the rows that moved: a title, a table, a note."""
    for each in describe_rows(rows, most=most):
        yield (BOLD, *each.title, BOLD, *each.rest)
        if each.lines:
            yield Table(HEADING, each.lines, left=HEADING[:3])
        if each.note:
            yield each.note


def tell_origin(comparison: Comparison) -> Iterator[Block]:
    """Yield how base and head were launched, and what is known of either side."""
    if how := provenance.say_how_launched(comparison):
        yield Paragraph(how, "small")
    if notes := list(provenance.list_notes(comparison)):
        yield Fold(say("notes_on_launches"), [Bullets(notes)], is_open=True)
    facts = provenance.list_environment(comparison)
    heading = ("", "Base", "Head")
    yield Fold(
        provenance.summarise_environment(comparison), [Table(heading, facts, left=heading[1:])]
    )


def explain_table(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield what the marks and the columns of the table mean, where there is one."""
    if not all(map(first_numbers.is_first, rows)):
        blocks = ("legend_change", "legend_limit", "legend_evidence")
        yield Fold(say("how_to_read"), [Bullets([phrases.explain_marks(rows), *map(say, blocks)])])


def conclude(comparison: Comparison) -> Paragraph:
    """Return the last line."""
    return Paragraph(provenance.say_what_was_measured(comparison), "small")


def _tabulate(lines: Sequence[Line], most: int, *, is_narrow: bool = False) -> Iterator[Block]:
    if shown := lines[:most]:
        yield table_rows.make_table(shown, is_narrow=is_narrow)
    yield from _count_left_out(most, len(lines), "rows")


def _list_failures(comparison: Comparison, *, most: int) -> Iterator[Block]:
    failed = [
        row
        for row in table_rows.worst_first(comparison.rows)
        if isinstance(row, Uncompared) and (row.code is Code.FAILED or row.phase is not None)
    ]
    for row in failed[:most]:
        parameters = ", ".join(f"{name}={value}" for name, value in sorted(row.parameters.items()))
        details = say(
            "failure_details", row=row, parameters=parameters, peaks=list(_list_peaks(row))
        )
        output = Listing(escape.tail(row.output or "(it printed nothing)"))
        yield Fold(say("failure", row=row), [details, output], is_open=True)
    yield from _count_left_out(most, len(failed), "failed workloads")


def _list_peaks(row: Uncompared) -> Iterator[Phrase]:
    """Yield how much memory was in use when it ran out."""
    used = row.exhausted
    device = used.device if used else None
    sizes = {
        "of host memory": used.host_rss_peak_bytes if used else None,
        "allocated on the device": device.peak_allocated_bytes if device else None,
        "reserved there": device.peak_reserved_bytes if device else None,
    }
    for where, size in sizes.items():
        if size is not None:
            yield (Words(f"{units.size(size)} {where}"),)


def _count_left_out(shown: int, every: int, what: str) -> Iterator[Phrase]:
    if shown < every:
        yield say("left_out", shown=shown, every=every, what=Words(what))

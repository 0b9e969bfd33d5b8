"""A comparison as a page: the verdict, what to do, what changed; the rest folded."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from ci_perf import hooks
from ci_perf.model.comparison import Change, Code, Comparison, Numerics, Severity, Uncompared
from ci_perf.report import (
    advice,
    escape,
    first_numbers,
    gate_words,
    generated_code,
    gpu_differences,
    headline,
    notices,
    phrases,
    profiles,
    provenance,
    same_program,
    table_rows,
    units,
)
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.sentences import say
from ci_perf.report.sheet import RowFinding, Sheet
from ci_perf.report.tables import Block, Bullets, Fold, Listing, Paragraph, Table

# What is read in 20 seconds: of a report that asks for something, and of one that does not.
_MOST_WORDS = 120
_CALM_WORDS = 40
_MOST_ROWS = 5
# Of packages that differ, in front of the fold.
_MOST_PACKAGES = 8


def introduce(sheet: Sheet) -> Iterator[Block]:
    """Yield what every report begins with: the headline, its scope, what the gate becomes."""
    comparison = sheet.comparison
    yield Paragraph(headline.summarise(sheet), "headline")
    yield Paragraph(headline.tell_scope(comparison), "small")
    if environment := comparison.interleaved and comparison.interleaved.environment:
        differences = environment.differences
        shown, left = differences[:_MOST_PACKAGES], differences[_MOST_PACKAGES:]
        images = environment.image, comparison.head.image
        yield say("upgrade", facts=shown, left=len(left), images=images)
        if left:
            yield Fold(say("upgrade_rest"), [Bullets([say("upgraded", row=each) for each in left])])
    if changes := comparison.gate_changes:
        lines = Bullets(gate_words.list_lines(changes))
        yield Fold(say("gate_changes", number=len(changes)), [lines], is_open=True)


def continue_page(sheet: Sheet, *, rows: int, is_folding: bool = True) -> Iterator[Block]:
    """Yield what stands below `introduce`, with so many rows at most.

    Where it is folding, as few words are left to read as fit into 20 seconds: what to do first, and
    the worst rows that can fail the job. Else every row that somebody should see has its evidence.
    """
    comparison = sheet.comparison
    # What to do, the most urgent first, then what to know.
    steps = advice.list_steps(sheet)
    lines = list(steps.values()) or [say("no_action", gates=comparison.gate_changes)]
    lines += notices.list_notices(comparison)
    every = table_rows.list_shown(sheet.findings)
    loud = (each for each in every if not (each.is_quiet or first_numbers.is_shown(each.row)))
    seen = table_rows.group_families(loud)[:rows]
    if is_folding:
        shown, table = _fit(sheet, lines, seen, urgent=len(advice.URGENT & steps.keys()))
    else:
        shown, table = len(lines), table_rows.make_table(seen, has_evidence=True)
    if shown:
        yield Bullets(lines[:shown]) if shown > 1 else lines[0]
    if table.rows:
        yield table
    families = [group for group in seen if len(group) > 1]
    if families and not is_folding:
        # The rows for which another one stands.
        yield Bullets([table_rows.list_cases(group, most=rows) for group in families])
    if lines[shown:]:
        yield Fold(say("more", number=len(lines) - shown), [Bullets(lines[shown:])])
    if measured_first := first_numbers.from_comparison(comparison, shown=rows):
        if len(measured_first.rows) <= _MOST_ROWS and not table.rows:
            yield say("first_numbers")
            yield measured_first
        else:
            yield Fold(say("first_numbers"), [measured_first], is_open=True)
    if why := list(_explain(sheet, most=rows // 3)):
        yield Fold(say("why"), why, is_open=True)
    yield from _list_failures(sheet, most=rows)
    if every:
        yield _fold_every_row(every, most=rows)
    yield from profiles.fold(comparison.profiles, shown=max(rows, 10))
    yield from generated_code.fold(comparison.profiles, shown=max(rows, 10))
    yield from _tell_origin(comparison)


def _fit(
    sheet: Sheet, lines: Sequence[Phrase], seen: Iterable[Sequence[RowFinding]], *, urgent: int
) -> tuple[int, Table]:
    """Return how many lines, and a table of which groups of rows, can be read in 20 seconds.

    The `urgent` lines come first, and the next one if there is room, or the first one of a report
    that asks for something; then rows, then more lines. What has failed has no numbers for a row.
    """
    can_fail = [
        group
        for group in seen
        if group[0].severity is not Severity.FAILED
        and (group[0].row.gate or isinstance(group[0].row, Numerics))
    ]
    table = table_rows.make_table(can_fail[:_MOST_ROWS], has_evidence=False)
    is_calm = headline.is_calm(sheet.comparison)
    room = _CALM_WORDS if is_calm else _MOST_WORDS
    room -= _count_words(headline.summarise(sheet))
    room -= _count_words(headline.tell_scope(sheet.comparison))
    words = list(map(_count_words, lines))
    is_needed = not (urgent or is_calm)
    first = urgent + (is_needed or sum(words[: urgent + 1]) <= room)
    room -= sum(words[:first])
    costs = [sum(map(_count_words, row)) for row in table.rows]
    heading = sum(len(title.split()) for title in table.heading)
    totals = [heading + total for total in itertools.accumulate(costs)]
    rows = sum(total <= room for total in totals)
    room -= totals[rows - 1] if rows else 0
    shown = first + sum(total <= room for total in itertools.accumulate(words[first:]))
    return min(shown, len(lines)), dataclasses.replace(table, rows=table.rows[:rows])


def _count_words(phrase: Sequence[str]) -> int:
    """Count the words and numbers that a reader sees of a phrase."""
    return sum(any(map(str.isalnum, word)) for word in phrases.plain(tuple(phrase)).split())


def _explain(sheet: Sheet, *, most: int) -> Iterator[Block]:
    """Yield what the head does differently: in its files, in its functions, on the GPU."""
    yield from itertools.islice(same_program.list_differences(sheet.comparison), most)
    changes = (each.row for each in sheet.findings if isinstance(each.row, Change))
    explained = [row for row in changes if row.explanation]
    for explain in map(hooks.load, hooks.find_targets("section") if explained else ()):
        yield from explain(explained, most=most)
    yield from gpu_differences.describe(sheet.comparison)


def _fold_every_row(every: Sequence[RowFinding], *, most: int) -> Fold:
    # Of a noisy row that gates: the loss that would mostly have been proven.
    changes = (each.row for each in every if isinstance(each.row, Change))
    seeable = [row.smallest_detectable for row in changes if row.gate and row.interval]
    said = say(
        "every_row",
        tally=table_rows.tally(every),
        number=len(every),
        seeable=list(filter(None, seeable)),
    )
    table = table_rows.make_table([[each] for each in every[:most]], has_evidence=True)
    return Fold(said, [table, *_count_left_out(most, len(every), "rows"), say("legend")])


def _tell_origin(comparison: Comparison) -> Iterator[Block]:
    """Yield how base and head were launched, and what is known of either side."""
    if notes := list(provenance.list_notes(comparison)):
        yield Fold(say("notes_on_launches"), [Bullets(notes)], is_open=True)
    facts, heading = provenance.list_environment(comparison), ("Fact", "Base", "Head")
    summary = provenance.summarise_environment(comparison)
    yield Fold(summary, [Table(heading, facts, left=heading[1:])])


def _list_failures(sheet: Sheet, *, most: int) -> Iterator[Block]:
    failed = [
        row
        for each in sheet.findings
        if isinstance(row := each.row, Uncompared)
        and (row.code is Code.FAILED or row.phase is not None)
    ]
    for row in failed[:most]:
        parameters = ", ".join(f"{name}={value}" for name, value in sorted(row.parameters.items()))
        # How much memory was in use when it ran out.
        used = row.exhausted
        device = used.device if used else None
        sizes = {
            "of host memory": used.host_rss_peak_bytes if used else None,
            "allocated on the device": device.peak_allocated_bytes if device else None,
            "reserved there": device.peak_reserved_bytes if device else None,
        }
        peaks = [(Words(f"{units.size(n)} {name}"),) for name, n in sizes.items() if n is not None]
        details = say("failure_details", row=row, parameters=parameters, peaks=peaks)
        output = Listing(escape.tail(row.output or "(it printed nothing)"))
        yield Fold(say("failure", row=row), [details, output], is_open=True)
    yield from _count_left_out(most, len(failed), "failed workloads")


def _count_left_out(shown: int, every: int, what: str) -> Iterator[Phrase]:
    if shown < every:
        yield say("left_out", shown=shown, every=every, what=Words(what))

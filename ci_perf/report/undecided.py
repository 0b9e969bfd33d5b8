"""What to do about rows that are inconclusive: one sentence per cure, with the exact command."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Literal

from ci_perf.judge import canaries
from ci_perf.model.comparison import Change, Comparison, Row, Verdict
from ci_perf.model.suite import LARGEST_MARGIN
from ci_perf.report import commands, remarks, units, words
from ci_perf.report import rows as tables
from ci_perf.report.escape import Command, Sentence, Words, clean
from ci_perf.report.standings import Standing
from ci_perf.report.words import Phrase


class Cure(Enum):
    """What would give a row its answer; the surest and cheapest first."""

    BASE = "a base that can be launched"
    TURNS = "launches of base and head in turns"
    PAIRS = "more pairs of them"
    MODES = "launches with one speed"
    QUIET = "a quieter machine, or a wider margin"
    SESSIONS = "a longer history"
    MACHINE = "the machine as it was"
    CLOCKS = "the same clocks on both sides"
    SAME_WORK = "the same work in every process"


Finding = Standing | Cure | Literal["stale"]
"""What a sentence of advice is about: the rows of one standing, of one cure, or the baseline."""

_BY_CODE = {
    remarks.BASE_FAILED: Cure.BASE,
    canaries.CODE: Cure.MACHINE,
    "clocks_moved": Cure.CLOCKS,
    "ranges_overlap": Cure.SAME_WORK,
    "too_few_sessions": Cure.SESSIONS,
}


def cure(row: Row, comparison: Comparison) -> Cure:
    """Say what would decide a row that is inconclusive, or unconfirmed for want of the base."""
    if is_tried(row):
        return Cure.BASE
    if row.code in _BY_CODE:
        return _BY_CODE[row.code]
    remedy = row.remedy if isinstance(row, Change) and row.pairs else None
    if remedy is not None and remedy.pairs is not None:
        return Cure.PAIRS
    if row.code == "two_modes":
        return Cure.MODES
    if remedy is not None:
        return Cure.QUIET
    return Cure.PAIRS if comparison.interleaved else Cure.TURNS


def is_tried(row: Row) -> bool:
    """Whether the base was to be launched beside it, and could not be."""
    return isinstance(row, Change) and bool(row.note)


def launch_the_base(rows: list[Row], _: Comparison) -> Phrase:
    """Say whose base could not be launched, and where to look for the reason."""
    never = any(isinstance(row, Change) and not row.pairs for row in rows)
    return (
        Words("Undecided, because the base could not be launched beside the head: "),
        *words.joined(_with_note(row) for row in rows),
        Words(". What it printed last is in run.json, under "),
        Command("paired"),
        Words("."),
        *(_SET_UP if never else ()),
    )


_SET_UP: Phrase = (
    Words(" If it has to be built or installed first, say so in suite.toml: "),
    Command('setup = { command = "…" }'),
)


def _launch_in_turns(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Inconclusive: "),
        *_with_remarks(rows),
        Words(". Launch base and head in turns: "),
        commands.in_turns(rows, comparison),
    )


def _give_more_time(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Inconclusive: "),
        *_with_remarks(rows),
        Words(". Give them more time: "),
        commands.in_turns(rows, comparison, longer=True),
    )


def _find_the_modes(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Inconclusive, because their launches are now fast, now slow: "),
        *words.named(rows),
        Words(
            ". Find out what they choose (a kernel, a placement) and fix it. Many pairs may prove "
            "a change all the same: "
        ),
        commands.in_turns(rows, comparison, longer=True),
    )


def _calm_down(rows: list[Row], _: Comparison) -> Phrase:
    margins = _margins(rows)
    less = ", or promise less in suite.toml, under `[limits]`: " if margins else "."
    return (
        Words("Inconclusive, and more pairs would not help: "),
        *_with_remarks(rows),
        Words(f". Use a quieter machine{less}"),
        *words.joined((_margin(name, size),) for name, size in margins.items()),
    )


def _margins(rows: Iterable[Row]) -> dict[str, float]:
    """Find the margin of each metric that would do, where suite.toml takes one as large."""
    found: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Change) and row.remedy is not None:
            found[row.metric] = max(row.remedy.margin, found.get(row.metric, 0.0))
    return {name: size for name, size in found.items() if size <= LARGEST_MARGIN}


def _margin(metric: str, size: float) -> Command:
    percent = units.rounded_up(size).removesuffix(" %").replace(",", "")
    return Command(f"{clean(metric)} = {{ margin = {float(percent) / 100:.6g} }}")


def _lengthen_the_history(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Inconclusive, with a history of fewer than 3 sessions: "),
        *words.named(rows),
        Words(". Launch base and head in turns: "),
        commands.in_turns(rows, comparison),
        Words(". Or measure the main branch on other days, and let each run join the history: "),
        commands.append(comparison),
    )


def _wait_for_the_machine(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Inconclusive, because the machine moved: "),
        *words.named(rows),
        Words(". Launches of base and head in turns do not mind: "),
        commands.in_turns(rows, comparison),
        Words(
            ". Or measure again when it is as it was. If it will stay as it is now, measure what "
            "is on the main branch here, and accept that as the new baseline."
        ),
    )


def _hold_the_clocks(rows: list[Row], _: Comparison) -> Phrase:
    return (
        Words(
            "Inconclusive, because the clocks of the two sides differ, and in cycles the change "
            "does not show: "
        ),
        *words.named(rows),
        Words(". Fix the clocks, or let the machine cool down, and measure again."),
    )


def _do_the_same_work(rows: list[Row], _: Comparison) -> Phrase:
    return (
        Words("Inconclusive, because some processes are beyond the limit and some are not: "),
        *words.joined(words.titled(row) for row in rows),
        Words(". Make the workload do the same work in every process."),
    )


STEPS: dict[Finding, Callable[[list[Row], Comparison], Phrase]] = {
    Cure.TURNS: _launch_in_turns,
    Cure.PAIRS: _give_more_time,
    Cure.MODES: _find_the_modes,
    Cure.QUIET: _calm_down,
    Cure.SESSIONS: _lengthen_the_history,
    Cure.MACHINE: _wait_for_the_machine,
    Cure.CLOCKS: _hold_the_clocks,
    Cure.SAME_WORK: _do_the_same_work,
}


def _with_note(row: Row) -> Phrase:
    """Name a row with what is suspected, since when there is no base, and why."""
    if not isinstance(row, Change):
        return words.titled(row)
    suspected = f" {tables.moved(row)}" if row.verdict is Verdict.UNCONFIRMED else ""
    since = f"not any more, after {remarks.pairs(row.pairs)}" if row.pairs else ""
    between = ": " if since and row.note else ""
    why: Phrase = (Words(" ("), Words(since + between), Sentence(row.note), Words(")"))
    return (*words.titled(row), Words(suspected), *(why if since or row.note else ()))


def _with_remarks(rows: Iterable[Row]) -> Phrase:
    return words.joined(_with_remark(row) for row in rows)


def _with_remark(row: Row) -> Phrase:
    said = remarks.undecided(row) if isinstance(row, Change) else ""
    return (*words.titled(row), Words(f" ({said})")) if said else words.titled(row)

"""What undecided rows need to be decided: a sentence for each need, with its command."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Literal

from ci_perf.judging import canaries
from ci_perf.model.comparison import Change, Comparison, Row, Severity, Uncompared, Verdict
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.report import cells, commands, phrases, remarks, units
from ci_perf.report.escape import Command, Sentence, Words, clean
from ci_perf.report.phrases import Phrase


class Need(Enum):
    """What would decide a row; the surest and cheapest first."""

    LAUNCHABLE_BASE = "a base that can be launched"
    IDLE_MACHINE = "a machine that has nothing else to do"
    PAIRED_RUNS = "launches of base and head in turns"
    MORE_PAIRS = "more pairs of them"
    ONE_SPEED = "launches with one speed"
    LESS_NOISE = "a quieter machine, or a larger limit"
    LONGER_HISTORY = "a longer history"
    SAME_MACHINE_STATE = "the machine as it was"
    SAME_CLOCKS = "the same clocks on both sides"
    MORE_DIGITS = "numbers with more digits"
    SAME_WORK = "the same work in every process"
    OWN_PACKAGES = "packages of its own for each side"


Topic = Severity | Need | Literal["stale"]
"""What a sentence of advice is about: the rows of one severity, of one need, or the baseline."""

# A workload gets only the first of these pieces of advice: the others would contradict it.
EXCLUSIVE: tuple[Topic, ...] = (
    Need.IDLE_MACHINE,
    Severity.LIKELY_SLOWER,
    Need.PAIRED_RUNS,
    Need.MORE_PAIRS,
    Need.ONE_SPEED,
    Need.LESS_NOISE,
    Need.LONGER_HISTORY,
    Need.SAME_MACHINE_STATE,
)
# Reason codes of validity: something else used the CPUs or the memory meanwhile.
BUSY_CODES = frozenset({"host_pressure", "memory_pressure", "cgroup_throttled"})
# A larger limit promises little: a loss of up to as much may rightly be called unchanged.
_LARGEST_LIMIT = 0.2
_BY_CODE = {
    remarks.BASE_FAILED: Need.LAUNCHABLE_BASE,
    canaries.CODE: Need.SAME_MACHINE_STATE,
    "clocks_moved": Need.SAME_CLOCKS,
    "rounded": Need.MORE_DIGITS,
    "other_packages": Need.OWN_PACKAGES,
    "ranges_overlap": Need.SAME_WORK,
    "too_few_sessions": Need.LONGER_HISTORY,
}

# What only a judgement by history needs; pairs do without it.
_OF_HISTORY = frozenset({Need.LONGER_HISTORY, Need.SAME_MACHINE_STATE})


def is_busy(row: Row, comparison: Comparison) -> bool:
    """Whether the machine was busy while the workload of `row` ran."""
    return any(
        reason.code in BUSY_CODES and reason.workload in {"", row.workload}
        for reason in comparison.validity.reasons
    )


def is_late(row: Row, comparison: Comparison) -> bool:
    """Whether a workload failed only because it ran out of time on a busy machine."""
    return (
        isinstance(row, Uncompared)
        and row.verdict is Verdict.FAILED
        and NO_RESULT_IN_TIME in row.note
        and is_busy(row, comparison)
    )


def need(row: Row, comparison: Comparison) -> Topic:
    """Return what would decide a row: an undecided one, or one whose base could not be launched.

    While the machine is busy, nothing else is worth trying.
    """
    if is_tried(row):
        return Need.LAUNCHABLE_BASE
    is_likely = row.verdict is Verdict.LIKELY_SLOWER
    quiet = Severity.LIKELY_SLOWER if is_likely else _need(row, comparison)
    return Need.IDLE_MACHINE if quiet in EXCLUSIVE and is_busy(row, comparison) else quiet


def _need(row: Row, comparison: Comparison) -> Need:
    known = _BY_CODE.get(row.code)
    if known in _OF_HISTORY and _is_beyond_budget(row, comparison):
        return Need.MORE_PAIRS
    if known is not None:
        return known
    remedy = row.remedy if isinstance(row, Change) and row.pairs else None
    if remedy is not None and remedy.pairs is not None:
        return Need.MORE_PAIRS
    if row.code == "two_modes":
        return Need.ONE_SPEED
    if remedy is not None:
        return Need.LESS_NOISE
    return Need.MORE_PAIRS if comparison.interleaved else Need.PAIRED_RUNS


def _is_beyond_budget(row: Row, comparison: Comparison) -> bool:
    """Whether the budget was spent before the base was launched beside it at all."""
    return _is_spent(comparison) and isinstance(row, Change) and not row.pairs


def _is_spent(comparison: Comparison) -> bool:
    return comparison.interleaved is not None and comparison.interleaved.stopped == "budget"


def is_tried(row: Row) -> bool:
    """Whether the base could not be launched for this row."""
    return isinstance(row, Change) and bool(row.note)


def launch_the_base(rows: list[Row], _: Comparison) -> Phrase:
    """Say whose base could not be launched, and where to look for the reason."""
    never = any(isinstance(row, Change) and not row.pairs for row in rows)
    return (
        Words("Not decided, because the base could not be launched: "),
        *phrases.joined(_with_note(row) for row in rows),
        Words(". Its last output is in run.json, under "),
        Command("paired"),
        Words("."),
        *(_SET_UP if never else ()),
    )


_SET_UP: Phrase = (
    Words(" If the base must be built or installed first, set in suite.toml: "),
    Command('setup = { command = "…" }'),
)


def _free_the_machine(rows: list[Row], comparison: Comparison) -> Phrase:
    """Say that the machine was too busy, without blaming the code."""
    return (
        Words("The machine was too busy for a verdict: "),
        *phrases.named(rows),
        Words(". Stop the other programs on it ("),
        Command("ci-perf doctor"),
        Words(" says how busy it is), then measure again: "),
        commands.check_by_pairs(rows, comparison, patient=True),
    )


def _look_or_prove(rows: list[Row], comparison: Comparison) -> Phrase:
    """Name the counts that grew, which may explain a slowdown that is not proven."""
    moved = [row.signs.moved for row in rows if isinstance(row, Change) and row.signs]
    counted = dict.fromkeys(name for names in moved for name in names)
    named = phrases.joined((phrases.metric_title(name),) for name in counted)
    return (
        Words("Likely slower: "),
        *phrases.named(rows),
        Words(". The code does more work than before"),
        *((Words(" ("), *named, Words(")")) if named else ()),
        Words(", which may be the cause. More pairs would prove the slowdown: "),
        commands.check_by_pairs(rows, comparison, longer=True),
    )


def _launch_pairs(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Not decided: "),
        *_titled(rows),
        Words(". Launch base and head in turns: "),
        commands.check_by_pairs(rows, comparison),
    )


def _give_more_time(rows: list[Row], comparison: Comparison) -> Phrase:
    more: Phrase = (Words(". Launch more pairs: "),)
    if _is_spent(comparison):
        more = (
            Words(". The budget ended the pairs; launch more with a larger "),
            Command("--budget"),
            Words(": "),
        )
    return (
        Words("Not decided: "),
        *_titled(rows),
        *more,
        commands.check_by_pairs(rows, comparison, longer=True),
    )


def _find_the_modes(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Not decided, because each launch is either fast or slow: "),
        *phrases.named(rows),
        Words(". More pairs may decide: "),
        commands.check_by_pairs(rows, comparison, longer=True),
        Words(
            ". If not, look for a choice that differs between launches, such as a kernel or a "
            "placement."
        ),
    )


def _calm_down(rows: list[Row], _: Comparison) -> Phrase:
    limits = _limits(rows)
    less: Phrase = (
        Words(", or a larger limit in suite.toml, under "),
        Command("[limits]"),
        Words(": "),
        *phrases.joined((_limit(name, size),) for name, size in limits.items()),
    )
    return (
        Words("Not decided, and more pairs would not help: "),
        *_titled(rows),
        Words(". Use a quieter machine"),
        *(less if limits else (Words("."),)),
    )


def _limits(rows: Iterable[Row]) -> dict[str, float]:
    """Find for each metric the limit that would decide, unless it is too large to be useful."""
    limits: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Change) and row.remedy is not None:
            limits[row.metric] = max(row.remedy.limit, limits.get(row.metric, 0.0))
    return {name: size for name, size in limits.items() if size <= _LARGEST_LIMIT}


def _limit(metric: str, size: float) -> Command:
    percent = units.rounded_up(size).removesuffix(" %").replace(",", "")
    return Command(f"{clean(metric)} = {{ limit = {float(percent) / 100:.6g} }}")


def _lengthen_the_history(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Not decided, because the history has fewer than 3 sessions: "),
        *phrases.named(rows),
        Words(". Launch base and head in turns: "),
        commands.check_by_pairs(rows, comparison),
        Words(". Or measure the main branch on more days, and add each run to the history: "),
        commands.append(comparison),
    )


def _wait_for_the_machine(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Not decided, because the speed of the machine changed: "),
        *phrases.named(rows),
        Words(". That does not matter if base and head are launched in turns: "),
        commands.check_by_pairs(rows, comparison),
        Words(
            ". Or measure again when the machine is as before. If it stays as it is now, measure "
            "the main branch here, and accept that run as the new baseline."
        ),
    )


def _hold_the_clocks(rows: list[Row], _: Comparison) -> Phrase:
    return (
        Words(
            "Not decided, because the clocks of the two sides differ, and counted in clock cycles "
            "nothing changed: "
        ),
        *phrases.named(rows),
        Words(". Fix the clocks, or let the machine cool down, and measure again."),
    )


def write_more_digits(rows: list[Row], _: Comparison) -> Phrase:
    """Say whose numbers are rounded, and how to get finer ones."""
    return (
        Words("Inconclusive, because the numbers are rounded too coarsely: "),
        *phrases.named(rows),
        Words(". Write them with more digits, or use a finer clock or longer steps."),
    )


def _do_the_same_work(rows: list[Row], _: Comparison) -> Phrase:
    return (
        Words("Not decided, because some processes are beyond the limit and some are not: "),
        *_titled(rows),
        Words(". Make the workload do the same work in every process."),
    )


def _separate_packages(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words(
            "Not decided, because both sides were launched with the packages that are installed, "
            "which are not those of the baseline: "
        ),
        *_titled(rows),
        Words(
            ". Find out what the new packages cost. To accept it, commit the baseline that this "
            "command writes: "
        ),
        commands.accept(rows, comparison, reason=True),
        Words(". To launch each side with packages of its own, install them in "),
        Command("setup"),
        Words(" of suite.toml with "),
        Command("--target"),
        Words("."),
    )


STEPS: dict[Topic, Callable[[list[Row], Comparison], Phrase]] = {
    Need.IDLE_MACHINE: _free_the_machine,
    Severity.LIKELY_SLOWER: _look_or_prove,
    Need.PAIRED_RUNS: _launch_pairs,
    Need.MORE_PAIRS: _give_more_time,
    Need.ONE_SPEED: _find_the_modes,
    Need.LESS_NOISE: _calm_down,
    Need.LONGER_HISTORY: _lengthen_the_history,
    Need.SAME_MACHINE_STATE: _wait_for_the_machine,
    Need.SAME_CLOCKS: _hold_the_clocks,
    Need.MORE_DIGITS: write_more_digits,
    Need.SAME_WORK: _do_the_same_work,
    Need.OWN_PACKAGES: _separate_packages,
}


def _with_note(row: Row) -> Phrase:
    """Name a row with what is suspected, since when there is no base, and why."""
    if not isinstance(row, Change):
        return phrases.titled(row)
    suspected = f" {cells.moved(row)}" if row.verdict is Verdict.UNCONFIRMED else ""
    since = f"after {units.numbered(row.pairs, 'pair')}" if row.pairs else ""
    between = ": " if since and row.note else ""
    why: Phrase = (Words(" ("), Words(since + between), Sentence(row.note), Words(")"))
    return (*phrases.titled(row), Words(suspected), *(why if since or row.note else ()))


def _titled(rows: Iterable[Row]) -> Phrase:
    return phrases.joined(map(phrases.titled, rows))

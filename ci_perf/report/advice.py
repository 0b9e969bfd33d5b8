"""What to do next: one sentence per topic, each with the exact command."""

from collections.abc import Iterable
from enum import Enum

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.judging.policy import LOOKS
from ci_perf.model import samples
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Numerics,
    Row,
    Severity,
    Uncompared,
    Verdict,
    is_of_workload,
    severity_of,
)
from ci_perf.model.environment import is_same
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.report import cells, commands, phrases, provenance, table_rows, units
from ci_perf.report.escape import Command, Sentence, Words, clean
from ci_perf.report.phrases import Phrase, fill


class Topic(Enum):
    """What a sentence of advice is about: the sentence itself, in the order of sentences."""

    FAILED = "Failed: {names}. The last output is below.{memory}"
    NUMERICS_CHANGED = (
        "Numerics changed: {numbers}. The losses or the output differ from those of the base. "
        "Check this before the times below: a faster step that computes something else is no "
        "improvement. If the change is intended, accept it with a reason: {accept_numbers}"
    )
    NUMERICS_VARY = (
        "Numerics vary between processes on the same machine with the same seed: {numbers}. "
        "Seed every random source, or explain the variation with `varies=`: "
        '`Workload(..., varies="…")`'
    )
    REGRESSED = (
        "Regressed: {names}. Fix it, or accept the new numbers and commit the baseline that "
        "this command writes: {accept_worse}"
    )
    HISTORY_ALONE = (
        "Suspected from its history alone: {moved}. This is not proven{harmless}. To decide, "
        "launch base and head in turns: {longer} (in the Action: the input `against`)."
    )
    BASE_FAILED = (
        "Not decided, because the base could not be launched: {with_notes}. Its last output is "
        "in run.json, under `paired`.{setup}"
    )
    MISSING = "Missing, though it has a baseline: {names}. Restore it{removal}"
    METRIC_MISSING = (
        "Missing, though the baseline has it: {titles}. Restore it, or accept that it is gone: "
        "{accept_worse}"
    )
    UNTRUSTED = (
        "Measure again on a quiet machine, up to the end, before you look for a cause in the "
        "code{whose}."
    )
    BUSY_MACHINE = (
        "The machine was too busy for a verdict: {names}. Stop the other programs on it "
        "(`ci-perf doctor` says how busy it is), then measure again: {patient}"
    )
    MORE_WORK = "Likely slower: {names}. {work}More pairs would prove the slowdown: {longer}"
    NO_PAIRS = "Not decided: {titles}. Launch base and head in turns: {in_turns}"
    FEW_PAIRS = "Not decided: {titles}. {budget}{longer}"
    TWO_MODES = (
        "Not decided, because each launch is either fast or slow: {names}. More pairs may "
        "decide: {longer}. If not, look for a choice that differs between launches, such as a "
        "kernel or a placement."
    )
    NOISE = "Not decided, and more pairs would not help: {titles}. Use a quieter machine{limits}"
    SHORT_HISTORY = (
        "Not decided, because the history has fewer than 3 sessions, or is of other nodes: "
        "{names}. Launch base and head in turns: {in_turns}. Or measure the main branch here on "
        "more days, and add each run to the history: {append}"
    )
    MACHINE_MOVED = (
        "Not decided, because the speed of the machine changed: {names}. That does not matter "
        "if base and head are launched in turns: {in_turns}. Or measure again when the machine "
        "is as before. If it stays as it is now, measure the main branch here, and accept that "
        "run as the new baseline."
    )
    OTHER_CLOCKS = (
        "Not decided, because the clocks of the two sides differ, and counted in clock cycles "
        "nothing changed: {names}. Fix the clocks, or let the machine cool down, and measure "
        "again."
    )
    ROUNDED = (
        "Inconclusive, because the numbers are rounded too coarsely: {names}. Write them with "
        "more digits, or use a finer clock or longer steps."
    )
    RANGES_OVERLAP = (
        "Not decided, because some processes are beyond the limit and some are not: {titles}. "
        "Make the workload do the same work in every process."
    )
    OTHER_PACKAGES = (
        "Not decided, because both sides were launched with the packages that are installed, "
        "which are not those of the baseline: {titles}. Find out what the new packages cost. To "
        "accept it, commit the baseline that this command writes: {accept_worse}. To launch each "
        "side with packages of its own, install them in `setup` of suite.toml with `--target`."
    )
    STALE = (
        "Refresh the baseline, or every later change will be suspected, too. On the main "
        "branch, on this machine, run {measure} and then {replace}"
    )
    NEW = (
        "No baseline yet: {newcomers}. {mend} one and commit the file that this command writes: "
        "{accept}"
    )
    NOT_COMPARABLE = (
        "Not comparable with the baseline{judged}: {names} ({cause}). Compare the same workload "
        "on the same machine, or record a new baseline and commit it: {accept_here}"
    )
    IMPROVED = (
        "Improved: {names}. Accept the new numbers, or a later change may lose the gain "
        "unnoticed: {accept}"
    )


# A workload gets only the first of these pieces of advice: the others would contradict it.
_EXCLUSIVE = (
    Topic.BUSY_MACHINE,
    Topic.MORE_WORK,
    Topic.NO_PAIRS,
    Topic.FEW_PAIRS,
    Topic.TWO_MODES,
    Topic.NOISE,
    Topic.SHORT_HISTORY,
    Topic.MACHINE_MOVED,
)
_ACCEPTING = frozenset({Topic.NEW, Topic.NOT_COMPARABLE, Topic.IMPROVED})
_OF_SEVERITY = {
    Severity.REGRESSED: Topic.REGRESSED,
    Severity.NEW: Topic.NEW,
    Severity.IMPROVED: Topic.IMPROVED,
}
# Whatever else is known of a row without an answer.
_OF_CODE = {
    Code.NOT_COMPARABLE: Topic.NOT_COMPARABLE,
    Code.BASE_FAILED: Topic.BASE_FAILED,
    Code.ROUNDED: Topic.ROUNDED,
    Code.RANGES_OVERLAP: Topic.RANGES_OVERLAP,
    Code.OTHER_PACKAGES: Topic.OTHER_PACKAGES,
}
# A workload with such a row is accepted with a reason, or not at all.
_BLAMES = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_ACCEPTED = _BLAMES | {Severity.IMPROVED}
# Reason codes of validity: something else used the CPUs or the memory meanwhile.
BUSY_CODES = frozenset({"host_pressure", "memory_pressure", "cgroup_throttled"})
# A larger limit promises little: a loss of up to as much may rightly be called unchanged.
_LARGEST_LIMIT = 0.2


def next_steps(comparison: Comparison) -> list[Phrase]:
    """Say what to do, worst first; empty where there is nothing to do."""
    is_of_samples = comparison.suite == samples.SUITE and not comparison.head.run
    if not comparison.rows and is_of_samples:
        return [(Words("There is nothing to judge: the samples contain no workload."),)]
    if not comparison.rows:
        opening = Words("Neither side has a workload. List the workloads of the suite: ")
        return [(opening, commands.listing(comparison))]
    groups: dict[Topic, list[Row]] = {}
    if comparison.validity.is_run_invalid:
        groups[Topic.UNTRUSTED] = []
    if comparison.stale is not None:
        groups[Topic.STALE] = []
    for row, topic in _advised(comparison):
        groups.setdefault(topic, []).append(row)
    if is_of_samples:
        return _of_samples(groups)
    return [
        fill(topic.value, **_parts(groups[topic], comparison)) for topic in Topic if topic in groups
    ]


def _advised(comparison: Comparison) -> Iterable[tuple[Row, Topic]]:
    """Yield the rows that need advice, worst first, with the topic of it.

    To accept gains, or a first baseline, of a workload that is blamed is no advice before somebody
    has looked, and its own advice accepts them too.
    """
    blamed = {
        row.workload
        for row in comparison.rows
        if severity_of(row) in _BLAMES and row.code is not Code.NUMERICS_VARY
    }
    topics = [
        (row, topic)
        for row in table_rows.worst_first(comparison.rows)
        if (topic := topic_of(row, comparison)) is not None
        and not (row.workload in blamed and topic in _ACCEPTING)
    ]
    first: dict[str, Topic] = {}
    for topic in _EXCLUSIVE:
        for row in (row for row, other in topics if other is topic):
            first.setdefault(row.workload, topic)
    for row, topic in topics:
        if topic not in _EXCLUSIVE or topic is first[row.workload]:
            yield row, topic


# --- which topic


def is_busy(row: Row, comparison: Comparison) -> bool:
    """Whether the machine was busy while the workload of `row` ran."""
    return any(
        reason.code in BUSY_CODES and reason.workload in {"", row.workload}
        for reason in comparison.validity.reasons
    )


def is_late(row: Row, comparison: Comparison) -> bool:
    """Whether a workload failed only because it ran out of time on a busy machine."""
    is_out_of_time = row.code is Code.FAILED and NO_RESULT_IN_TIME in row.note
    return is_out_of_time and is_busy(row, comparison)


def topic_of(row: Row, comparison: Comparison) -> Topic | None:
    """Return what the advice on a row is about; `None` where nothing is to be done.

    While the machine is busy, nothing else is worth trying.
    """
    severity = severity_of(row)
    if is_late(row, comparison):
        return Topic.BUSY_MACHINE
    if severity is Severity.FAILED:
        if row.code is Code.FAILED:
            return Topic.FAILED
        return Topic.MISSING if is_of_workload(row) else Topic.METRIC_MISSING
    if severity is Severity.NUMERICS_CHANGED:
        varies = row.code is Code.NUMERICS_VARY
        return Topic.NUMERICS_VARY if varies else Topic.NUMERICS_CHANGED
    if severity not in {Severity.LIKELY_SLOWER, Severity.INCONCLUSIVE}:
        return _OF_SEVERITY.get(severity)
    if row.code is Code.UNTRUSTED:
        return Topic.UNTRUSTED
    if isinstance(row, Change) and row.note:
        return Topic.BASE_FAILED
    if (
        isinstance(row, Change)
        and row.code is Code.HISTORY_ALONE
        and not signs.shows_more_work(row)
    ):
        return Topic.HISTORY_ALONE
    is_likely = row.verdict is Verdict.LIKELY_SLOWER
    quiet = Topic.MORE_WORK if is_likely else _undecided(row, comparison)
    return Topic.BUSY_MACHINE if quiet in _EXCLUSIVE and is_busy(row, comparison) else quiet


def _undecided(row: Row, comparison: Comparison) -> Topic:
    """Return what would decide a row; the surest and cheapest first."""
    if row.code in _OF_CODE:
        return _OF_CODE[row.code]
    interleaved = comparison.interleaved
    pairs = row.pairs if isinstance(row, Change) else 0
    if row.code is Code.MACHINE_MOVED and pairs:
        return Topic.OTHER_CLOCKS
    # Pairs do without a history; where the budget was spent before any, more of it gives some.
    is_beyond_budget = interleaved is not None and interleaved.stopped == "budget" and not pairs
    if row.code is Code.MACHINE_MOVED and not is_beyond_budget:
        return Topic.MACHINE_MOVED
    if row.code is Code.TOO_FEW_SESSIONS and not is_beyond_budget:
        return Topic.SHORT_HISTORY
    remedy = row.remedy if isinstance(row, Change) and pairs else None
    if remedy is not None and remedy.pairs is not None:
        return Topic.FEW_PAIRS
    if row.code is Code.TWO_MODES:
        return Topic.TWO_MODES
    if remedy is not None:
        return Topic.NOISE
    return Topic.FEW_PAIRS if interleaved else Topic.NO_PAIRS


# --- what the sentences name


def _parts(rows: list[Row], comparison: Comparison) -> dict[str, Phrase]:
    """Return what the sentences may name."""
    is_green = comparison.exit_code == ExitCode.OK
    is_invalid = comparison.validity.is_run_invalid
    is_tried = any(isinstance(row, Uncompared) and row.note for row in rows)
    return {
        "names": phrases.named(rows),
        "titles": phrases.titles(rows),
        "numbers": phrases.joined(_numbers(row) for row in rows if isinstance(row, Numerics)),
        "moved": phrases.joined(map(_moved, rows)),
        "with_notes": phrases.joined(map(_with_note, rows)),
        "newcomers": phrases.joined(map(_newcomer, {row.workload: row for row in rows}.values())),
        "harmless": (Words(", and does not fail the job"),) if is_green else (),
        "mend": (Words("If the base should have run, mend that first. Then record"),)
        if is_tried
        else (Words("Record"),),
        "memory": _memory(rows),
        "removal": _removal(rows, comparison.base.label),
        "whose": () if is_invalid else (Words(": "), *phrases.named(rows)),
        "judged": () if any(row.gate for row in rows) else (Words(", so judged by pairs"),),
        "cause": _cause(comparison),
        "work": _work(rows),
        "budget": _budget(comparison),
        "limits": _limits(rows),
        "setup": _setup(rows),
        "in_turns": (commands.check_by_pairs(rows, comparison),),
        "longer": (commands.check_by_pairs(rows, comparison, longer=True),),
        "patient": (commands.check_by_pairs(rows, comparison, patient=True),),
        "append": (commands.append(comparison),),
        "measure": (commands.measure(comparison),),
        "replace": (commands.replace(comparison),),
        "accept": _accept(rows, comparison, reason=False),
        "accept_worse": _accept(rows, comparison, reason=True),
        "accept_here": _accept(rows, comparison, reason=not _is_other_machine(comparison)),
        "accept_numbers": _accept(
            rows, comparison, reason=True, append=_are_kept(rows, comparison)
        ),
    }


def _memory(rows: list[Row]) -> Phrase:
    """Say what helps workloads that ran out of memory."""
    exhausted: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Uncompared) and row.exhausted:
            exhausted.setdefault(row.exhausted.kind, []).append(row)
    said: Phrase = ()
    for kind, without_memory in sorted(exhausted.items()):
        names = phrases.named(without_memory)
        said = (*said, Words(" "), *names, Words(f": {phrases.OUT_OF_MEMORY[kind]}"))
    return said


def _removal(rows: list[Row], base: str) -> Phrase:
    """Name the baseline files to delete. A side is labelled with its folder, or its run file."""
    if base.endswith(".json"):
        return (Words("."),)
    said = "; if you removed it on purpose, delete its baseline in the same pull request: {git_rm}"
    return fill(said, git_rm=(commands.git_rm(rows, base),))


def _cause(comparison: Comparison) -> Phrase:
    """Say why nothing compares: machines are told here, the rest is in the table."""
    base, head = comparison.base.machine, comparison.head.machine
    if not _is_other_machine(comparison) or base is None or head is None:
        return (Words("the table says why"),)
    there, here = provenance.machines(base, head)
    return (Words("baseline: "), there, Words(", here: "), here)


def _is_other_machine(comparison: Comparison) -> bool:
    base, head = comparison.base.machine, comparison.head.machine
    return base is not None and head is not None and not is_same(base, head)


def _accept(
    rows: list[Row], comparison: Comparison, *, reason: bool, append: bool = False
) -> Phrase:
    """Give the command that accepts rows; numbers of a busy machine it may refuse."""
    is_refused = any(is_busy(row, comparison) for row in rows)
    refused = (Words(" (it refuses numbers of a very busy machine: check again then)"),)
    command = commands.accept(rows, comparison, reason=reason, append=append)
    return (command, *(refused if is_refused else ()))


def _are_kept(rows: Iterable[Row], comparison: Comparison) -> bool:
    """Whether `accept` alone would keep the baseline of one of these workloads as it is."""
    changed = (
        row
        for row in comparison.rows
        if row.gate and severity_of(row) in _ACCEPTED and row.code is not Code.NUMERICS_VARY
    )
    return not set(phrases.names(changed)).issuperset(phrases.names(rows))


def _numbers(row: Numerics) -> Phrase:
    """Name the first numbers that differ: a loss says more than a percentage."""
    shown = cells.shown(row)
    if row.difference is None:
        return (row.workload, Words(f" ({shown.change})"))
    is_varying = row.code is Code.NUMERICS_VARY
    limit = "" if is_varying else f", limit {units.limit(row.tolerance)}"
    pair = f"{cells.which(row)}: {shown.base} → {shown.head}"
    return (row.workload, Words(f" ({pair}, {shown.change}{limit})"))


def _moved(row: Row) -> Phrase:
    moved = f" {cells.moved(row)}" if isinstance(row, Change) else ""
    return (*phrases.titled(row), Words(moved))


def _with_note(row: Row) -> Phrase:
    """Name a row with what is suspected, since when there is no base, and why."""
    if not isinstance(row, Change):
        return phrases.titled(row)
    named = _moved(row) if row.code is Code.HISTORY_ALONE else phrases.titled(row)
    since = f"after {units.numbered(row.pairs, 'pair')}" if row.pairs else ""
    between = ": " if since and row.note else ""
    why: Phrase = (Words(" ("), Words(since + between), Sentence(row.note), Words(")"))
    return (*named, *(why if since or row.note else ()))


def _newcomer(row: Row) -> Phrase:
    if not (isinstance(row, Uncompared) and row.note):
        return (row.workload,)
    why = (Words(" (the base could not be launched: "), Sentence(row.note), Words(")"))
    return (row.workload, *why)


def _setup(rows: list[Row]) -> Phrase:
    """Say how a base is built, where it never ran."""
    if all(isinstance(row, Change) and row.pairs for row in rows):
        return ()
    said = " If the base must be built or installed first, set in suite.toml: {setup}"
    return fill(said, setup=(Command('setup = { command = "…" }'),))


def _work(rows: list[Row]) -> Phrase:
    """Name the counts that grew, which may explain a slowdown that is not proven."""
    moved = [row.signs.moved for row in rows if isinstance(row, Change) and row.signs]
    counted = dict.fromkeys(name for names in moved for name in names)
    named = phrases.joined((phrases.metric_title(name),) for name in counted)
    said = "The code does more work than before ({counts}), which may be the cause. "
    return fill(said, counts=named) if named else ()


def _budget(comparison: Comparison) -> Phrase:
    interleaved = comparison.interleaved
    if interleaved is None or interleaved.stopped != "budget":
        return (Words("Launch more pairs: "),)
    return fill("The budget ended the pairs; launch more with a larger `--budget`: ")


def _limits(rows: list[Row]) -> Phrase:
    """Name for each metric the limit that would decide, unless it is too large to be useful."""
    limits: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Change) and row.remedy is not None:
            limits[row.metric] = max(row.remedy.limit, limits.get(row.metric, 0.0))
    useful = {name: size for name, size in limits.items() if size <= _LARGEST_LIMIT}
    if not useful:
        return (Words("."),)
    said = ", or a larger limit in suite.toml, under `[limits]`: {limits}"
    written = ((_limit(name, size),) for name, size in useful.items())
    return fill(said, limits=phrases.joined(written))


def _limit(metric: str, size: float) -> Command:
    return Command(f"{clean(metric)} = {{ limit = {_rounded_up(size):.6g} }}")


def _rounded_up(size: float) -> float:
    """Round a share up to the digits that people read."""
    return float(units.rounded_up(size).removesuffix(" %").replace(",", "")) / 100


# --- samples: ci-perf launched nothing, so none of its commands measures again or accepts


def _of_samples(groups: dict[Topic, list[Row]]) -> list[Phrase]:
    """Say what to do, where the launches are another tool's."""
    said = {
        Topic.REGRESSED: "Regressed: {names}. Fix it. If the change is intended, use these "
        "samples as those of the next base.",
        Topic.METRIC_MISSING: "Missing on the head: {titles}. Sample it again, or remove it from "
        "the history.",
        Topic.ROUNDED: Topic.ROUNDED.value,
        Topic.RANGES_OVERLAP: Topic.RANGES_OVERLAP.value,
        Topic.NEW: "Only on the head: {titles}. Sample the base, too.",
    }
    decided = [
        fill(said[topic], names=phrases.named(groups[topic]), titles=phrases.titles(groups[topic]))
        for topic in Topic
        if topic in groups and topic in said
    ]
    undecided = [
        row
        for topic, rows in groups.items()
        if topic not in said
        for row in rows
        if isinstance(row, Change) and row.verdict in {Verdict.LIKELY_SLOWER, Verdict.INCONCLUSIVE}
    ]
    return decided + _pairs_of_samples(undecided)


def _pairs_of_samples(rows: list[Change]) -> list[Phrase]:
    """Say how many pairs would decide, or how many more."""
    without = [row for row in rows if not row.pairs]
    noisy = [row for row in rows if row.remedy is not None and row.remedy.pairs is None]
    short = [row for row in rows if row.pairs and row not in noisy]
    said = []
    if without:
        said.append(
            fill(
                "Not decided without pairs: {names}. Launch base and head in turns in one job, and "
                f"give them as `pairs` (or `--pair`): {LOOKS[0]} pairs decide a clear case, "
                f"{LOOKS[-1]} a close one.",
                names=phrases.named(without),
            )
        )
    if short:
        said.append(
            fill(
                "Not decided by so few pairs: {more}. Launch them on the same machine while "
                "nothing else runs there, and judge all pairs together.",
                more=phrases.joined(map(_more_pairs, short)),
            )
        )
    if noisy:
        smallest = max(row.remedy.limit for row in noisy if row.remedy is not None)
        limit = f", or judge by `--limit {_rounded_up(smallest):.6g}`"
        said.append(
            fill(
                "Not decided, and more pairs would not help: {titles}. Use a quieter machine, a "
                f"fixed number of threads or longer steps{limit if smallest <= 1 else ''}.",
                titles=phrases.titles(noisy),
            )
        )
    return said


def _more_pairs(row: Change) -> Phrase:
    """Say how many pairs would decide beside those that were given."""
    look = row.remedy.pairs if row.remedy is not None and row.remedy.pairs else 0
    more = (look or next((look for look in LOOKS if look > row.pairs), row.pairs + 1)) - row.pairs
    return (row.workload, Words(f" ({more} more)"))

"""What a comparison says in sentences, the same in Markdown and on a terminal.

A phrase is a tuple: `Words` are ours and read the same everywhere, a `Command` is shown whole, any
other string is foreign and left to the renderer to escape.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from ci_perf.judge import canaries
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Comparison,
    Numerics,
    Row,
    Severity,
    Side,
    Uncompared,
    is_of_workload,
    severity_of,
)
from ci_perf.model.environment import GpuMachine, Machine, is_same
from ci_perf.model.metrics import Better
from ci_perf.model.run import Source
from ci_perf.model.validity import Reason, Status
from ci_perf.report import pressure, units
from ci_perf.report.escape import Command, Sentence, Words, clean

Phrase = tuple[str, ...]

# More names than this make a sentence that nobody reads.
MAX_NAMED = 5
STEP_TIME = metrics.STEP_TIME.name
SHORT_SHA = 7
ALL_ROWS = Command("ci-perf compare --format csv")
_DATE = len("2026-11-21")
NUMERICS = Words("numerics")
_INVALID = Words("🛑 This run cannot be trusted; no number here blames anybody:")
_PARTLY_INVALID = Words(
    "🛑 The machine was in no state to be trusted while some workloads ran; their numbers blame "
    "nobody:"
)
_MOVED = ". So no time is judged by its history; memory and counts are"
_MOVED_AND_PAIRED = ". So times are judged by pairs of launches alone"
_MOVED_AND_JUDGED = ". As suite.toml has it, times are judged all the same"
# Fixed programs run in the image, too.
_MACHINE_MOVED = (
    "⚠️ The machine moved: fixed programs, which no pull request can change, took another time"
)
_MACHINE_OR_IMAGE_MOVED = (
    "⚠️ The machine moved, or the image makes the difference: fixed programs took another time"
)
_BUSY = Words(
    "⚠️ The machine was busy with other work, which may explain a change below, or hide one:"
)
_DEGRADED = Words("⚠️ The machine was not at its best; small changes may be its doing:")
_INCOMPLETE = Words("⚠️ Something was not measured to its end, and is not judged:")

ICON = {
    Severity.FAILED: Words("💥"),
    Severity.NUMERICS_CHANGED: Words("🔢"),
    Severity.NUMERICS_VARY: Words("🎲"),
    Severity.REGRESSED: Words("❌"),
    Severity.UNCONFIRMED: Words("🔎"),
    Severity.LIKELY_SLOWER: Words("🐢"),
    Severity.MISSING: Words("🚫"),
    Severity.INVALID: Words("🛑"),
    Severity.WARNING: Words("⚠️"),
    Severity.INCONCLUSIVE: Words("❓"),
    Severity.NEW: Words("🆕"),
    Severity.INCOMPARABLE: Words("🔀"),
    Severity.IMPROVED: Words("🚀"),
    Severity.NOT_GATING: Words("➖"),  # noqa: RUF001  an icon, not a minus
    Severity.UNCHANGED: Words("✅"),
}
# What a mark in a table means, where it is not simply the name of its severity.
_MARKS = {
    Severity.REGRESSED: "worse than its limit, and proven",
    Severity.UNCONFIRMED: "suspected by its history alone",
    Severity.WARNING: "worse than its limit, and cannot fail the job",
    Severity.IMPROVED: "better than its limit, and proven",
    Severity.NOT_GATING: "undecided, and cannot fail the job",
}
_LEGEND: tuple[Phrase, ...] = (
    (
        Words(
            "Change [interval]: how far the metric moved, and between which bounds the true change "
            "lies, as surely as its verdict needed."
        ),
    ),
    (
        Words(
            "Limit: the size of change that must be proven exceeded before a row regresses or "
            "improves. Margin: an unchanged row has surely changed by less. Detects: the smallest "
            "change that would mostly have been proven here."
        ),
    ),
    (
        Words(
            "Evidence: pairs of launches, base and head in turns in one job, which alone prove a "
            "change of a noisy metric; or the committed sessions that the head is compared with."
        ),
    ),
)

# Singular and plural of a counted metric; of a whole workload.
_METRICS = {
    Severity.FAILED: ("metric failed", "metrics failed"),
    Severity.NUMERICS_CHANGED: (
        "workload with changed numerics",
        "workloads with changed numerics",
    ),
    Severity.NUMERICS_VARY: (
        "workload whose numerics vary",
        "workloads whose numerics vary",
    ),
    Severity.REGRESSED: ("regression", "regressions"),
    Severity.UNCONFIRMED: ("unconfirmed", "unconfirmed"),
    Severity.LIKELY_SLOWER: ("likely slower", "likely slower"),
    Severity.MISSING: ("metric missing", "metrics missing"),
    Severity.INVALID: ("invalid", "invalid"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.INCONCLUSIVE: ("inconclusive", "inconclusive"),
    Severity.NEW: ("new metric", "new metrics"),
    Severity.INCOMPARABLE: ("incomparable", "incomparable"),
    Severity.IMPROVED: ("improvement", "improvements"),
    Severity.NOT_GATING: ("unclear, not gating", "unclear, not gating"),
    Severity.UNCHANGED: ("unchanged", "unchanged"),
}
_WORKLOADS = _METRICS | {
    Severity.FAILED: ("workload failed", "workloads failed"),
    Severity.MISSING: ("workload missing", "workloads missing"),
    Severity.INVALID: ("workload invalid", "workloads invalid"),
    Severity.INCONCLUSIVE: ("workload inconclusive", "workloads inconclusive"),
    Severity.NEW: ("new workload", "new workloads"),
    Severity.INCOMPARABLE: ("workload incomparable", "workloads incomparable"),
}


def metric_title(name: str) -> str:
    """Our title of a metric; the foreign name of one that this version does not know."""
    known = metrics.BY_NAME.get(name)
    return Words(known.title) if known else name


def metric(row: Row) -> str:
    """Name what a row is about, as a program would: the metric, or "numerics"."""
    return NUMERICS if isinstance(row, Numerics) else row.metric


def moved(name: str, ratio: float) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them makes a ratio worse."""
    known = metrics.BY_NAME.get(name)
    if known and known.better is Better.HIGHER:
        return units.percent(1 / ratio - 1)
    return units.percent(ratio - 1)


def unit(name: str) -> metrics.Unit | None:
    """Look up the unit of a metric; `None` for one that this version does not know."""
    known = metrics.BY_NAME.get(name)
    return known.unit if known else None


def machine(found: Machine | None) -> str:
    """Name a machine class."""
    if found is None:
        return "unknown machine"
    if isinstance(found, GpuMachine):
        count = f"{found.gpu_count} × " if found.gpu_count != 1 else ""  # noqa: RUF001
        return f"{count}{clean(found.gpu_model)}{' (MIG)' if found.mig else ''}"
    return f"{clean(found.cpu_model)}, {found.logical_cores} cores"


def machines(base: Machine | None, head: Machine | None) -> tuple[str, str]:
    """Name the machines of both sides; two that only look the same, by the facts that differ."""
    names = (machine(base), machine(head))
    if names[0] != names[1] or base is None or head is None or is_same(base, head):
        return names
    facts = [msgspec.to_builtins(one) for one in (base, head)]
    different = [key for key in facts[0] if facts[0][key] != facts[1].get(key)]
    first, second = (
        f"{name} ({', '.join(f'{key} {clean(str(fact[key]))}' for key in different)})"
        for name, fact in zip(names, facts, strict=True)
    )
    return first, second


def commit(source: Source) -> Phrase:
    """Shorten a commit as git does; anything else is shown as it is."""
    is_sha = len(source.commit) >= SHORT_SHA and set(source.commit) <= set("0123456789abcdef")
    shown = source.commit[:SHORT_SHA] if is_sha else source.commit
    return (shown, Words(" + uncommitted changes")) if source.dirty else (shown,)


def sessions(side: Side) -> Phrase:
    """Count the sessions of a side, and date them."""
    counted = Words(f"{side.sessions or 'no'} session{'s' * (side.sessions != 1)}")
    first, last = side.oldest[:_DATE], side.newest[:_DATE]
    if not first:
        return (counted,)
    if first == last:
        return (counted, Words(" of "), first)
    return (counted, Words(", "), first, Words(" to "), last)


def environment_summary(comparison: Comparison) -> Phrase:
    """Say enough of the environment that the fold can stay closed."""
    where = machine(comparison.head.machine)
    more = len(comparison.differences)
    differing = Words(f", {more} difference{'s' * (more != 1)}" if more else "")
    return (
        Words("Environment: "),
        where,
        differing,
        Words(", base of "),
        *sessions(comparison.base),
    )


def tally(rows: Iterable[Row]) -> str:
    """Count rows by severity, whole workloads apart from metrics."""
    counted = Counter((severity_of(row), is_of_workload(row)) for row in rows)
    parts = []
    for found in Severity:
        for whole, words in ((True, _WORKLOADS), (False, _METRICS)):
            if number := counted[found, whole]:
                parts.append(f"{number:,} {words[found][number != 1]}")
    return " · ".join(parts)


def legend(comparison: Comparison) -> list[Phrase]:
    """Explain the marks that the tables show, and their columns."""
    present = {severity_of(row) for row in comparison.rows}
    marks = ", ".join(
        f"{ICON[one]} {_MARKS.get(one, one.value)}" for one in Severity if one in present
    )
    return [(Words(f"Marks: {marks}."),), *_LEGEND]


def footer(comparison: Comparison) -> Phrase:
    """Say what was measured, so that a stale report can be seen to be stale."""
    return (
        *_numbers(comparison),
        Words(" → head "),
        *commit(comparison.head.source),
        *_beside(comparison),
        *_run(comparison.head.run),
        Words(f" · exit code {comparison.exit_code} · ci-perf "),
        comparison.tool.version,
    )


def _numbers(comparison: Comparison) -> Phrase:
    """Say whose numbers the head was compared with; where the base was launched, there are two."""
    base = commit(comparison.base.source)
    if not _beside(comparison):
        return (Words("Base "), *base)
    return (Words("Baseline of "), *base) if comparison.base.sessions else (Words("No baseline"),)


def _beside(comparison: Comparison) -> Phrase:
    found = comparison.interleaved
    if found is None or not found.pairs:
        return ()
    return (Words(", launched beside "), *commit(found.source))


def _run(name: str) -> Phrase:
    """Name a run; samples of another harness have none."""
    return (Words(" · run "), name) if name else ()


def validity(comparison: Comparison) -> list[Phrase]:
    """Say why the machine is not simply trusted, worst reasons first; empty when it is."""
    if comparison.validity.status is Status.VALID:
        return []
    order = list(Status)
    groups: dict[tuple[Status, str], list[Reason]] = {}
    for one in sorted(comparison.validity.reasons, key=lambda one: -order.index(one.status)):
        groups.setdefault((one.status, one.code), []).append(one)
    found = [_reason(group) for group in groups.values()]
    shown = found[:MAX_NAMED]
    if more := len(found[MAX_NAMED:]):
        shown.append((Words(f"… and {more:,} more"),))
    return [(_trust(comparison),), *shown]


def _trust(comparison: Comparison) -> Words:
    if comparison.validity.is_run_invalid:
        return _INVALID
    if comparison.validity.status is Status.INVALID:
        return _PARTLY_INVALID
    codes = {one.code for one in comparison.validity.reasons}
    if codes == {"incomplete"}:
        return _INCOMPLETE
    if not codes & {canaries.CODE, canaries.CODE_WITHOUT_GATE}:
        return _BUSY if codes & pressure.CODES else _DEGRADED
    others = codes - {canaries.CODE, canaries.CODE_WITHOUT_GATE}
    end = ". This, and what else was found of the machine:" if others else ":"
    return Words(_moved_machine(comparison, codes) + end)


def _moved_machine(comparison: Comparison, codes: set[str]) -> str:
    """Say what a move meant for the verdicts: nothing, where the canaries do not gate."""
    has_other_image = any(one.field == "image" for one in comparison.differences)
    moved = _MACHINE_OR_IMAGE_MOVED if has_other_image else _MACHINE_MOVED
    if canaries.CODE not in codes:
        return moved + _MOVED_AND_JUDGED
    return moved + (_MOVED if comparison.interleaved is None else _MOVED_AND_PAIRED)


def exhausted(row: Uncompared) -> Phrase:
    """Say how much memory was in use when it ran out; empty when it did not."""
    found = row.exhausted
    if found is None:
        return ()
    parts: list[Phrase] = []
    if found.host_rss_peak_bytes is not None:
        parts.append((units.size(found.host_rss_peak_bytes), Words(" of host memory")))
    if found.device is not None and found.device.peak_allocated_bytes is not None:
        allocated = units.size(found.device.peak_allocated_bytes)
        parts.append((allocated, Words(" allocated on the device")))
    if found.device is not None and found.device.peak_reserved_bytes is not None:
        parts.append((units.size(found.device.peak_reserved_bytes), Words(" reserved there")))
    return (Words("At the peak until then: "), *joined(parts), Words(".")) if parts else ()


def _reason(group: list[Reason]) -> Phrase:
    """Show the first of a kind whole, and of the others only whose they are, each once."""
    first = group[0]
    whose: Phrase = (Words(" ("), first.workload, Words(")")) if first.workload else ()
    names = dict.fromkeys(one.workload for one in group if one.workload not in {"", first.workload})
    others = joined((name,) for name in names)
    more: Phrase = (Words("; also "), *others) if others else ()
    return (first.code, *whose, Words(": "), Sentence(first.detail), *more)


def names(rows: Iterable[Row]) -> list[str]:
    """Name the workloads of `rows`, each once, in order."""
    return list(dict.fromkeys(row.workload for row in rows))


def named(rows: Iterable[Row]) -> Phrase:
    """Name the workloads of `rows` in a sentence; many are only counted."""
    return joined((name,) for name in names(rows))


def titled(row: Row) -> Phrase:
    """Name one row in a sentence: its workload and its metric."""
    return (row.workload, Words(" "), metric_title(metric(row)))


def joined(phrases: Iterable[Phrase], *, most: int = MAX_NAMED) -> Phrase:
    """Put commas between phrases; beyond the first few they are only counted."""
    every = list(phrases)
    parts: list[str] = []
    for position, phrase in enumerate(every[:most]):
        parts += [Words(", "), *phrase] if position else phrase
    more = len(every) - most
    return (*parts, Words(f" and {more:,} more")) if more > 0 else tuple(parts)

"""The first two lines of a report: pass, act or unknown, with what and how much; then counts."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Row,
    Severity,
    Uncompared,
    is_of_workload,
    severity_of,
)
from ci_perf.model.metrics import STEP_CPU, Unit
from ci_perf.report import (
    advice,
    cells,
    gate_words,
    phrases,
    provenance,
    remarks,
    table_rows,
    units,
)
from ci_perf.report.advice import Topic
from ci_perf.report.escape import Words
from ci_perf.report.phrases import Phrase

# More names of one kind than this do not fit into a line.
_MAX_NAMED = 3
# Reason codes of rows without an answer that were not compared at all, or not to their harm.
_NOT_COMPARED = frozenset({Code.UNTRUSTED, Code.NOT_COMPARABLE, Code.HISTORY_ALONE})
# What a loss and a gain of a unit are called, in the order of naming.
_DIRECTIONS: dict[Unit | None, tuple[str, str]] = {
    Unit.SECOND: ("slower", "faster"),
    Unit.BYTE: ("more memory", "less memory"),
    None: ("worse", "better"),  # of all other units
}


class HeadlineWord(Enum):
    """The first word: whether somebody has to act, as far as anybody can know."""

    PASS = "Pass"  # noqa: S105  a word, not a password
    ACT = "Act"
    UNKNOWN = "Unknown"


ICON = {HeadlineWord.PASS: "✅", HeadlineWord.ACT: "❌", HeadlineWord.UNKNOWN: "❓"}


@dataclass(frozen=True, slots=True)
class _RowGroups:
    """The rows of a comparison by their severity; those that can decide the exit code apart."""

    comparison: Comparison
    gating: dict[Severity, list[Row]]
    others: dict[Severity, list[Row]]

    def of(self, severity: Severity) -> list[Row]:
        """Return the rows of a severity that can decide the exit code, worst first."""
        return table_rows.worst_first(self.gating[severity])

    def with_code(self, severity: Severity, code: Code) -> list[Row]:
        """Return those of them that have one reason code."""
        return [row for row in self.of(severity) if row.code is code]

    @property
    def failed(self) -> list[Row]:
        """Return the workloads that failed, but for those that only a busy machine made late."""
        failed = self.with_code(Severity.FAILED, Code.FAILED)
        return [row for row in failed if not advice.is_late(row, self.comparison)]

    @property
    def late(self) -> list[Row]:
        """Return the workloads that ran out of time on a busy machine."""
        failed = self.of(Severity.FAILED)
        return [row for row in failed if advice.is_late(row, self.comparison)]

    @property
    def suspected(self) -> list[Row]:
        """Return the losses that are suspected from their history alone."""
        return [row for row in self.of(Severity.LIKELY_SLOWER) if signs.is_by_history_alone(row)]

    @property
    def likely(self) -> list[Row]:
        """Return the losses for which more speaks than their history."""
        likely = self.of(Severity.LIKELY_SLOWER)
        return [row for row in likely if not signs.is_by_history_alone(row)]

    @property
    def inconclusive(self) -> list[Row]:
        """Return what was compared, and has no answer."""
        return [row for row in self.of(Severity.INCONCLUSIVE) if row.code not in _NOT_COMPARED]


def word(comparison: Comparison) -> HeadlineWord:
    """Say in one word what the exit code says; 3 asks for action where something must be fixed.

    A run that cannot be trusted, or a workload that ran out of time on a busy machine, says
    nothing of the code.
    """
    return _word(_row_groups(comparison))


def of(comparison: Comparison) -> Phrase:
    """Answer in one line: the word, then the worst of what was found first."""
    groups = _row_groups(comparison)
    said = _word(groups)
    parts = _PARTS[said](groups)
    if said is HeadlineWord.PASS and comparison.gate_changes:
        changed = gate_words.by_kind(comparison.gate_changes).items()
        first = itertools.islice(itertools.starmap(_listed, changed), _MAX_NAMED)
        return (Words("⚠️ Pass, and the gate changes: "), *_joined([*first, *parts]))
    return (Words(f"{ICON[said]} {said.value}: "), *_joined(parts))


def counts(comparison: Comparison) -> Phrase:
    """Count the rows by verdict, and say out of what: suite, machine, workloads and metrics."""
    tally = phrases.tally(comparison.rows)
    workloads = len(phrases.names(comparison.rows))
    measured = sum(not is_of_workload(row) for row in comparison.rows)
    chosen = "selected " if comparison.selection else ""
    counted = f", {units.numbered(workloads, f'{chosen}workload')}"
    if measured:
        counted += f", {units.numbered(measured, 'metric')}"
    machine = comparison.head.machine
    where: Phrase = (Words(" on "), provenance.machine(machine)) if machine else ()
    opening = Words(f"ci_perf: {tally or 'no rows'} (")
    return (opening, comparison.suite, *where, Words(f"{counted})"))


def _row_groups(comparison: Comparison) -> _RowGroups:
    gating, others = defaultdict[Severity, list[Row]](list), defaultdict[Severity, list[Row]](list)
    for row in comparison.rows:
        (gating if row.gate else others)[severity_of(row)].append(row)
    return _RowGroups(comparison, gating, others)


def _word(groups: _RowGroups) -> HeadlineWord:
    code = groups.comparison.exit_code
    if code == ExitCode.OK:
        return HeadlineWord.PASS
    is_broken = groups.failed or groups.with_code(Severity.FAILED, Code.MISSING)
    is_trusted = not groups.comparison.validity.is_run_invalid
    is_act = code == ExitCode.REGRESSED or (is_broken and is_trusted)
    return HeadlineWord.ACT if is_act else HeadlineWord.UNKNOWN


# --- what each answer names


def _pass(groups: _RowGroups) -> Iterable[Phrase]:
    """Say that nothing failed, and what somebody may want to look at all the same."""
    likely, inconclusive = groups.likely, groups.inconclusive
    if lost := groups.of(Severity.REGRESSED):  # `fail_on` lets it pass
        yield from _moved(lost, is_gain=False)
    else:
        is_suspected = bool(likely or groups.suspected)
        proven = " proven" * (is_suspected or bool(inconclusive))
        excluded = "" if is_suspected else _excluded(inconclusive, groups.of(Severity.UNCHANGED))
        yield (Words(f"no regression{proven}{excluded}"),)
    yield from _numerics(groups)
    yield _sized("likely slower", likely)
    yield _sized("suspected from its history alone", groups.suspected)
    yield _named("inconclusive", itertools.filterfalse(signs.has_no_sign, inconclusive))
    yield from _unjudged(groups)
    without_sign = filter(signs.has_no_sign, inconclusive)
    yield _named("inconclusive without a sign of a change", without_sign)
    yield from _moved(groups.of(Severity.IMPROVED), is_gain=True)


def _excluded(undecided: Sequence[Row], unchanged: Sequence[Row]) -> str:
    """Say which losses no row has; nothing where all are decided, or one excludes none."""
    said = [remarks.describe_excluded(row) for row in undecided if isinstance(row, Change)]
    if not said or not all(said):
        return ""
    changes = [row for row in (*undecided, *unchanged) if isinstance(row, Change)]
    widest = max(changes, key=lambda row: row.interval.high if row.interval else 0.0)
    return f", and {remarks.describe_excluded(widest)}"


def _act(groups: _RowGroups) -> Iterable[Phrase]:
    failed, lost = groups.failed, groups.of(Severity.REGRESSED)
    yield _named("out of memory", filter(_is_exhausted, failed))
    yield _named("failed", itertools.filterfalse(_is_exhausted, failed))
    yield from _numerics(groups)
    yield from _moved(lost, is_gain=False)
    yield _named("missing", groups.with_code(Severity.FAILED, Code.MISSING))
    if groups.comparison.exit_code == ExitCode.REGRESSED and not lost:
        # Only `fail_on`, or numerics that gate, end with 1 where nothing has regressed.
        yield from _suspicions(groups)


def _unknown(groups: _RowGroups) -> Iterable[Phrase]:
    said = [part for part in _unanswered(groups) if part]
    return said or [(Words("the notes below say why these numbers decide nothing"),)]


def _unanswered(groups: _RowGroups) -> Iterable[Phrase]:
    if not groups.comparison.rows:
        yield (Words("there is nothing to compare"),)
    if groups.comparison.validity.is_run_invalid:
        yield (Words("this run cannot be trusted"),)
        yield _named("failed or missing", groups.of(Severity.FAILED))
        return
    yield from _numerics(groups)
    yield from _suspicions(groups)
    untrusted, other = (
        groups.with_code(Severity.INCONCLUSIVE, code)
        for code in (Code.UNTRUSTED, Code.NOT_COMPARABLE)
    )
    yield _named("disturbed by the machine", untrusted)
    yield _named("not comparable with the baseline", other)
    is_judged = any(isinstance(row, Change) for row in groups.comparison.rows)
    yield from _unjudged(groups, "not" if is_judged else "nothing was")


_PARTS: dict[HeadlineWord, Callable[[_RowGroups], Iterable[Phrase]]] = {
    HeadlineWord.PASS: _pass,
    HeadlineWord.ACT: _act,
    HeadlineWord.UNKNOWN: _unknown,
}


# --- parts of these


def _suspicions(groups: _RowGroups) -> Iterable[Phrase]:
    """Name what is not proven, and say whether a busy machine is to blame for that."""
    likely = groups.likely
    unproven = [*groups.suspected, *groups.inconclusive]
    # Rows close to their base are named only if there is no row far from it.
    far = [row for row in unproven if signs.is_open_loss(row)] or unproven
    # More budget is promised only to rows far beyond their limit.
    provable = [row for row in likely if _is_cut_short(row)]
    yield _sized("far beyond the limit, and more budget would prove it", _worst(provable))
    yield _sized("likely slower", [row for row in likely if row not in provable])
    unanswered = _worst([*far, *groups.late])
    topics = {advice.find_topic(row, groups.comparison) for row in (*likely, *far)}
    if groups.late or Topic.BUSY_MACHINE in topics:
        busy = "the machine was too busy for a verdict"
        yield _sized(busy, unanswered) if unanswered else (Words(busy),)
    else:
        worse = [row for row in unanswered if signs.looks_worse(row)]
        others = [row for row in unanswered if row not in worse]
        is_required = all(map(signs.lacks_answer, others))
        yield _sized("looks worse, not proven", worse)
        yield _sized("no answer, and one is required" if is_required else "inconclusive", others)


def _unjudged(groups: _RowGroups, extent: str = "not") -> Iterable[Phrase]:
    """Name what is new of workloads of which no metric was compared, by pairs either."""
    judged = {row.workload for row in groups.comparison.rows if isinstance(row, Change)}
    new = [row for row in groups.of(Severity.NEW) if row.workload not in judged]
    tried = [row for row in new if isinstance(row, Uncompared) and row.note]
    lack = f"{extent} judged for lack of a baseline"
    yield _named(lack, [row for row in new if row not in tried])
    yield _named(f"{lack} and of a base that could be launched", tried)


def _numerics(groups: _RowGroups) -> Iterable[Phrase]:
    """Name the workloads that compute other numbers, whether that fails the job or not."""
    severity = Severity.NUMERICS_CHANGED
    changed = table_rows.worst_first([*groups.gating[severity], *groups.others[severity]])
    varying = [row for row in changed if row.code is Code.NUMERICS_VARY]
    yield _named("numerics changed", [row for row in changed if row not in varying])
    yield _named("numerics vary", varying)


def _moved(rows: Sequence[Row], *, is_gain: bool) -> Iterable[Phrase]:
    """Name losses, or gains: first of times, then of memory, then of everything else.

    The CPU time of a step says nothing new where its time has moved as well.
    """
    timed = {row.workload for row in rows if phrases.metric(row) == phrases.STEP_TIME}
    said = [
        row for row in rows if phrases.metric(row) != STEP_CPU.name or row.workload not in timed
    ]
    for unit, names in _DIRECTIONS.items():
        yield _sized(names[is_gain], [row for row in said if _unit(row) is unit])


def _unit(row: Row) -> Unit | None:
    unit = phrases.unit(phrases.metric(row))
    return unit if unit in _DIRECTIONS else None


def _is_cut_short(row: Row) -> bool:
    return isinstance(row, Change) and signs.is_cut_short(row)


def _is_exhausted(row: Row) -> bool:
    return isinstance(row, Uncompared) and row.exhausted is not None


def _worst(rows: Iterable[Row]) -> list[Row]:
    """Pick the first row of every workload."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.workload, row)
    return list(first.values())


def _sized(label: str, rows: Sequence[Row]) -> Phrase:
    """Name the rows with how far each has moved."""
    return _listed(label, (_size(row, is_memory="memory" in label) for row in rows))


def _named(label: str, rows: Iterable[Row]) -> Phrase:
    """Name the workloads of the rows, each once."""
    return _listed(label, ((name,) for name in phrases.names(rows)))


def _listed(label: str, parts: Iterable[Phrase]) -> Phrase:
    listed = phrases.joined(parts, most=_MAX_NAMED)
    return (Words(f"{label}: "), *listed) if listed else ()


def _size(row: Row, *, is_memory: bool) -> Phrase:
    """Show a row as short as it can be understood: "bert +4.1 %" is about its step time."""
    if not isinstance(row, Change):
        return (row.workload,)
    is_plain = row.metric == phrases.STEP_TIME or is_memory
    name: Phrase = (row.workload,) if is_plain else phrases.titled(row)
    if row.code is Code.WORSE_BY_HISTORY and not signs.is_far(row):
        return (*name, Words(f" {phrases.moved(row.metric, row.drift or 1.0)} by its history"))
    return (*name, Words(f" {cells.moved(row)}"))


def _joined(parts: Iterable[Phrase]) -> Phrase:
    phrase: list[str] = []
    for part in parts:
        if part:
            phrase += [Words("; "), *part] if phrase else part
    return tuple(phrase)

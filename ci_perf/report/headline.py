"""The first line of a report: pass, fail or no answer, with what and how much; and its scope."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
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
)
from ci_perf.report.advice import Topic
from ci_perf.report.escape import Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say

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
    """The first word of a report."""

    PASS = "Pass"  # noqa: S105  a word, not a password
    FAIL = "Fail"
    NO_ANSWER = "No answer"


ICON = {HeadlineWord.PASS: "✅", HeadlineWord.FAIL: "❌", HeadlineWord.NO_ANSWER: "❓"}


class _RowGroups:
    """The rows that can decide the exit code, worst first, by what a headline says of them."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        rows = table_rows.worst_first(comparison.rows)
        self.numerics = [row for row in rows if severity_of(row) is Severity.NUMERICS_CHANGED]
        self.by_severity: dict[Severity, list[Row]] = {severity: [] for severity in Severity}
        for row in rows:
            if row.gate:
                self.by_severity[severity_of(row)].append(row)
        failed = self.by_severity[Severity.FAILED]
        self.late = [row for row in failed if advice.is_late(row, comparison)]
        self.missing = [row for row in failed if row.code is Code.MISSING]
        self.failed = [row for row in failed if row not in self.late + self.missing]
        self.lost = self.by_severity[Severity.REGRESSED]
        likely = self.by_severity[Severity.LIKELY_SLOWER]
        self.suspected = [row for row in likely if signs.is_by_history_alone(row)]
        self.likely = [row for row in likely if row not in self.suspected]
        undecided = self.by_severity[Severity.INCONCLUSIVE]
        self.untrusted = [row for row in undecided if row.code is Code.UNTRUSTED]
        self.incomparable = [row for row in undecided if row.code is Code.NOT_COMPARABLE]
        self.undecided = [row for row in undecided if row.code not in _NOT_COMPARED]


def choose_word(comparison: Comparison) -> HeadlineWord:
    """Say in a word what the exit code says; 3 is a failure where a workload failed or is missing.

    A run that cannot be trusted, or a workload that ran out of time on a busy machine, says
    nothing of the code.
    """
    if comparison.exit_code == ExitCode.OK:
        return HeadlineWord.PASS
    is_broken = not comparison.validity.is_run_invalid and any(
        row.gate and severity_of(row) is Severity.FAILED and not advice.is_late(row, comparison)
        for row in comparison.rows
    )
    is_failure = is_broken or comparison.exit_code == ExitCode.REGRESSED
    return HeadlineWord.FAIL if is_failure else HeadlineWord.NO_ANSWER


def is_calm(comparison: Comparison) -> bool:
    """Whether a comparison passes, and neither its numerics nor its gate have changed."""
    return (
        choose_word(comparison) is HeadlineWord.PASS
        and not comparison.gate_changes
        and all(severity_of(row) is not Severity.NUMERICS_CHANGED for row in comparison.rows)
    )


def summarise(comparison: Comparison) -> Phrase:
    """Answer in one line: the word, then the worst of what was found first."""
    groups, word = _RowGroups(comparison), choose_word(comparison)
    opening, parts = f"{ICON[word]} {word.value}: ", list[Phrase]()
    if word is HeadlineWord.PASS:
        if not is_calm(comparison):
            opening = "⚠️ Pass, with a warning: "
        if comparison.gate_changes:
            opening = "⚠️ Pass, and the gate changes: "
            changed = gate_words.group_by_kind(comparison.gate_changes).items()
            parts += itertools.islice(itertools.starmap(_list, changed), _MAX_NAMED)
        parts += _explain_pass(groups)
    elif word is HeadlineWord.FAIL:
        parts += _explain_failure(groups)
    else:
        parts += _explain_no_answer(groups)
    parts = [part for part in parts if part]
    return (Words(opening), *phrases.joined(parts or [say("notes_below")], most=99, between="; "))


def tell_scope(comparison: Comparison) -> Phrase:
    """Say of what a report is: suite, machine, commits, workloads and metrics."""
    machine = comparison.head.machine
    return say(
        "scope",
        comparison=comparison,
        base=provenance.find_base_source(comparison),
        commit=provenance.commit,
        has_commits=provenance.has_commits(comparison),
        machine=provenance.machine(machine) if machine else "",
        workloads=len(phrases.names(comparison.rows)),
        metrics=sum(not is_of_workload(row) for row in comparison.rows),
    )


# --- what each answer names


def _explain_pass(groups: _RowGroups) -> Iterator[Phrase]:
    """Say that nothing failed, and what somebody may want to look at all the same."""
    likely, undecided = groups.likely, groups.undecided
    yield from _list_numerics(groups)
    if groups.lost:  # `fail_on` lets it pass
        yield from _list_moves(groups.lost, is_gain=False)
    else:
        is_suspected = bool(likely or groups.suspected)
        proven = " proven" if is_suspected or undecided else ""
        excluded = "" if is_suspected else _name_excluded(groups)
        yield (Words(f"no regression{proven}{excluded}"),)
    yield _list_sizes("likely slower", likely)
    yield _list_sizes("suspected from its history alone", groups.suspected)
    without_sign = [row for row in undecided if signs.has_no_sign(row)]
    yield _list_names("inconclusive", [row for row in undecided if row not in without_sign])
    yield from _list_unjudged(groups)
    yield _list_names("inconclusive without a sign of a change", without_sign)
    yield from _list_moves(groups.by_severity[Severity.IMPROVED], is_gain=True)


def _name_excluded(groups: _RowGroups) -> str:
    """Say which losses no row has; nothing where all are decided, or one excludes none."""
    undecided = [row for row in groups.undecided if isinstance(row, Change)]
    if not undecided or not all(map(remarks.describe_excluded, undecided)):
        return ""
    unchanged = groups.by_severity[Severity.UNCHANGED]
    changes = [row for row in (*undecided, *unchanged) if isinstance(row, Change)]
    widest = max(changes, key=lambda row: row.interval.high if row.interval else 0.0)
    return f", and {remarks.describe_excluded(widest)}"


def _explain_failure(groups: _RowGroups) -> Iterator[Phrase]:
    exhausted = [r for r in groups.failed if isinstance(r, Uncompared) and r.exhausted is not None]
    yield _list_names("out of memory", exhausted)
    yield _list_names("does not run", [row for row in groups.failed if row not in exhausted])
    yield from _list_numerics(groups)
    yield from _list_moves(groups.lost, is_gain=False)
    yield _list_names("missing", groups.missing)
    if groups.comparison.exit_code == ExitCode.REGRESSED and not groups.lost:
        # Only `fail_on`, or numerics that gate, end with 1 where nothing has regressed.
        yield from _list_suspicions(groups)


def _explain_no_answer(groups: _RowGroups) -> Iterator[Phrase]:
    if not groups.comparison.rows:
        yield (Words("there is nothing to compare"),)
    if groups.comparison.validity.is_run_invalid:
        yield (Words("this run cannot be trusted"),)
        yield _list_names("failed or missing", groups.by_severity[Severity.FAILED])
        return
    yield from _list_numerics(groups)
    yield from _list_suspicions(groups)
    yield _list_names("disturbed by the machine", groups.untrusted)
    yield _list_names("not comparable with the baseline", groups.incomparable)
    yield from _list_unjudged(groups)


# --- parts of these


def _list_suspicions(groups: _RowGroups) -> Iterator[Phrase]:
    """Name what is not proven, and say whether a busy machine is to blame for that."""
    unproven = [*groups.suspected, *groups.undecided]
    # Rows close to their base are named only if there is no row far from it.
    far = [row for row in unproven if signs.is_open_loss(row)] or unproven
    yield _list_sizes("likely slower", groups.likely)
    unanswered = _pick_worst([*far, *groups.late])
    topics = {advice.find_topic(row, groups.comparison) for row in (*groups.likely, *far)}
    if groups.late or Topic.BUSY_MACHINE in topics:
        busy = "the machine was too busy for a verdict"
        yield _list_sizes(busy, unanswered) or (Words(busy),)
        return
    worse = [row for row in unanswered if signs.looks_worse(row)]
    others = [row for row in unanswered if row not in worse]
    is_required = all(map(signs.lacks_answer, others))
    yield _list_sizes("looks worse, not proven", worse)
    yield _list_sizes("required, and undecided" if is_required else "inconclusive", others)


def _list_unjudged(groups: _RowGroups) -> Iterator[Phrase]:
    """Name what is new of workloads of which no metric was compared, by pairs either."""
    judged = {row.workload for row in groups.comparison.rows if isinstance(row, Change)}
    new = [row for row in groups.by_severity[Severity.NEW] if row.workload not in judged]
    first = [row for row in new if row.code is Code.ACCEPTED]
    tried = [row for row in new if isinstance(row, Uncompared) and row.note]
    yield _list_names("first baselines, nothing to compare with", first)
    yield _list_names("no baseline yet", [row for row in new if row not in first + tried])
    yield _list_names("no baseline, and the base could not be launched", tried)


def _list_numerics(groups: _RowGroups) -> Iterator[Phrase]:
    """Name the workloads that compute other numbers, whether that fails the job or not."""
    varying = [row for row in groups.numerics if row.code is Code.NUMERICS_VARY]
    yield _list_names("numerics changed", [row for row in groups.numerics if row not in varying])
    yield _list_names("numerics vary", varying)


def _list_moves(rows: Sequence[Row], *, is_gain: bool) -> Iterator[Phrase]:
    """Name losses, or gains: first of times, then of memory, then of everything else.

    The CPU time of a step says nothing new where its time has moved as well.
    """
    timed = {row.workload for row in rows if phrases.metric(row) == phrases.STEP_TIME}
    groups: dict[Unit | None, list[Row]] = {unit: [] for unit in _DIRECTIONS}
    for row in rows:
        if phrases.metric(row) != STEP_CPU.name or row.workload not in timed:
            unit = phrases.unit(phrases.metric(row))
            groups[unit if unit in groups else None].append(row)
    for unit, names in _DIRECTIONS.items():
        yield _list_sizes(names[is_gain], groups[unit])


def _pick_worst(rows: Iterable[Row]) -> list[Row]:
    """Pick the first row of every workload."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.workload, row)
    return list(first.values())


def _list_sizes(label: str, rows: Iterable[Row]) -> Phrase:
    """Name the rows with how far each has moved."""
    return _list(label, (_name_size(row, is_memory="memory" in label) for row in rows))


def _list_names(label: str, rows: Iterable[Row]) -> Phrase:
    """Name the workloads of the rows, each once."""
    return _list(label, ((name,) for name in phrases.names(rows)))


def _list(label: str, parts: Iterable[Phrase]) -> Phrase:
    listed = phrases.joined(parts, most=_MAX_NAMED)
    return (Words(f"{label}: "), *listed) if listed else ()


def _name_size(row: Row, *, is_memory: bool) -> Phrase:
    """Show a row as short as it can be understood: "bert +4.1 %" is about its step time."""
    if not isinstance(row, Change):
        return (row.workload,)
    is_plain = row.metric == phrases.STEP_TIME or is_memory
    name: Phrase = (row.workload,) if is_plain else phrases.titled(row)
    if row.code is Code.WORSE_BY_HISTORY and not signs.is_far(row):
        return (*name, Words(f" {phrases.moved(row.metric, row.drift or 1.0)} by its history"))
    return (*name, Words(f" {cells.moved(row)}"))

"""What to do next: one sentence per topic, each with the exact command."""

from collections.abc import Callable, Iterable, Sequence

from ci_perf.errors import ExitCode
from ci_perf.model import samples
from ci_perf.model.comparison import (
    NUMERICS_VARY,
    Change,
    Comparison,
    Numerics,
    Row,
    Severity,
    Uncompared,
    is_of_workload,
    severity_of,
)
from ci_perf.model.environment import is_same
from ci_perf.report import (
    cells,
    commands,
    phrases,
    provenance,
    table_rows,
    undecided,
    units,
)
from ci_perf.report.escape import Command, Sentence, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.undecided import Need, Topic

# A workload with such a row is accepted with a reason, or not at all.
_BLAMES = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED})
_UNRECORDED = frozenset({Severity.NEW, Severity.INCOMPARABLE})
_ACCEPTED = frozenset({Severity.NUMERICS_CHANGED, Severity.REGRESSED, Severity.IMPROVED})
_SMALLER = "a smaller batch (gradient accumulation keeps its effective size)"
_CHECKPOINTING = "activation checkpointing (`torch.utils.checkpoint`)"
_OUT_OF_MEMORY = {
    "device": f"the GPU ran out of memory. Use {_SMALLER}, mixed precision (AMP), or "
    f"{_CHECKPOINTING}. If much memory is reserved and little is allocated, set "
    '`allocator = "expandable_segments:True"` in suite.toml; run.json has the summary of the '
    "allocator.",
    "host": f"the host ran out of memory. Use {_SMALLER}, fewer loader workers, or "
    f"{_CHECKPOINTING}, or give the runner more memory.",
    "limit": "a process reached `memory_limit_bytes` of suite.toml, which limits address space "
    f"and not memory in use. Raise it, or use {_SMALLER}.",
}


def next_steps(comparison: Comparison) -> list[Phrase]:
    """Say what to do, worst first; empty where there is nothing to do."""
    is_of_samples = comparison.suite == samples.SUITE and not comparison.head.run
    steps = _STEPS_OF_SAMPLES if is_of_samples else _STEPS
    if not comparison.rows and is_of_samples:
        return [(Words("There is nothing to judge: the samples contain no workload."),)]
    if not comparison.rows:
        return [_look_at_suite(comparison)]
    groups = _topics(comparison, is_of_samples=is_of_samples)
    return [step(groups[topic], comparison) for topic, step in steps.items() if topic in groups]


def _topics(comparison: Comparison, *, is_of_samples: bool) -> dict[Topic, list[Row]]:
    """Group the rows by the topic of their advice, worst first."""
    groups: dict[Topic, list[Row]] = {}
    if comparison.validity.is_run_invalid:
        groups[Severity.INVALID] = []
    if comparison.stale is not None:
        groups["stale"] = []
    rows = comparison.rows if is_of_samples else _without_blamed(comparison.rows)
    topics = [
        (row, _topic_of_samples(row) if is_of_samples else _topic(row, comparison))
        for row in table_rows.worst_first(rows)
    ]
    for row, topic in _without_contradictions(topics):
        groups.setdefault(topic, []).append(row)
    return groups


def _topic(row: Row, comparison: Comparison) -> Topic:
    severity = severity_of(row)
    if severity in {Severity.INCONCLUSIVE, Severity.LIKELY_SLOWER} or (
        severity is Severity.UNCONFIRMED and undecided.is_tried(row)
    ):
        return undecided.need(row, comparison)
    return Need.IDLE_MACHINE if undecided.is_late(row, comparison) else severity


def _without_contradictions(
    topics: Sequence[tuple[Row, Topic]],
) -> Iterable[tuple[Row, Topic]]:
    """Drop rows whose need contradicts a surer need of the same workload."""
    needs: dict[str, set[Topic]] = {}
    for row, topic in topics:
        needs.setdefault(row.workload, set()).add(topic)
    for row, topic in topics:
        first = next((need for need in undecided.EXCLUSIVE if need in needs[row.workload]), None)
        if topic is first or topic not in undecided.EXCLUSIVE:
            yield row, topic


def _topic_of_samples(row: Row) -> Topic:
    """Tell rows that need finer numbers from those that more launches decide."""
    return Need.MORE_DIGITS if row.code == "rounded" else severity_of(row)


def _without_blamed(rows: Iterable[Row]) -> list[Row]:
    """Leave out gains, and rows without a history, of a workload that is blamed.

    To accept them is no advice before somebody has looked, and its own advice accepts them too.
    """
    every = list(rows)
    blamed = set(phrases.names(row for row in every if severity_of(row) in _BLAMES))
    return [
        row
        for row in every
        if row.workload not in blamed or severity_of(row) not in _UNRECORDED | {Severity.IMPROVED}
    ]


def _look_at_suite(comparison: Comparison) -> Phrase:
    opening = Words("Neither side has a workload. List the workloads of the suite: ")
    return (opening, commands.listing(comparison))


def _fix_failures(rows: list[Row], _: Comparison) -> Phrase:
    exhausted: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Uncompared) and row.exhausted:
            exhausted.setdefault(row.exhausted.kind, []).append(row)
    said: list[str] = [
        Words("Failed: "),
        *phrases.named(rows),
        Words(". The last output is below."),
    ]
    for kind, without_memory in sorted(exhausted.items()):
        said += [Words(" "), *phrases.named(without_memory), Words(f": {_OUT_OF_MEMORY[kind]}")]
    return tuple(said)


def _explain_numbers(rows: list[Row], comparison: Comparison) -> Phrase:
    numerics = [row for row in rows if isinstance(row, Numerics)]
    return (
        Words("Numerics changed: "),
        *phrases.joined(_numbers(row) for row in numerics),
        Words(
            ". The losses or the output differ from those of the base. Check this before the times "
            "below: a faster step that computes something else is no improvement. If the change is "
            "intended, accept it with a reason: "
        ),
        *_accept(rows, comparison, reason=True, append=_are_kept(rows, comparison)),
    )


def _are_kept(rows: Iterable[Row], comparison: Comparison) -> bool:
    """Whether `accept` alone would keep the baseline of one of these workloads as it is."""
    changed = (row for row in comparison.rows if row.gate and severity_of(row) in _ACCEPTED)
    return not set(phrases.names(changed)).issuperset(phrases.names(rows))


def _make_them_agree(rows: list[Row], _: Comparison) -> Phrase:
    numerics = [row for row in rows if isinstance(row, Numerics)]
    return (
        Words("Numerics vary between processes on the same machine with the same seed: "),
        *phrases.joined(_numbers(row) for row in numerics),
        Words(". Seed every random source, or explain the variation with `varies=`: "),
        Command('Workload(..., varies="…")'),
    )


def _fix_or_accept(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Regressed: "),
        *phrases.named(rows),
        Words(
            ". Fix it, or accept the new numbers and commit the baseline that this command writes: "
        ),
        *_accept(rows, comparison, reason=True),
    )


def _restore_or_remove(rows: list[Row], comparison: Comparison) -> Phrase:
    if not any(is_of_workload(row) for row in rows):
        return (
            Words("Missing, though the baseline has it: "),
            *phrases.joined(phrases.titled(row) for row in rows),
            Words(". Restore it, or accept that it is gone: "),
            *_accept(rows, comparison, reason=True),
        )
    return (
        Words("Missing, though it has a baseline: "),
        *phrases.named(rows),
        Words(". Restore it"),
        *_how_to_remove(comparison.base.label, rows),
    )


def _measure_again(rows: list[Row], comparison: Comparison) -> Phrase:
    again = Words(
        "Measure again on a quiet machine, up to the end, before you look for a cause in the code"
    )
    if comparison.validity.is_run_invalid:
        return (again, Words("."))
    return (again, Words(": "), *phrases.named(rows), Words("."))


def _confirm(rows: list[Row], comparison: Comparison) -> Phrase:
    is_green = comparison.exit_code == ExitCode.OK
    effect = ", and does not fail the job" if is_green else ""
    return (
        Words("Unconfirmed: "),
        *phrases.joined(_suspicion(row) for row in rows),
        Words(
            f". This is suspected, not proven{effect}. To decide, launch base and head in turns: "
        ),
        commands.check_by_pairs(rows, comparison, longer=True),
        Words(" (in the Action: the input "),
        Command("against"),
        Words(")."),
    )


def _suspicion(row: Row) -> Phrase:
    moved = f" {cells.moved(row)}" if isinstance(row, Change) else ""
    return (*phrases.titled(row), Words(moved))


def _refresh(_: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words(
            "Refresh the baseline, or every later change will be suspected, too. On the main "
            "branch, on this machine, run "
        ),
        commands.measure(comparison),
        Words(" and then "),
        commands.replace(comparison),
    )


def _record(rows: list[Row], comparison: Comparison) -> Phrase:
    tried = any(isinstance(row, Uncompared) and row.note for row in rows)
    return (
        Words("No baseline yet: "),
        *phrases.joined(_newcomer(row) for row in _once(rows)),
        Words(
            ". If the base should have run, mend that first. Then record" if tried else ". Record"
        ),
        Words(" one and commit the file that this command writes: "),
        *_accept(rows, comparison, reason=False),
    )


def _once(rows: Iterable[Row]) -> Iterable[Row]:
    """Take one row of each workload: all its rows have the same note."""
    return {row.workload: row for row in rows}.values()


def _newcomer(row: Row) -> Phrase:
    why: Phrase = ()
    if isinstance(row, Uncompared) and row.note:
        why = (Words(" (the base could not be launched: "), Sentence(row.note), Words(")"))
    return (row.workload, *why)


def _record_here(rows: list[Row], comparison: Comparison) -> Phrase:
    base, head = comparison.base.machine, comparison.head.machine
    cause: Phrase = (Words("the table says why"),)
    is_other = base is not None and head is not None and not is_same(base, head)
    if is_other:
        there, here = provenance.machines(base, head)
        cause = (Words("baseline: "), there, Words(", here: "), here)
    judged = "" if any(row.gate for row in rows) else ", so judged by pairs"
    return (
        Words(f"Not comparable with the baseline{judged}: "),
        *phrases.named(rows),
        Words(" ("),
        *cause,
        Words(
            "). Compare the same workload on the same machine, or record a new baseline and commit "
            "it: "
        ),
        *_accept(rows, comparison, reason=not is_other),
    )


def _keep_gain(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Improved: "),
        *phrases.named(rows),
        Words(". Accept the new numbers, or a later change may lose the gain unnoticed: "),
        *_accept(rows, comparison, reason=False),
    )


def _accept(
    rows: list[Row], comparison: Comparison, *, reason: bool, append: bool = False
) -> Phrase:
    """Give the command that accepts rows; numbers of a busy machine it may refuse."""
    is_busy = any(undecided.is_busy(row, comparison) for row in rows)
    refused = (Words(" (it refuses numbers of a very busy machine: check again then)"),)
    command = commands.accept(rows, comparison, reason=reason, append=append)
    return (command, *(refused if is_busy else ()))


# Worst first. Warnings and unchanged rows need no action.
_STEPS: dict[Topic, Callable[[list[Row], Comparison], Phrase]] = {
    Severity.FAILED: _fix_failures,
    Severity.NUMERICS_CHANGED: _explain_numbers,
    Severity.NUMERICS_VARY: _make_them_agree,
    Severity.REGRESSED: _fix_or_accept,
    Severity.UNCONFIRMED: _confirm,
    Need.LAUNCHABLE_BASE: undecided.launch_the_base,
    Severity.MISSING: _restore_or_remove,
    Severity.INVALID: _measure_again,
    **undecided.STEPS,
    "stale": _refresh,
    Severity.NEW: _record,
    Severity.INCOMPARABLE: _record_here,
    Severity.IMPROVED: _keep_gain,
}


def _fix_or_record(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(
        ". Fix it. If the change is intended, use these samples as those of the next base."
    )
    return (Words("Regressed: "), *phrases.named(rows), ending)


def _sample_again(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(". Sample it again, or remove it from the history.")
    return (
        Words("Missing on the head: "),
        *phrases.joined(phrases.titled(row) for row in rows),
        ending,
    )


def _sample_pairs(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(
        ". Launch base and head in turns in one job, and give them as `pairs` (or --pair): 6 "
        "pairs decide a clear case, 18 a close one."
    )
    opening = Words(f"{severity_of(rows[0]).value.capitalize()}: ")
    return (opening, *phrases.named(rows), ending)


def _sample_base(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(". Sample the base, too.")
    return (
        Words("Only on the head: "),
        *phrases.joined(phrases.titled(row) for row in rows),
        ending,
    )


# ci-perf launched nothing here, so none of its commands measures again or accepts.
_STEPS_OF_SAMPLES: dict[Topic, Callable[[list[Row], Comparison], Phrase]] = {
    Severity.REGRESSED: _fix_or_record,
    Severity.UNCONFIRMED: _sample_pairs,
    Severity.MISSING: _sample_again,
    Severity.LIKELY_SLOWER: _sample_pairs,
    Severity.INCONCLUSIVE: _sample_pairs,
    Need.MORE_DIGITS: undecided.write_more_digits,
    Severity.NEW: _sample_base,
}


def _numbers(row: Numerics) -> Phrase:
    """Name the first numbers that differ: a loss says more than a percentage."""
    shown = cells.shown(row)
    if row.difference is None:
        return (row.workload, Words(f" ({shown.change})"))
    limit = "" if row.code == NUMERICS_VARY else f", limit {units.limit(row.tolerance)}"
    pair = f"{cells.which(row)}: {shown.base} → {shown.head}"
    return (row.workload, Words(f" ({pair}, {shown.change}{limit})"))


def _how_to_remove(base: str, rows: Iterable[Row]) -> Phrase:
    """Name the baseline files to delete. A side is labelled with its folder, or its run file."""
    if base.endswith(".json"):
        return (Words("."),)
    meant = Words("; if you removed it on purpose, delete its baseline in the same pull request: ")
    return (meant, commands.git_rm(rows, base))

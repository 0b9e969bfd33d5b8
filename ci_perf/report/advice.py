"""What to do next: one sentence per kind of finding, each with the exact command."""

import shlex
from collections.abc import Callable, Iterable

from ci_perf.judge import canaries, numerics
from ci_perf.model import samples
from ci_perf.model.comparison import Change, Comparison, Numerics, Row, Uncompared
from ci_perf.report import rows as tables
from ci_perf.report import standings, units, words
from ci_perf.report.escape import Command, Words, clean
from ci_perf.report.standings import Standing
from ci_perf.report.words import Phrase

# What a first run of `ci-perf check --processes N` should at least double.
_USUAL_PROCESSES = 5
_USUAL_BASELINES = "baselines"
_MAX_NAME_CHARS = 200
# Inconclusive between unchanged and improved: nobody has to measure that again.
_ASKS_NOTHING = "not_worse"
_OUT_OF_MEMORY = {
    "device": "the GPU ran out of memory: use a smaller batch, or, where much is reserved and "
    "little allocated, another `allocator` in suite.toml; run.json has its summary.",
    "host": "the host ran out of memory: use a smaller batch or fewer loader workers, or give the "
    "runner more memory.",
    "limit": "a process reached `memory_limit_bytes` of suite.toml, which counts address space "
    "and not use: raise it, or use a smaller batch.",
}


def next_steps(comparison: Comparison) -> list[Phrase]:
    """Say what to do, worst first; empty when nothing is to do."""
    is_of_samples = comparison.suite == samples.SUITE and not comparison.head.run
    steps = _STEPS_OF_SAMPLES if is_of_samples else _STEPS
    if not comparison.rows and is_of_samples:
        return [(Words("There is nothing to judge: see what was left out, and why."),)]
    if not comparison.rows:
        return [_look_at_suite(comparison)]
    groups: dict[Standing, list[Row]] = {}
    if standings.is_invalid(comparison):
        groups[Standing.INVALID] = []
    for row in tables.worst_first(comparison.rows):
        if row.code != _ASKS_NOTHING:
            groups.setdefault(standings.of(row), []).append(row)
    return [step(groups[found], comparison) for found, step in steps.items() if found in groups]


def _look_at_suite(comparison: Comparison) -> Phrase:
    listing = Command(f"ci-perf list --suite {_quoted(comparison.suite)}")
    return (Words("Neither side has a workload. See what the suite holds: "), listing)


def _fix_failures(rows: list[Row], _: Comparison) -> Phrase:
    exhausted: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Uncompared) and row.exhausted:
            exhausted.setdefault(row.exhausted.kind, []).append(row)
    said: list[str] = [Words("Failed: "), *_named(rows), Words(". Fix what the output below says.")]
    for kind, found in sorted(exhausted.items()):
        said += [Words(" "), *_named(found), Words(f": {_OUT_OF_MEMORY[kind]}")]
    return tuple(said)


def _explain_numbers(rows: list[Row], comparison: Comparison) -> Phrase:
    found = [row for row in rows if isinstance(row, Numerics)]
    return (
        Words("Numerics changed: "),
        *words.joined(_numbers(row) for row in found),
        Words(
            ". The losses or the output are not those of the baseline: look at this before any "
            "time below, for a step that is faster and wrong is no gain. If it is meant, accept it "
            "and say why: "
        ),
        _accept(rows, comparison, reason=True, append=not any(row.gate for row in found)),
    )


def _make_them_agree(rows: list[Row], _: Comparison) -> Phrase:
    found = [row for row in rows if isinstance(row, Numerics)]
    return (
        Words("Numerics vary from process to process, on the same machine and seed: "),
        *words.joined(_numbers(row) for row in found),
        Words(
            ". Use the seed for everything that is random, or say in the workload why they cannot "
            "agree: "
        ),
        Command('Workload(..., varies="…")'),
    )


def _fix_or_accept(rows: list[Row], comparison: Comparison) -> Phrase:
    changes = [row for row in rows if isinstance(row, Change)]
    return (
        Words("Regressed: "),
        *words.joined(_size(row) for row in changes),
        Words(". Fix it, or accept the new numbers and commit the baseline that this writes: "),
        _accept(rows, comparison, reason=True),
    )


def _restore_or_remove(rows: list[Row], comparison: Comparison) -> Phrase:
    if not any(standings.is_whole(row) for row in rows):
        return (
            Words("Missing, though the baseline has it: "),
            *words.joined(_metric(row) for row in rows),
            Words(". Restore it, or accept that it is gone: "),
            _accept(rows, comparison, reason=True),
        )
    return (
        Words("Missing, though there is a baseline: "),
        *_named(rows),
        Words(". Restore it"),
        *_how_to_remove(comparison.base.label, rows),
    )


def _measure_again(rows: list[Row], comparison: Comparison) -> Phrase:
    again = Words(
        "Measure again, on a quiet machine and to the end, before looking for a cause in the code"
    )
    if standings.is_invalid(comparison):
        return (again, Words("."))
    return (again, Words(": "), *_named(rows), Words("."))


def _measure_more(rows: list[Row], comparison: Comparison) -> Phrase:
    moved = [row for row in rows if row.code == canaries.CODE]
    waiting = _wait_for_the_machine(moved, comparison) if moved else ()
    rows = [row for row in rows if row.code != canaries.CODE]
    if not rows:
        return waiting
    counts = [row.head_processes for row in rows if isinstance(row, Change)]
    processes = 2 * max([_USUAL_PROCESSES, *counts])
    again = ["ci-perf", "check", *_few(rows), "--suite", _quoted(comparison.suite)]
    return (
        Words("Inconclusive: "),
        *_named(rows),
        Words(". Measure again on a quieter machine, or with more processes: "),
        Command(" ".join([*again, "--processes", str(processes), *_baselines(comparison)])),
        *((Words(". "), *waiting) if waiting else ()),
    )


def _wait_for_the_machine(rows: list[Row], _: Comparison) -> Phrase:
    return (
        Words("Inconclusive, because the machine moved: "),
        *_named(rows),
        Words(
            ". Measure again when it is as it was. If it will stay as it is now, measure what is "
            "on the main branch here, and accept that as the new baseline."
        ),
    )


def _confirm(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(
        ". Suspected, not proven, and no reason to fail: see whether the next run agrees."
    )
    return (Words("Unconfirmed: "), *_named(rows), ending)


def _record(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("No baseline yet: "),
        *_named(rows),
        Words(". Record one and commit the file that this writes: "),
        _accept(rows, comparison, reason=False),
    )


def _record_here(rows: list[Row], comparison: Comparison) -> Phrase:
    base, head = comparison.base.machine, comparison.head.machine
    cause: Phrase = (Words("see the notes below"),)
    if base is not None and base != head:
        cause = (words.machine(base), Words(" there, "), words.machine(head), Words(" here"))
    return (
        Words("Not comparable with the baseline: "),
        *_named(rows),
        Words(" ("),
        *cause,
        Words("). Compare like with like, or record a baseline for what is here and commit it: "),
        _accept(rows, comparison, reason=base == head),
    )


def _keep_gain(rows: list[Row], comparison: Comparison) -> Phrase:
    return (
        Words("Improved: "),
        *_named(rows),
        Words(". Keep the gain by accepting it, or the next change may lose it unseen: "),
        _accept(rows, comparison, reason=False),
    )


# Worst first. Warnings and unchanged rows ask nothing of anybody.
_STEPS: dict[Standing, Callable[[list[Row], Comparison], Phrase]] = {
    Standing.FAILED: _fix_failures,
    Standing.NUMERICS_CHANGED: _explain_numbers,
    Standing.NUMERICS_VARY: _make_them_agree,
    Standing.REGRESSED: _fix_or_accept,
    Standing.MISSING: _restore_or_remove,
    Standing.INVALID: _measure_again,
    Standing.INCONCLUSIVE: _measure_more,
    Standing.UNCONFIRMED: _confirm,
    Standing.NEW: _record,
    Standing.INCOMPARABLE: _record_here,
    Standing.IMPROVED: _keep_gain,
}


def _fix_or_record(rows: list[Row], _: Comparison) -> Phrase:
    changes = [row for row in rows if isinstance(row, Change)]
    ending = Words(
        ". Fix it, or, if it is meant, let the next samples of the base be those of now."
    )
    return (Words("Regressed: "), *words.joined(_size(row) for row in changes), ending)


def _sample_again(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(". Sample what is gone, or take it out of the history.")
    return (Words("Missing on the head: "), *words.joined(_metric(row) for row in rows), ending)


def _sample_pairs(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(
        ". Launch base and head in turns in one job, and give them as `pairs` (or --pair): 4 "
        "decide what is clear, 18 what is close."
    )
    found = Words(f"{standings.of(rows[0]).value.capitalize()}: ")
    return (found, *_named(rows), ending)


def _sample_base(rows: list[Row], _: Comparison) -> Phrase:
    ending = Words(". Sample the base, too.")
    return (Words("Only on the head: "), *words.joined(_metric(row) for row in rows), ending)


# Nothing of ours was launched, so that no command of ours would measure it again or accept it.
_STEPS_OF_SAMPLES: dict[Standing, Callable[[list[Row], Comparison], Phrase]] = {
    Standing.REGRESSED: _fix_or_record,
    Standing.MISSING: _sample_again,
    Standing.INCONCLUSIVE: _sample_pairs,
    Standing.UNCONFIRMED: _sample_pairs,
    Standing.NEW: _sample_base,
}


def _named(rows: Iterable[Row]) -> Phrase:
    return words.joined((name,) for name in words.names(rows))


def _metric(row: Row) -> Phrase:
    return (row.workload, Words(" "), words.metric_title(words.metric(row)))


def _size(row: Change) -> Phrase:
    allowed = f"limit {units.limit(row.limit)}" if row.limit else "must not grow"
    return (*_metric(row), Words(f" {tables.moved(row)} ({allowed})"))


def _numbers(row: Numerics) -> Phrase:
    """Name the first numbers that differ: a loss says more than a percentage."""
    shown = tables.shown(row)
    if row.difference is None:
        return (row.workload, Words(f" ({shown.change})"))
    limit = "" if row.code == numerics.VARY else f", limit {units.limit(row.tolerance)}"
    pair = f"{tables.which(row)}: {shown.base} → {shown.head}"
    return (row.workload, Words(f" ({pair}, {shown.change}{limit})"))


def _accept(
    rows: Iterable[Row], comparison: Comparison, *, reason: bool, append: bool = False
) -> Command:
    """Spell the command for the very run that was judged: another file may hold other numbers."""
    named = [part for name in _few(rows) for part in ("--workload", name)]
    why = ["--append"] if append else []
    why += ["--reason", '"…"'] if reason else []
    run = _quoted(comparison.head.label)
    return Command(" ".join(["ci-perf", "accept", run, *named, *_baselines(comparison), *why]))


def _baselines(comparison: Comparison) -> list[str]:
    """Name the folder of the baselines where it is not the usual one: ROOT/MACHINE/SUITE."""
    root, *below = comparison.base.label.rsplit("/", 2)
    if len(below) < 2 or comparison.base.label.endswith(".json") or root == _USUAL_BASELINES:
        return []
    return ["--baselines", _quoted(root)]


def _how_to_remove(base: str, rows: Iterable[Row]) -> Phrase:
    """Name the baseline files to delete. A side is labelled with its folder, or its run file."""
    if base.endswith(".json"):
        return (Words("."),)
    missing = words.names(row for row in rows if standings.is_whole(row))
    paths = [_quoted(f"{base}/{name}.json") for name in missing[: words.MAX_NAMED]]
    git_rm = Command(" ".join(["git", "rm", *paths]))
    return (Words("; if the removal is meant, do this in the pull request too: "), git_rm)


def _few(rows: Iterable[Row]) -> list[str]:
    """Name the workloads for a command line; none, which means all, when there are many."""
    found = [_quoted(name) for name in words.names(rows)]
    return found if len(found) <= words.MAX_NAMED else []


def _quoted(name: str) -> str:
    return shlex.quote(clean(name, limit=_MAX_NAME_CHARS))

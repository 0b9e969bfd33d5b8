"""Where numbers come from: machines, commits, sessions, and how base and head were interleaved."""

import re
from collections.abc import Iterator

import msgspec

from ci_perf.judging.comparability import NONE
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import GpuMachine, Machine
from ci_perf.model.run import Source
from ci_perf.report import same_program
from ci_perf.report.escape import Phrase, Sentence, Words, clean
from ci_perf.report.sentences import say

# What stands for a commit or a branch that nobody knows, as of samples.
_UNKNOWN = "unknown"
_SHORT_SHA = 7
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
# By then a machine has had updates.
_OLD_DAYS = 30
_MAX_DIFFERENCES = 20
_MAX_NOTES = 20


def machine(known: Machine | None) -> str:
    """Name a machine class."""
    if known is None:
        return "unknown machine"
    if isinstance(known, GpuMachine):
        count = f"{known.gpu_count} × " if known.gpu_count != 1 else ""  # noqa: RUF001
        return f"{count}{clean(known.gpu_model)}{' (MIG)' if known.mig else ''}"
    gpus = f", {clean(known.gpus)}" if known.gpus else ""
    return f"{clean(known.cpu_model)}, {known.logical_cores} cores{gpus}"


def commit(source: Source) -> Phrase:
    """Shorten a commit as git does; anything else is shown as it is."""
    is_sha = len(source.commit) >= _SHORT_SHA and set(source.commit) <= set("0123456789abcdef")
    shown = source.commit[:_SHORT_SHA] if is_sha else source.commit
    return say("commit", shown=shown, source=source)


def summarise_environment(comparison: Comparison) -> Phrase:
    """Say enough of the environment that the fold can stay closed."""
    known = comparison.head.machine
    return say(
        "environment",
        machine=machine(known) if known else "",
        differences=len(comparison.differences),
        side=comparison.base,
        version=comparison.tool.version,
    )


def list_environment(comparison: Comparison) -> list[tuple[Phrase, Phrase, Phrase]]:
    """List what is known of either side: a name, the base, the head."""
    base, head, how = comparison.base, comparison.head, comparison.interleaved
    is_launched = how is not None and how.pairs > 0 and not base.sessions
    if how is not None and is_launched:
        base = msgspec.structs.replace(
            base, label=f"{how.ref}, launched", source=how.source, machine=head.machine
        )
    facts: list[tuple[str, Phrase, Phrase]] = [("Numbers from", (base.label,), (head.label,))]
    if base.machine or head.machine:
        facts.append(("Machine", (machine(base.machine),), (machine(head.machine),)))
    # Nothing tells the image of a base that was launched.
    if not is_launched and (base.image or head.image):
        before, after = (side.image.reference if side.image else NONE for side in (base, head))
        facts.append(("Image", (before,), (after,)))
    if has_commits(comparison):
        facts.append(("Commit", commit(base.source), commit(head.source)))
    facts.append(("Sessions", say("sessions", side=base), say("sessions", side=head)))
    return [
        *(((Words(name),), before, after) for name, before, after in facts),
        *(
            ((each.field,), (each.base,), (each.head,))
            for each in comparison.differences[:_MAX_DIFFERENCES]
        ),
    ]


def has_commits(comparison: Comparison) -> bool:
    """Whether a commit is known: samples have none."""
    return {comparison.base.source.commit, comparison.head.source.commit} != {_UNKNOWN}


def find_age_days(comparison: Comparison) -> int:
    """Return how much older than the head the newest baseline is, in days; 0 up to 30 days."""
    base, head = (_count_days(side.newest) for side in (comparison.base, comparison.head))
    return head - base if base and head - base > _OLD_DAYS else 0


def _count_days(time: str) -> int:
    """Count the days before a time by the calendar, in which a year begins in March; 0: no time."""
    if (date := _DATE.match(time)) is None:
        return 0
    year, month, day = map(int, date.groups())
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day


def find_base_source(comparison: Comparison) -> Source:
    """Return the commit that was launched beside the head, or is the same program; else the base.

    The baselines may be of an older commit than the base that was launched.
    """
    how = comparison.interleaved
    if how and (how.pairs or any(map(same_program.is_same_program, comparison.rows))):
        return how.source
    return comparison.base.source


def list_notes(comparison: Comparison) -> Iterator[Phrase]:
    """Yield what was launched in turns and how long, what came before, and what was noted."""
    spending, interleaved = comparison.spending, comparison.interleaved
    if interleaved is not None:
        yield say("interleaving", how=interleaved, commit=commit)
    if spending is not None:
        before = say("checks_before", spending=spending)
        earlier = say("earlier_runs", runs=[(name,) for name in spending.earlier])
        yield from filter(None, (before, earlier))
    if comparison.cost is not None:
        is_gpu = isinstance(comparison.head.machine, GpuMachine)
        yield say("cost", cost=comparison.cost, is_gpu=is_gpu)
    for note in interleaved.notes[:_MAX_NOTES] if interleaved else ():
        yield (Sentence(note),)
    yield from same_program.render_notes(comparison)

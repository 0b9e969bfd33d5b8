"""Where numbers come from: machines, commits, sessions, and how base and head were interleaved."""

from collections.abc import Iterator

import msgspec

from ci_perf.features.same_program import same_program_report
from ci_perf.judging.comparability import NONE
from ci_perf.model.comparison import Comparison, Side
from ci_perf.model.environment import GpuMachine, Machine, is_same
from ci_perf.model.run import Source
from ci_perf.report.escape import Sentence, Words, clean
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say

# What stands for a commit or a branch that nobody knows, as of samples.
_UNKNOWN = "unknown"
_SHORT_SHA = 7
_MAX_DIFFERENCES = 20
_MAX_NOTES = 20


def machine(known: Machine | None) -> str:
    """Name a machine class."""
    if known is None:
        return "unknown machine"
    if isinstance(known, GpuMachine):
        count = f"{known.gpu_count} × " if known.gpu_count != 1 else ""  # noqa: RUF001
        return f"{count}{clean(known.gpu_model)}{' (MIG)' if known.mig else ''}"
    return f"{clean(known.cpu_model)}, {known.logical_cores} cores"


def machines(base: Machine | None, head: Machine | None) -> tuple[str, str]:
    """Name the machines of both sides; two that only look the same, by the facts that differ."""
    names = (machine(base), machine(head))
    if names[0] != names[1] or base is None or head is None or is_same(base, head):
        return names
    facts = [msgspec.to_builtins(side) for side in (base, head)]
    different = [key for key in facts[0] if facts[0][key] != facts[1].get(key)]
    first, second = (
        f"{name} ({', '.join(f'{key} {clean(str(fact[key]))}' for key in different)})"
        for name, fact in zip(names, facts, strict=True)
    )
    return first, second


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
    base, head = _find_compared_base(comparison), comparison.head
    facts: list[tuple[str, Phrase, Phrase]] = [("Numbers from", (base.label,), (head.label,))]
    if base.machine is not None or head.machine is not None:
        before, after = machines(base.machine, head.machine)
        is_known = base.machine is not None or base.sessions
        facts.append(("Machine", (before if is_known else NONE,), (after,)))
    # Nothing tells the image of a base that was launched.
    images = [side.image.reference if side.image else "" for side in (base, head)]
    if base == comparison.base and any(images):
        old, new = ((_shorten_digest(image) or NONE,) for image in images)
        facts.append(("Image", old, new))
    if has_commits(comparison):
        facts.append(("Commit", commit(base.source), commit(head.source)))
    if {base.source.branch, head.source.branch} != {_UNKNOWN}:
        facts.append(("Branch", (base.source.branch,), (head.source.branch,)))
    facts.append(("Sessions", say("sessions", side=base), say("sessions", side=head)))
    if head.run:
        facts.append(("Run", (base.run or NONE,), (head.run,)))
    if max(base.nodes, head.nodes) > 1:
        before, after = (str(side.nodes or "not known") for side in (base, head))
        facts.append(("Nodes", (Words(before),), (Words(after),)))
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


def find_base_source(comparison: Comparison) -> Source:
    """Return the commit that was launched beside the head, or is the same program; else the base.

    The baselines may be of an older commit than the base that was launched.
    """
    how = comparison.interleaved
    is_same_program = any(map(same_program_report.is_same_program, comparison.rows))
    return how.source if how and (how.pairs or is_same_program) else comparison.base.source


def _find_compared_base(comparison: Comparison) -> Side:
    """Return the base; where it has no session, the one that was launched beside the head."""
    base, interleaved = comparison.base, comparison.interleaved
    if interleaved is None or not interleaved.pairs or base.sessions:
        return base
    return msgspec.structs.replace(
        base,
        label=f"{interleaved.ref}, launched",
        source=interleaved.source,
        machine=comparison.head.machine,
        nodes=comparison.head.nodes,
    )


def _shorten_digest(reference: str) -> str:
    """Return a reference with as much of its digest as tells it from others."""
    name, mark, digest = reference.partition("sha256:")
    return f"{name}{mark}{digest[:12]}"


def list_notes(comparison: Comparison) -> Iterator[Phrase]:
    """Yield what was launched in turns and how long, what came before, and what was noted."""
    spending, interleaved = comparison.spending, comparison.interleaved
    if interleaved is not None:
        yield say("interleaving", how=interleaved, commit=commit)
    if spending is not None:
        before = say("checks_before", spending=spending)
        earlier = say("earlier_runs", runs=[(name,) for name in spending.earlier])
        yield from filter(None, (before, earlier))
    for note in interleaved.notes[:_MAX_NOTES] if interleaved else ():
        yield (Sentence(note),)
    yield from same_program_report.render_notes(comparison)

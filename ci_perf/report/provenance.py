"""Where numbers come from: machines, commits, sessions, and how base and head were interleaved."""

import msgspec

from ci_perf.judging.comparability import NONE
from ci_perf.model.comparison import Comparison, Side, Spending
from ci_perf.model.environment import GpuMachine, Machine, is_same
from ci_perf.model.run import Interleaved, Source
from ci_perf.report import same_program, units
from ci_perf.report.escape import Sentence, Words, clean
from ci_perf.report.phrases import Phrase

# A row of the table of the environment: a name, the base, the head.
_Fact = tuple[str, Phrase, Phrase]
# What stands for a commit or a branch that nobody knows, as of samples.
_UNKNOWN = "unknown"
_DATE = len("2026-11-21")
_SHORT_SHA = 7
_MAX_DIFFERENCES = 20
_MAX_NOTES = 20
_MAX_RUNS = 3
_UNKNOWN_CHECKS = (
    "How many checks of this pull request tested pairs before is not known, so this one may spend "
    "the whole chance of a false alarm."
)
_LATER_CHECK = (
    "This is check {number} of a change that tests pairs: it may spend {share} of the chance of a "
    "false alarm, which all its checks share."
)
_STOPPED = {
    "decided": "stopped because more pairs would decide nothing that can fail the job",
    "budget": "stopped because the budget was spent",
    "interrupted": "interrupted",
}
# Not "cleared": what is exact may have regressed, and needs no pairs for that.
_UNNEEDED = "no metric needed pairs, so the base was not launched"


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


def _nodes(base: Side, head: Side) -> list[_Fact]:
    """Count the hosts of either side, where there is more than one."""
    if max(base.nodes, head.nodes) < 2:
        return []
    return [(Words("Nodes"), _known(base.nodes), _known(head.nodes))]


def _known(nodes: int) -> Phrase:
    return (Words(str(nodes) if nodes else "not known"),)


def environment_summary(comparison: Comparison) -> Phrase:
    """Say enough of the environment that the fold can stay closed."""
    known = comparison.head.machine
    where: Phrase = (machine(known), Words(", ")) if known else ()
    more = len(comparison.differences)
    differing = Words(f"{units.numbered(more, 'difference')}, " if more else "")
    return (
        Words("Environment: "),
        *where,
        differing,
        *_sessions_of_base(comparison.base),
    )


def _sessions_of_base(base: Side) -> Phrase:
    return (Words("base of "), *sessions(base)) if base.sessions else (Words("no baseline"),)


def environment(comparison: Comparison) -> list[tuple[Phrase, Phrase, Phrase]]:
    """List what is known of either side: a name, the base, the head."""
    base, head = _compared_base(comparison), comparison.head
    facts = [
        (Words("Numbers from"), (base.label,), (head.label,)),
        *_machines(base, head),
        *(_images(base, head) if base == comparison.base else ()),  # nothing tells the launched one
        *_source(base, head),
        (Words("Sessions"), sessions(base), sessions(head)),
        *_nodes(base, head),
        *(
            (difference.field, (difference.base,), (difference.head,))
            for difference in comparison.differences[:_MAX_DIFFERENCES]
        ),
    ]
    return [((name,), before, after) for name, before, after in facts]


def _compared_base(comparison: Comparison) -> Side:
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


def _machines(base: Side, head: Side) -> list[_Fact]:
    if base.machine is None and head.machine is None:
        return []
    before, after = machines(base.machine, head.machine)
    if base.machine is None and not base.sessions:
        before = NONE
    return [(Words("Machine"), (before,), (after,))]


def _source(base: Side, head: Side) -> list[_Fact]:
    before, after = base.source, head.source
    facts: list[_Fact] = []
    if {before.commit, after.commit} != {_UNKNOWN}:
        facts.append((Words("Commit"), commit(before), commit(after)))
    if {before.branch, after.branch} != {_UNKNOWN}:
        facts.append((Words("Branch"), (before.branch,), (after.branch,)))
    return facts


def _images(base: Side, head: Side) -> list[_Fact]:
    """Name images as they were asked for: of which registry, with which tag and digest."""
    before, after = (_asked(side.image.reference) if side.image else "" for side in (base, head))
    is_known = before or after
    return [(Words("Image"), (before or NONE,), (after or NONE,))] if is_known else []


def _asked(reference: str) -> str:
    """Return a reference with as much of its digest as tells it from others."""
    name, mark, digest = reference.partition("sha256:")
    return f"{name}{mark}{digest[:12]}"


def footer(comparison: Comparison) -> Phrase:
    """Say what was measured, so that a stale report can be seen to be stale."""
    return (
        *_commits(comparison),
        *_run(comparison.head.run),
        Words(f"exit code {comparison.exit_code} · ci-perf "),
        comparison.tool.version,
    )


def _commits(comparison: Comparison) -> Phrase:
    base, head = comparison.base.source, comparison.head.source
    if {base.commit, head.commit} == {_UNKNOWN}:
        return ()
    return (
        *_numbers(comparison),
        Words(" → head "),
        *commit(head),
        *_launched_base(comparison),
        Words(" · "),
    )


def _numbers(comparison: Comparison) -> Phrase:
    """Say whose numbers the head was compared with; where the base was launched, there are two."""
    base, is_launched = comparison.base, bool(_launched_base(comparison))
    if base.source.commit == NONE or (is_launched and not base.sessions):
        return (Words("No baseline"),)
    return (Words("Baseline of " if is_launched else "Base "), *commit(base.source))


def _launched_base(comparison: Comparison) -> Phrase:
    interleaved = comparison.interleaved
    if interleaved is None:
        return ()
    if interleaved.pairs:
        return (Words(", paired with "), *commit(interleaved.source))
    is_same = any(map(same_program.is_of_same_program, comparison.rows))
    return (Words(", compared with "), *commit(interleaved.source)) if is_same else ()


def _run(name: str) -> Phrase:
    """Name a run; samples of another harness have none."""
    return (Words("run "), name, Words(" · ")) if name else ()


# --- base and head, launched in turns


def interleaving(comparison: Comparison) -> Phrase:
    """Say what was launched in turns, and how long; empty when nothing was."""
    interleaved = comparison.interleaved
    if interleaved is None:
        return ()
    said = f": {_UNNEEDED}" if _is_unneeded(interleaved) else f" and head {_launched(interleaved)}"
    return (
        Words("Base "),
        *commit(interleaved.source),
        Words(" (merge base of "),
        interleaved.ref,
        Words(f"){said}."),
    )


def interleaving_notes(comparison: Comparison) -> list[Phrase]:
    """List what came before these pairs, and what was noted meanwhile."""
    interleaved = comparison.interleaved
    notes = interleaved.notes[:_MAX_NOTES] if interleaved else ()
    return [
        *_before(comparison.spending),
        *((Sentence(note),) for note in notes),
        *same_program.notes(comparison),
    ]


def _before(spending: Spending | None) -> list[Phrase]:
    """Say what earlier checks of the pull request leave of alpha, and whose pairs count, too."""
    if spending is None:
        return []
    said: list[Phrase] = []
    if spending.check is None:
        said.append((Words(_UNKNOWN_CHECKS),))
    elif spending.check > 1:
        share = f"{100 * spending.share:.2g} %"
        said.append((Words(_LATER_CHECK.format(number=spending.check, share=share)),))
    if spending.earlier:
        shown = [*spending.earlier][:_MAX_RUNS]
        names = [part for name in shown for part in (Words(" and "), name)][1:]
        more = f" and {len(spending.earlier) - len(shown)} more" * (
            len(spending.earlier) > _MAX_RUNS
        )
        said.append(
            (
                Words("Pairs of earlier runs of the same commits count, too: "),
                *names,
                Words(f"{more}."),
            )
        )
    return said


def _is_unneeded(interleaved: Interleaved) -> bool:
    return interleaved.stopped == "decided" and not interleaved.suspects and not interleaved.pairs


def _launched(interleaved: Interleaved) -> str:
    time = f"{units.duration(interleaved.spent_s)} of {units.duration(interleaved.budget_s)}"
    suspects = interleaved.suspects
    metrics = f" for {units.numbered(suspects, 'metric')}," if suspects else ""
    pairs = f"{units.numbered(interleaved.pairs, 'pair')}{metrics} in {time}"
    return f"launched in turns: {pairs}; {_STOPPED[interleaved.stopped]}"

"""Two proofs as tables: changed outcomes first, then every figure from the first to the second."""

from collections.abc import Iterator, Sequence

from ci_perf.judging.proof_comparison import Both, compared
from ci_perf.model.proof import Figure, Proof, ProofStep
from ci_perf.report import proof, units
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table

# What a driver update, another build of torch or another machine changes.
_CAUSES = ("machine", "driver", "torch", "CUDA", "cuDNN", "kernel", "image", "ci-perf")


def page(first: Proof, second: Proof) -> Page:
    """Show both: what changed in outcome, the facts that differ, and all figures."""
    every = compared(first, second)
    return [
        _headline(every),
        _causes(first, second),
        *_outcomes(every),
        *_figures(every),
        (Words("Both machines"),),
        _facts(first, second),
    ]


def _headline(every: Sequence[Both]) -> Phrase:
    lost = [both.step for both in every if both.is_lost]
    changed = sum(both.has_changed for both in every) - len(lost)
    more = f"; {units.numbered(changed, 'other outcome')} changed" if changed else ""
    count = units.numbered(len(every), "step")
    if not lost:
        return (Words(f"Of {count}, none that held in A does not hold in B{more}"),)
    said: list[str] = [
        Words(f"Of {count}, {len(lost)} held in A and {_does(len(lost))} not hold in B: ")
    ]
    for step in lost:
        said += [step, Words(", ")]
    return [*said[:-1], Words(more)]


def _does(number: int) -> str:
    return "does" if number == 1 else "do"


def _causes(first: Proof, second: Proof) -> Phrase:
    """Name what a changed outcome may come from."""
    before, after = dict(proof.facts(first)), dict(proof.facts(second))
    said: list[str] = []
    for name in _CAUSES:
        if before.get(name) != after.get(name):
            a, b = (facts.get(name, (units.NOTHING,)) for facts in (before, after))
            said += [Words(f"{name} "), *a, Words(" → "), *b, Words(", ")]
    if not said:
        return (Words("Machine, driver and torch are the same."),)
    return [Words("Changed: "), *said[:-1]]


def _outcomes(every: Sequence[Both]) -> Iterator[Phrase | Table]:
    rows = [
        (
            both.step,
            Words(f"{_outcome(both.first)} → {_outcome(both.second)}"),
            _why(both),
            Words(proof.words(both.step).advice) if both.is_lost else Words(""),
        )
        for both in every
        if both.has_changed
    ]
    if rows:
        heading = ["step", "A → B", "figures in B, or why there are none", "what to do next"]
        yield (Words("Outcomes that changed"),)
        yield Table(heading, rows, heading[1:])


def _outcome(step: ProofStep | None) -> str:
    return proof.OUTCOMES[step.outcome] if step else "not part of it"


def _why(both: Both) -> Phrase:
    return proof.shown(both.second) if both.second else ()


def _figures(every: Sequence[Both]) -> Iterator[Phrase | Table]:
    rows = [
        (both.step, proof.title(a.name), *_values(a, b))
        for both in every
        for a, b in both.figures()
    ]
    if rows:
        yield (Words("Figures of both"),)
        yield Table(["step", "figure", "A", "B", "B ÷ A"], rows, ["figure"])
    same = [both for both in every if not both.has_changed and both.first]
    if same:
        yield (Words("Outcomes that did not change"),)
        yield Table(
            ["step", "A and B"],
            [(both.step, Words(_outcome(both.first))) for both in same],
            ["A and B"],
        )


def _values(first: Figure, second: Figure) -> tuple[Words, Words, Words]:
    ratio = (
        proof.amount(second.value / first.value, None)
        if first.value and abs(second.value) <= proof.MOST * abs(first.value)
        else units.NOTHING
    )
    return (
        proof.amount(first.value, first.unit),
        proof.amount(second.value, second.unit),
        ratio,
    )


def _facts(first: Proof, second: Proof) -> Table:
    before, after = dict(proof.facts(first)), dict(proof.facts(second))
    rows = [
        (Words(name), before.get(name, units.NOTHING), after.get(name, units.NOTHING))
        for name in before | after
    ]
    return Table(["fact", "A", "B"], rows, ["A", "B"])

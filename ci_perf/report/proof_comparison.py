"""Two proofs as tables: changed outcomes first, then every figure from the first to the second."""

from collections.abc import Iterator, Sequence

from ci_perf.judging.proof_comparison import Both, compared
from ci_perf.model.proof import Figure, Proof, ProofStep
from ci_perf.report import proof, units
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table

# What a driver update, another build of torch or another machine changes.
_CAUSES = ("device", "machine", "driver", "torch", "CUDA", "cuDNN", "kernel", "image", "ci-perf")


def page(first: Proof, second: Proof) -> Page:
    """Show both: what changed in outcome, the facts that differ, and all figures."""
    every = compared(first, second)
    return [
        _headline(every),
        *_kinds(first, second),
        _causes(first, second),
        *_outcomes(every),
        *_figures(every),
        (Words("Both machines"),),
        _facts(first, second),
    ]


def _headline(every: Sequence[Both]) -> Phrase:
    lost = [both.step for both in every if both.is_lost]
    untimed = [both.step for both in every if both.has_no_time]
    changed = sum(both.has_changed for both in every) - len(lost) - len(untimed)
    count = units.numbered(len(every), "step")
    if lost:
        verb = "does" if len(lost) == 1 else "do"
        text = f"Of {count}, {len(lost)} held in A and {verb} not hold in B: "
        said = [Words(text), *_named(lost)]
    else:
        said = [Words(f"Of {count}, none that held in A is lost in B")]
    if untimed:
        said += [Words(f"; no time in B (--minutes) for {len(untimed)}: "), *_named(untimed)]
    if changed:
        said.append(Words(f"; {units.numbered(changed, 'other outcome')} changed"))
    return said


def _named(steps: Sequence[str]) -> list[str]:
    return [part for step in steps for part in (step, Words(", "))][:-1]


def _kinds(first: Proof, second: Proof) -> Iterator[Phrase]:
    """Say that a CPU and a GPU are compared."""
    if first.kind != second.kind:
        kinds = {"cpu": "a CPU", "cuda": "a GPU"}
        yield (
            Words(
                f"A is a proof of {kinds[first.kind]}, B one of {kinds[second.kind]}: what is "
                "about the one cannot be tried on the other, and is lost for that reason alone. "
                "To see what an update changes, prove the same device twice."
            ),
        )


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
            _advice(both),
        )
        for both in every
        if both.has_changed
    ]
    if rows:
        heading = ["step", "A → B", "figures in B, or why there are none", "what to do next"]
        yield (Words("Outcomes that changed"),)
        yield Table(heading, rows, heading[1:])


def _advice(both: Both) -> Words:
    """Say what to do about a loss: what did not hold needs other steps than what was not tried."""
    if not both.is_lost:
        return Words("")
    if both.second is None:
        return Words("Prove B again with all steps.")
    if both.second.outcome == "not_tried":
        return Words("Remove the reason that stands beside it, and prove B again.")
    return Words(proof.words(both.step).advice)


def _outcome(step: ProofStep | None) -> str:
    return proof.OUTCOMES[step.outcome] if step else "not part of it"


def _why(both: Both) -> Phrase:
    return proof.shown(both.second) if both.second else ()


def _figures(every: Sequence[Both]) -> Iterator[Phrase | Table]:
    rows = [
        (both.step, proof.title(both.step, a.name), *_values(both.step, a, b))
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


def _values(step: str, first: Figure, second: Figure) -> tuple[Words, Words, Words]:
    ratio = (
        proof.amount(second.value / first.value, None)
        if first.value and abs(second.value) <= proof.MOST * abs(first.value)
        else units.NOTHING
    )
    return (
        proof.value(step, first.name, first.value, first.unit),
        proof.value(step, second.name, second.value, second.unit),
        ratio,
    )


def _facts(first: Proof, second: Proof) -> Table:
    before, after = dict(proof.facts(first)), dict(proof.facts(second))
    rows = [
        (Words(name), before.get(name, units.NOTHING), after.get(name, units.NOTHING))
        for name in before | after
    ]
    return Table(["fact", "A", "B"], rows, ["A", "B"])

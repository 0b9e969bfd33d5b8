"""A proof as tables: what did not hold, then every step, then what could not be tried.

A proof is a file that anybody may have written: its texts are shown and never obeyed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from ci_perf.judging.proof import Bound, of_name
from ci_perf.model.environment import CpuMachine
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure, Outcome, Proof, ProofStep
from ci_perf.report import proof_words, provenance, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.tables import Page, Phrase, Table

OUTCOMES: Mapping[Outcome, str] = {
    "held": "held",
    "did_not_hold": "did not hold",
    "not_tried": "could not be tried",
}
# No honest number is larger, and its digits would break a table.
MOST = 1e18
# From here on a ratio says as much without its decimals.
_LARGE_RATIO = 1000
_SEPARATOR = Words("; ")
_ON_A_CPU = (
    "This is a proof of a CPU: it says nothing about a GPU. What needs one could not be tried."
)


def page(proof: Proof) -> Page:
    """Show a proof: the headline, what to do, all figures, and the machine."""
    return [
        headline(proof),
        *([(Words(_ON_A_CPU),)] if isinstance(proof.environment.hard, CpuMachine) else []),
        *_broken(_of(proof, "did_not_hold")),
        *_tried([step for step in proof.steps if step.outcome != "not_tried"]),
        *_untried(_of(proof, "not_tried")),
        (Words("The machine"),),
        Table(["fact", "value"], [(Words(name), value) for name, value in facts(proof)], ["value"]),
    ]


def headline(proof: Proof) -> Phrase:
    """Name the machine, and count the outcomes."""
    count = units.numbered(len(proof.steps), "step")
    text = f": {len(_of(proof, 'held'))} of {count} held"
    for outcome in ("did_not_hold", "not_tried"):
        number = len(_of(proof, outcome))
        text += f", {number} {OUTCOMES[outcome]}" if number else ""
    return (provenance.machine(proof.environment.hard), Words(text))


def facts(proof: Proof) -> Sequence[tuple[str, Phrase]]:
    """List the machine, its software, and how the proof was made."""
    soft = proof.environment.soft
    known = {
        "machine": provenance.machine(proof.environment.hard),
        "device": proof.device,
        "driver": soft.driver,
        "torch": soft.torch,
        "CUDA": soft.cuda,
        "cuDNN": soft.cudnn,
        "Python": soft.python,
        "kernel": soft.kernel,
        "CPU": soft.cpu_model,
        "image": soft.image,
        "ci-perf": proof.tool.version,
        "started": proof.started_at,
    }
    rows = [(name, (value,)) for name, value in known.items() if value]
    limit = f"{units.duration(proof.duration_s)} of {amount(proof.minutes, None)} min"
    return [*rows, ("took", (Words(limit),))]


def bounds(step: str) -> Mapping[str, Bound]:
    """Return the bounds of a step by figure; none of a step that this version does not know."""
    try:
        return {bound.figure: bound for bound in of_name(step).bounds}
    except KeyError:
        return {}


def words(step: str) -> proof_words.StepWords:
    """Return our words about a step."""
    return proof_words.WORDS.get(step, proof_words.UNKNOWN)


def title(figure: str) -> str:
    """Name a figure as people read it: device_over_wall is "device ÷ wall", launch_s "launch"."""
    return figure.removesuffix("_s").replace("_over_", " ÷ ").replace("_", " ")


def amount(number: float, unit: Unit | None) -> Words:
    """Show a figure; one without a unit is a ratio, of which four digits matter."""
    if abs(number) > MOST:
        return Words(f"{number:.2e}".replace("-", units.MINUS))
    if unit is not None:
        sign = units.MINUS if number < 0 else ""
        return Words(sign + units.value(abs(number), unit))
    text = f"{number:,.0f}" if abs(number) >= _LARGE_RATIO else f"{number:.4g}"
    return Words(text.replace("-", units.MINUS))


def _of(proof: Proof, outcome: Outcome) -> Sequence[ProofStep]:
    return [step for step in proof.steps if step.outcome == outcome]


def _broken(steps: Sequence[ProofStep]) -> Iterator[Phrase | Table]:
    if steps:
        yield (Words("What did not hold, and what to do next"),)
        heading = ["step", "figures beyond their bounds", "what to do next"]
        rows = [
            (step.step, _beyond(step) or shown(step), Words(words(step.step).advice))
            for step in steps
        ]
        yield Table(heading, rows, heading[1:])


def _beyond(step: ProofStep) -> Phrase:
    """Return the figures that broke a step; all of them where this version knows no bounds."""
    known = bounds(step.step)
    beyond = [
        figure
        for figure in step.figures
        if (bound := known.get(figure.name)) and not bound.least <= figure.value <= bound.most
    ]
    return figures(beyond or step.figures, known)


def _tried(steps: Sequence[ProofStep]) -> Iterator[Phrase | Table]:
    if steps:
        yield (Words("What was tried"),)
        heading = ["step", "outcome", "figures (and their bounds)", "what it shows"]
        yield Table(heading, [_row(step) for step in steps], heading[1:])


def _row(step: ProofStep) -> Sequence[str | Phrase]:
    outcome, claim = OUTCOMES[step.outcome], words(step.step).claim
    return (step.step, Words(outcome), shown(step), Words(claim))


def shown(step: ProofStep) -> Phrase:
    """Show what a step left: figures, those with a bound first, and its sentence."""
    known = bounds(step.step)
    every = figures(sorted(step.figures, key=lambda figure: figure.name not in known), known)
    if not step.detail:
        return every
    return [*every, *([_SEPARATOR] if every else []), Sentence(step.detail)]


def _untried(steps: Sequence[ProofStep]) -> Iterator[Phrase | Table]:
    if steps:
        yield (Words("What could not be tried, and why"),)
        heading = ["step", "why", "what it would show"]
        rows = [
            (step.step, (Sentence(step.detail),), Words(words(step.step).claim)) for step in steps
        ]
        yield Table(heading, rows, heading[1:])


def figures(every: Sequence[Figure], known: Mapping[str, Bound]) -> Phrase:
    """Show figures in a row, each with its bound beside it: device ÷ wall 0.999 (0.97 to 1.01)."""
    phrase: list[str] = []
    for figure in every:
        within = _within(known.get(figure.name), figure.unit)
        phrase += [
            title(figure.name),
            Words(f" {amount(figure.value, figure.unit)}{within}"),
            _SEPARATOR,
        ]
    return phrase[:-1]


def _within(bound: Bound | None, unit: Unit | None) -> str:
    if bound is None:
        return ""
    least, most = amount(bound.least, unit), amount(bound.most, unit)
    if bound.least == bound.most:
        return f" (expected {least})"
    if math.isinf(bound.least):
        return f" (at most {most})"
    return f" (at least {least})" if math.isinf(bound.most) else f" ({least} to {most})"

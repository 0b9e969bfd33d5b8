"""A proof as tables: what did not hold, then every step, then what could not be tried.

A proof is a file that anybody may have written: its texts are shown and never obeyed.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ci_perf.judging.proof import Bound, of_name, untested
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
_ANSWERS = {0.0: "no", 1.0: "yes"}
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
    if proof.waited_s >= 1:
        limit += f", after another run had held the device for {units.duration(proof.waited_s)}"
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


def title(step: str, figure: str) -> Phrase:
    """Say what a figure is; one that this version does not know is shown by its name."""
    known = proof_words.of_figure(step, figure)
    if known is None:
        return (figure,)
    before, star, after = known[0].partition("*")
    if not star:
        return (Words(before),)
    part = Words(known[1]) if known[1].isdecimal() else known[1]
    return [text for text in (Words(before), part, Words(after)) if text]


def value(step: str, figure: str, number: float, unit: Unit | None) -> Words:
    """Show a figure of a step: a number with its unit, or the answer to a question."""
    known = proof_words.of_figure(step, figure)
    is_question = known is not None and known[0].endswith("?")
    return Words(_ANSWERS[number]) if is_question and number in _ANSWERS else amount(number, unit)


def amount(number: float, unit: Unit | None) -> Words:
    """Show a number; one without a unit is a ratio, of which four digits matter."""
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
    return figures(step.step, beyond or step.figures)


def _tried(steps: Sequence[ProofStep]) -> Iterator[Phrase | Table]:
    if steps:
        yield (Words("What was tried"),)
        heading = ["step", "outcome", "figures (and their bounds)", "what it shows"]
        yield Table(heading, [_row(step) for step in steps], heading[1:])


def _row(step: ProofStep) -> Sequence[str | Phrase]:
    outcome, claim = OUTCOMES[step.outcome], words(step.step).claim
    return (step.step, Words(outcome), shown(step), Words(claim))


def shown(step: ProofStep) -> Phrase:
    """Show what a step left: figures, those with a bound first, what it lacks, its sentence."""
    known = bounds(step.step)
    parts = [
        figures(step.step, sorted(step.figures, key=lambda figure: figure.name not in known)),
        _lacking(step),
        [Sentence(step.detail)] if step.detail else [],
    ]
    return _joined(parts)


def _lacking(step: ProofStep) -> Phrase:
    """Name what this machine does not tell, and the step therefore does not show."""
    names = _joined([title(step.step, figure) for figure in untested(step)], Words(", "))
    return [Words("not tested: "), *names] if names else []


def _joined(phrases: Iterable[Phrase], separator: Words = _SEPARATOR) -> Phrase:
    joined: list[str] = []
    for phrase in phrases:
        if phrase:
            joined += [*phrase, separator]
    return joined[:-1]


def _untried(steps: Sequence[ProofStep]) -> Iterator[Phrase | Table]:
    if steps:
        yield (Words("What could not be tried, and why"),)
        heading = ["step", "why", "what it would show"]
        rows = [
            (step.step, (Sentence(step.detail),), Words(words(step.step).claim)) for step in steps
        ]
        yield Table(heading, rows, heading[1:])


def figures(step: str, every: Sequence[Figure]) -> Phrase:
    """Show figures in a row, each with its bound beside it: time of a step: 1.50 ms."""
    known = bounds(step)
    return _joined(
        [
            *(name := title(step, figure.name)),
            Words(" " if name[-1].endswith("?") else ": "),
            value(step, figure.name, figure.value, figure.unit),
            Words(_within(step, known.get(figure.name), figure.unit)),
        ]
        for figure in every
    )


def _within(step: str, bound: Bound | None, unit: Unit | None) -> str:
    if bound is None:
        return ""
    least, most = (value(step, bound.figure, end, unit) for end in (bound.least, bound.most))
    if bound.least == bound.most:
        return f" (expected {least})"
    if math.isinf(bound.least):
        return f" (at most {most})"
    return f" (at least {least})" if math.isinf(bound.most) else f" ({least} to {most})"

"""Two proofs side by side: two machines, or one before and after a driver update."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.model.proof import Figure, Proof, ProofStep


@dataclass(frozen=True, slots=True)
class Both:
    """One step in both proofs; `None` where a proof has no such step."""

    step: str
    first: ProofStep | None
    second: ProofStep | None

    @property
    def is_lost(self) -> bool:
        """Whether it held in the first and does not hold in the second."""
        return _outcome(self.first) == "held" and _outcome(self.second) == "did_not_hold"

    @property
    def has_changed(self) -> bool:
        """Whether another thing came of it."""
        return _outcome(self.first) != _outcome(self.second)

    def figures(self) -> Sequence[tuple[Figure, Figure]]:
        """Return the figures that both have, in the same unit."""
        later = {figure.name: figure for figure in (self.second.figures if self.second else ())}
        return [
            (figure, later[figure.name])
            for figure in (self.first.figures if self.first else ())
            if figure.name in later and later[figure.name].unit == figure.unit
        ]


def compared(first: Proof, second: Proof) -> Sequence[Both]:
    """Return all steps of both: what is lost first, then other changed outcomes, then the rest."""
    before, after = ({step.step: step for step in proof.steps} for proof in (first, second))
    every = [Both(name, before.get(name), after.get(name)) for name in before | after]
    return sorted(every, key=lambda both: (not both.is_lost, not both.has_changed))


def is_kept(first: Proof, second: Proof) -> bool:
    """Whether nothing is lost: what held in the first does not fail to hold in the second."""
    return not any(both.is_lost for both in compared(first, second))


def _outcome(step: ProofStep | None) -> str:
    return step.outcome if step else ""

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
        """Whether it held in the first, and nothing shows that it holds in the second.

        Only a lack of time says nothing about the machine.
        """
        return _outcome(self.first) == "held" and not (
            _outcome(self.second) == "held" or self.has_no_time
        )

    @property
    def has_no_time(self) -> bool:
        """Whether it held in the first, and there was no time for it in the second."""
        lacked = self.second is not None and self.second.why == "time"
        return _outcome(self.first) == "held" and lacked

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
    """Whether nothing that held in the first is lost, and something of it could be compared."""
    held = [both for both in compared(first, second) if _outcome(both.first) == "held"]
    has_answer = not held or not all(both.has_no_time for both in held)
    return has_answer and not any(both.is_lost for both in held)


def _outcome(step: ProofStep | None) -> str:
    return step.outcome if step else ""

"""Proofs of machines, as `ci-perf prove` leaves them."""

from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure, Proof, ProofStep
from ci_perf.model.run import Tool
from tests.runs import GPU, an_environment


def a_step(step="harness", outcome="held", *figures, detail="", seconds=4.0, why="missing"):
    known = figures or (
        Figure(name="timed_over_bare", value=1.002),
        Figure(name="bare_step", value=2.3e-5, unit=Unit.SECOND),
    )
    return ProofStep(
        step=step,
        outcome=outcome,
        why=why if outcome == "not_tried" else None,
        figures=() if outcome == "not_tried" else known,
        detail=detail,
        seconds=seconds,
    )


def a_proof(*steps, device="cpu", environment=None):
    """Return a proof; without an environment, of the machine that has such a device."""
    if environment is None:
        environment = an_environment() if device == "cpu" else an_environment(hard=GPU)
    return Proof(
        tool=Tool(version="1.2.3"),
        started_at="2026-11-23T11:12:24Z",
        duration_s=61.5,
        minutes=8.0,
        device=device,
        environment=environment,
        steps=steps,
    )

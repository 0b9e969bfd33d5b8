"""What a machine proved of itself: proof.json."""

from typing import Literal

from ci_perf.model.base import SCHEMA_VERSION, Finite, Key, Seconds, Struct, Text
from ci_perf.model.environment import Environment
from ci_perf.model.metrics import Unit
from ci_perf.model.run import Tool

Outcome = Literal["held", "did_not_hold", "not_tried"]


class Figure(Struct, frozen=True, kw_only=True):
    """One number that a step measured; ``unit`` is `None` for a ratio."""

    name: Key
    value: Finite
    unit: Unit | None = None


class Probed(Struct, frozen=True, kw_only=True):
    """What a step left: its figures, or why they do not say whether it holds.

    ``detail`` is a sentence about the figures, where they need one. ``broken`` says how a step came
    to a bad end while it was tried: it crashed or hung, which measuring would do as well.
    """

    figures: tuple[Figure, ...] = ()
    not_tried: Text = ""
    broken: Text = ""
    detail: Text = ""


class ProofStep(Struct, frozen=True, kw_only=True):
    """One step: what came of it, its figures, and how long it took."""

    step: Key
    outcome: Outcome
    figures: tuple[Figure, ...] = ()
    detail: Text = ""
    seconds: Seconds = 0.0


class Proof(Struct, tag_field="type", tag="proof", frozen=True, kw_only=True):
    """All steps on one device of one machine, in the order in which they were tried."""

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    started_at: Text
    duration_s: Seconds
    minutes: Finite
    device: Text
    environment: Environment
    steps: tuple[ProofStep, ...]

    def __post_init__(self) -> None:
        """Refuse a step that appears twice: nobody could say which of them holds."""
        names = [step.step for step in self.steps]
        if len(set(names)) < len(names):
            raise ValueError("steps: expected each step once")

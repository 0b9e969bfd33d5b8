"""What a machine proved of itself: proof.json."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Finite, Key, Seconds, Struct
from ci_perf.model.environment import CpuMachine, Environment
from ci_perf.model.metrics import Unit
from ci_perf.model.run import Tool

Outcome = Literal["held", "did_not_hold", "not_tried"]
# Why a step could not be tried: there was no time left; it is about another kind of device; what
# it needs is not there; launches differ too much by chance; another run held the device; somebody
# ended the proof; a launch failed; this version does not know the step.
Why = Literal["time", "device", "missing", "noise", "busy", "interrupted", "failed", "unknown"]

# The widest step has two figures per workload of a suite that ships, of which there are some 40.
MOST_FIGURES = 300
MOST_STEPS = 100
MOST_MINUTES = 1440.0
# Characters of a sentence about a step.
MOST_DETAIL = 5_000
Detail = Annotated[str, msgspec.Meta(max_length=MOST_DETAIL)]


class Figure(Struct, frozen=True, kw_only=True):
    """One number that a step measured; ``unit`` is `None` for a ratio."""

    name: Key
    value: Finite
    unit: Unit | None = None


Figures = Annotated[tuple[Figure, ...], msgspec.Meta(max_length=MOST_FIGURES)]


class Probed(Struct, frozen=True, kw_only=True):
    """What a step left: its figures, or, in words and by ``why``, why it has none.

    ``detail`` is a sentence about the figures, where they need one. ``broken`` says how a step came
    to a bad end while it was tried: it crashed or hung, which measuring would do as well.
    """

    figures: Figures = ()
    not_tried: Detail = ""
    why: Why = "missing"
    broken: Detail = ""
    detail: Detail = ""

    def __post_init__(self) -> None:
        """Refuse a figure that appears twice."""
        _check_distinct("figures", (figure.name for figure in self.figures))


class ProofStep(Struct, frozen=True, kw_only=True):
    """One step: what came of it, its figures, and how long it took.

    ``why`` is there just where it could not be tried.
    """

    step: Key
    outcome: Outcome
    why: Why | None = None
    figures: Figures = ()
    detail: Detail = ""
    seconds: Seconds = 0.0

    def __post_init__(self) -> None:
        """Refuse a figure that appears twice, and a reason that contradicts the outcome."""
        _check_distinct("figures", (figure.name for figure in self.figures))
        if (self.why is not None) != (self.outcome == "not_tried"):
            raise ValueError("why: expected it just where the outcome is not_tried")


class Proof(Struct, tag_field="type", tag="proof", frozen=True, kw_only=True):
    """All steps on one device of one machine, in the order in which they were tried.

    ``duration_s`` leaves out ``waited_s``, for which another run held the device.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    started_at: Annotated[str, msgspec.Meta(max_length=100)]
    duration_s: Seconds
    waited_s: Seconds = 0.0
    minutes: Annotated[float, msgspec.Meta(gt=0, le=MOST_MINUTES)]
    device: Annotated[str, msgspec.Meta(pattern=r"^(cpu|cuda:[0-9]{1,4})(?!\n)$")]
    environment: Environment
    steps: Annotated[tuple[ProofStep, ...], msgspec.Meta(max_length=MOST_STEPS)]

    def __post_init__(self) -> None:
        """Refuse a step that appears twice, and a device that the machine does not have."""
        _check_distinct("steps", (step.step for step in self.steps))
        kind = "cpu" if isinstance(self.environment.hard, CpuMachine) else "cuda"
        if self.kind != kind:
            raise ValueError(f"device: expected {kind}, as the machine has it")

    @property
    def kind(self) -> str:
        """Return "cpu" or "cuda"."""
        return self.device.partition(":")[0]


def _check_distinct(what: str, names: Iterable[str]) -> None:
    """Refuse what appears twice: nobody could say which of them counts. Raises ValueError."""
    every = list(names)
    if twice := {name for name in every if every.count(name) > 1}:
        raise ValueError(f"{what}: expected each once, found {min(twice)} twice")

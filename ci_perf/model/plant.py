"""A slowdown that `ci-perf try` plants into the head's side of a run. Only a command line asks."""

from typing import Literal

from ci_perf.model.base import Amount, AtLeastOne, Name, Struct

# Names the iterations, in the environment of a command: a loop of it (`ci_perf.steps`) does them.
PLANT_VARIABLE = "CI_PERF_PLANT"


class Plant(Struct, frozen=True, kw_only=True):
    """What is planted into each step of a workload: so many iterations of an empty loop.

    They are fixed once, for a step longer by ``share``, and are the same in each launch. ``kind``
    says what the worker does; measuring/planting.py does it.
    """

    workload: Name
    kind: Literal["work"] = "work"
    share: Amount
    iterations: AtLeastOne


def burn(iterations: int) -> None:
    """Do the work."""
    for _ in range(iterations):
        pass

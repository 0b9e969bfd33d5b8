"""What `ci-perf try` and `rehearse` plant into the head's launches. Only a command line asks."""

from typing import Literal

from ci_perf.model.base import Amount, Bytes, Count, Name, Struct

# Names the iterations, in the environment of a command: a loop of it (`ci_perf.steps`) does them.
PLANT_VARIABLE = "CI_PERF_PLANT"
PlantKind = Literal["work", "wait", "memory", "operator"]


class Plant(Struct, frozen=True, kw_only=True):
    """What each step of a workload does more: measuring/planting.py does it.

    Work is so many ``iterations`` of an empty loop, on a GPU cycles of a kernel, for a step longer
    by ``share``; they are fixed once, and are the same in each launch. A wait is for the GPU, an
    operator is one of torch on a single number. Memory is held all the time: ``held_bytes``.
    """

    workload: Name
    kind: PlantKind = "work"
    share: Amount = 0.0
    iterations: Count = 0
    held_bytes: Bytes = 0

    def __post_init__(self) -> None:
        """Refuse a plant that plants nothing."""
        size = {"work": self.iterations, "memory": self.held_bytes}.get(self.kind, 1)
        if not size:
            raise ValueError(f"expected a size of the planted {self.kind}, found 0")


def burn(iterations: int) -> None:
    """Do the work."""
    for _ in range(iterations):
        pass

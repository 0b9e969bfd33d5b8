"""Which generated kernels of two sides have the same code. It decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ci_perf.model.process import GeneratedKernel, Process


@dataclass(frozen=True, slots=True)
class KernelPairs:
    """Kernels of base and head: pairs with the ``same`` code, and ``other`` ones.

    A kernel of the other code has one or no partner, which is `None`.
    """

    same: Sequence[tuple[GeneratedKernel, GeneratedKernel]]
    other: Sequence[tuple[GeneratedKernel | None, GeneratedKernel | None]]

    @property
    def in_head(self) -> int:
        """How many kernels of the head have other code."""
        return sum(head is not None for _, head in self.other)


def pair_kernels(base: Sequence[GeneratedKernel], head: Sequence[GeneratedKernel]) -> KernelPairs:
    """Pair kernels by their code, then those that are left by name, then in their order."""
    by_code = {each.digest: each for each in base}
    exact = {(each.name, each.digest): each for each in base}
    same = [
        (exact.get((each.name, each.digest), by_code[each.digest]), each)
        for each in head
        if each.digest in by_code
    ]
    codes = {each.digest for each in head}
    old = [each for each in base if each.digest not in codes]
    new = [each for each in head if each.digest not in by_code]
    by_name: list[tuple[GeneratedKernel | None, GeneratedKernel | None]] = []
    for each in list(new):
        partner = next((before for before in old if before.name == each.name), None)
        if partner is not None:
            old.remove(partner)
            new.remove(each)
            by_name.append((partner, each))
    return KernelPairs(same, [*by_name, *zip_longest(old, new)])


def has_other_kernels(base: Process, head: Process) -> bool:
    """Whether the kernels of two processes differ: generated code, or the sequence on the GPU."""
    codes, works = (
        [getattr(each, name) for each in (base, head)] for name in ("generated", "device_work")
    )
    old, new = ({kernel.digest for kernel in code.kernels} if code else set() for code in codes)
    sequences = {work.sequence for work in works if work and work.sequence}
    return old != new or len(sequences) > 1

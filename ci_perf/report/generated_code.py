"""The kernels that torch.compile has generated: how many have the same code, which do not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.judging.generated import KernelPairs, pair_kernels
from ci_perf.model.process import GeneratedCode, GeneratedKernel, Profile
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.tables import Bullets, Fold

# Of a workload; what is left out is counted.
MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class CodeOfWorkload:
    """The kernels of both sides of a workload; ``absent`` says why they are not known."""

    workload: str
    pairs: KernelPairs
    absent: str

    @property
    def differences(self) -> list[Phrase]:
        """A line for each kernel that differs, more spilled or used registers first."""
        lines = [line for both in (*self.pairs.other, *self.pairs.same) for line in _tell(*both)]
        return [phrase for _, phrase in sorted(lines, key=lambda line: line[0])]


def compare(profile: Profile) -> CodeOfWorkload | None:
    """Compare the code of both sides; `None` where neither has any, or no base was launched."""
    sides = (profile.base, profile.head)
    codes = [side.generated or GeneratedCode() for side in sides if side]
    if len(codes) < len(sides) or not any(code.kernels or code.absent for code in codes):
        return None
    pairs = pair_kernels(*(code.kernels for code in codes))
    return CodeOfWorkload(profile.workload, pairs, next((c.absent for c in codes if c.absent), ""))


def count(every: Iterable[KernelPairs]) -> Words:
    """Count: "418 kernels: 412 with the same code, 6 other"."""
    pairs = list(every)
    same, other = sum(len(each.same) for each in pairs), sum(each.in_head for each in pairs)
    gone = sum(head is None for each in pairs for _, head in each.other)
    counts = [f"{same:,} with the same code"] * bool(same or not other + gone)
    counts += [f"{other:,} other"] * bool(other)
    counts += [f"{gone:,} only in the base"] * bool(gone)
    return Words(f"{units.render_count(same + other, 'kernel')}: {', '.join(counts)}")


def fold(profiles: Iterable[Profile], *, shown: int) -> Iterator[Fold]:
    """Yield the count of all workloads, and a line for each: those with other code first."""
    every = [code for code in map(compare, profiles) if code]
    known = [code for code in every if not code.absent]
    known.sort(key=lambda code: -len(code.pairs.other))
    lines = [
        *(_list_names(code) for code in known),
        *((code.workload, Words(" is not known: "), code.absent) for code in every if code.absent),
    ]
    if lines:
        total = count(code.pairs for code in known) if known else Words("not known")
        yield Fold(
            (Words("Code that torch.compile generates: "), total),
            [Bullets(cut(lines, shown, "workload"))],
            is_open=any(code.pairs.other for code in known),
        )


def cut(lines: Sequence[Phrase], shown: int, what: str) -> list[Phrase]:
    """Return as many lines as may be shown, and a last one that counts the others."""
    left = len(lines) - shown
    more = [(Words(units.render_count(left, f"more {what}")),)] if left > 0 else []
    return [*lines[:shown], *more]


def _list_names(code: CodeOfWorkload) -> Phrase:
    others = (head or base for base, head in code.pairs.other)
    names = dict.fromkeys(kernel.name for kernel in others if kernel)
    phrase: Phrase = (code.workload, Words(": "), count([code.pairs]))
    for place, name in enumerate([*names][:MOST_LINES]):
        phrase += (Words(", " if place else " ("), name)
    left = len(names) - MOST_LINES
    return phrase + (Words(f"{f' and {left:,} more' if left > 0 else ''})"),) * bool(names)


def _tell(
    base: GeneratedKernel | None, head: GeneratedKernel | None
) -> Iterator[tuple[tuple[int, int], Phrase]]:
    """Yield what differs of one kernel, if something does, with what sorts it: the worst first."""
    kernel = head or base
    assert kernel is not None
    facts = ["other code"] * bool(base and head and base.digest != head.digest)
    facts += ["only in the head"] * (base is None) + ["only in the base"] * (head is None)
    grown = []
    for what, name in (("registers", "registers"), ("spilled", "spills")):
        was, now = (getattr(each, name, None) for each in (base, head))
        if was is None or now is None:
            was = now = 0
        grown.append(now - was)
        facts += [f"{what} {was:,} → {now:,}"] if grown[-1] else []
    if facts:
        renamed: Phrase = (base.name, Words(" → ")) if base and base.name != kernel.name else ()
        yield (-grown[1], -grown[0]), (*renamed, kernel.name, Words(f": {', '.join(facts)}"))

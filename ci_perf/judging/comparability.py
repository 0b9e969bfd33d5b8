"""Whether two sides of a workload may be compared: machine, software, parameters, clocks."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ci_perf.model.comparison import Difference
from ci_perf.model.environment import Software, with_memory_of
from ci_perf.model.suite import Tiers
from ci_perf.model.summary import Subject

NONE = "none"


def obstacles(base: Subject, head: Subject, tiers: Tiers) -> tuple[str, str] | None:
    """Return a reason code and the differing fields, or `None` when nothing is in the way."""
    machine = with_memory_of(base.machine, head.machine)
    if hard := _different(_facts(base.machine), _facts(machine)):
        return "other_machine", _spell(hard)
    soft = _different_software(base, head)
    if promoted := [difference for difference in soft if difference.field in tiers.hard]:
        return "other_software", _spell(promoted)
    if parameters := _different(base.parameters, head.parameters):
        return "other_parameters", _spell(parameters)
    if step := _different(_step(base), _step(head)):
        return "other_step", _spell(step)
    return None


def soft_differences(pairs: Iterable[tuple[Subject, Subject]]) -> tuple[Difference, ...]:
    """Collect what is not the same in the software of the two sides, each difference once."""
    differences = {
        difference for base, head in pairs for difference in _different_software(base, head)
    }
    return tuple(sorted(differences, key=lambda d: (d.field, d.base, d.head)))


def _step(subject: Subject) -> dict[str, object]:
    """Return what one step time stands for: of twice the work it may well be twice as long."""
    return {
        "items_per_step": subject.items_per_step,
        "item_unit": subject.item_unit,
        "statistic": subject.statistic,
    }


def _latest(subject: Subject) -> dict[str, object]:
    soft: Software = subject.sessions[-1].soft
    return _facts(soft)


def _different_software(base: Subject, head: Subject) -> list[Difference]:
    """Compare the software of two sides; older records do not know the packages."""
    sides = (_latest(base), _latest(head))
    known = all(side["packages"] for side in sides)
    return [d for d in _different(*sides) if known or d.field != "packages"]


def _facts(struct: msgspec.Struct) -> dict[str, object]:
    """Return the fields by name, the kind of machine (its tag) among them."""
    facts: dict[str, object] = msgspec.to_builtins(struct)
    return facts


def _different(base: Mapping[str, object], head: Mapping[str, object]) -> list[Difference]:
    return [
        _difference(key, base.get(key), head.get(key))
        for key in sorted(base.keys() | head.keys())
        if base.get(key) != head.get(key)
    ]


def _difference(field: str, base: object, head: object) -> Difference:
    """Spell two values; by their types, too, where they would look the same (1 and "1")."""
    spelled = (_text(base), _text(head))
    if spelled[0] == spelled[1]:
        spelled = (repr(base), repr(head))
    return Difference(field=field, base=spelled[0], head=spelled[1])


def _text(value: object) -> str:
    return NONE if value is None else str(value)


def _spell(differences: list[Difference]) -> str:
    return ", ".join(f"{d.field}: {d.base} → {d.head}" for d in differences)


# --- clocks of two sides that were launched in turns

# As large as the smallest change of a time that is claimed by default: a clock that differs by less
# cannot explain one.
CLOCK_TOLERANCE = 0.01

Pairs = Sequence[tuple[float, float]]


def clocks_differ(times: Pairs, cycles: Pairs) -> bool:
    """Say whether the head's clock was, on average, another one than the base's.

    Logarithms of (base, head), per pair. What took as many cycles in less time ran at a higher
    clock. Nothing is claimed where cycles are known of some pairs only.
    """
    if not times or len(cycles) != len(times):
        return False
    clocks = [
        (head_cycles - base_cycles) - (head - base)
        for (base, head), (base_cycles, head_cycles) in zip(times, cycles, strict=True)
    ]
    return abs(statistics.fmean(clocks)) > CLOCK_TOLERANCE

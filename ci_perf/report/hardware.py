"""Machines by what they do, and by what that costs, as a page of sentences and tables."""

from collections.abc import Iterator

from ci_perf.model.hardware import (
    Estimate,
    Hardware,
    HardwareClass,
    HardwareFigures,
    HardwareWorkload,
)
from ci_perf.model.metrics import ENERGY
from ci_perf.report import phrases, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.tables import Listing, Page, Phrase, Table

_SHOWN = 12
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ENERGY = phrases.unit(ENERGY.name)


def page(hardware: Hardware) -> Page:
    """Say which machine is the fastest and which the cheapest, then the tables they come from."""
    parts: list[Phrase | Table | Listing] = [headline(hardware), _subline(hardware)]
    parts += [(Words("note: "), Sentence(note)) for note in hardware.notes]
    parts += [_shared(hardware), _classes(hardware)]
    for each in hardware.workloads:
        parts += [(each.workload,), _workload(hardware, each), *_absent(hardware, each)]
    parts.append((_RANKS,))
    if hardware.currency:
        parts += [(Words("Prices, by their owner"),), _prices(hardware)]
    return parts


_RANKS = Words(
    "Ranges are of 95 %, from launches (from sessions, where a machine has three). A rank counts "
    "the machines that are surely better, and one: where ranges overlap, machines share it."
)


def headline(hardware: Hardware) -> Phrase:
    """Name the first of each order; several, where ranges overlap."""
    by_machine = {each.machine: each.name for each in reversed(hardware.classes)}
    first = {each.machine for each in hardware.classes if each.speed_rank == 1}
    fastest = [name for machine, name in reversed(by_machine.items()) if machine in first]
    cheapest = [each.name for each in hardware.classes if each.value_rank == 1]
    if not fastest:
        return (Words("No workload was measured on all machines: nothing orders them"),)
    said: Phrase = (Words("Fastest: "), *_listed(fastest))
    if not cheapest:
        return said
    return (*said, Words("; most for the money: "), *_listed(cheapest))


def _listed(names: list[str]) -> Iterator[str]:
    for index, each in enumerate(names):
        if index:
            yield Words(" or ")
        yield each


def _subline(hardware: Hardware) -> Phrase:
    number = len({each.machine for each in hardware.classes})
    machines = units.numbered(number, "class of machines", "classes of machines")
    workloads = units.numbered(len(hardware.workloads), "workload")
    return (
        Words(f"{machines}, {workloads} of "),
        hardware.suite,
        Words(" at "),
        hardware.source.commit[:_SHOWN],
    )


def _shared(hardware: Hardware) -> Phrase:
    shared = sum(each.is_shared for each in hardware.workloads)
    number = units.numbered(shared, "workload")
    return (
        Words(f"The whole suite: geometric mean over {number} that all machines have measured, "),
        Words("as a multiple of "),
        hardware.classes[0].name,
    )


def _classes(hardware: Hardware) -> Table:
    priced = bool(hardware.currency)
    heading = ["machine", "rank", "speed", "launches"]
    if priced:
        heading += [f"{hardware.currency} per hour", "rank by price", "speed per price"]
    return Table(heading, [_class(each, is_priced=priced) for each in hardware.classes])


def _class(each: HardwareClass, *, is_priced: bool) -> tuple[str | Phrase, ...]:
    cells: tuple[str | Phrase, ...] = (
        each.name,
        _rank(each.speed_rank),
        (_multiple(each.speed),),
        (units.count(each.launches),),
    )
    if not is_priced:
        return cells
    price = units.NOTHING if each.price is None else Words(f"{each.price.per_hour:,.4g}")
    return (*cells, (price,), _rank(each.value_rank), (_multiple(each.value),))


def _workload(hardware: Hardware, workload: HardwareWorkload) -> Table:
    item = workload.item_unit
    heading = ["machine", "rank", f"{units.plural(item)}/s", "energy per item", "MFU"]
    priced = bool(hardware.currency)
    if priced:
        heading += [
            "rank by price",
            f"{units.plural(item)} per {hardware.currency}",
            f"{hardware.currency} per million",
        ]
    rows = [
        _figures(each, figures, is_priced=priced)
        for each, figures in zip(hardware.classes, workload.figures, strict=True)
    ]
    return Table(heading, rows)


def _figures(
    of_class: HardwareClass, figures: HardwareFigures, *, is_priced: bool
) -> tuple[str | Phrase, ...]:
    if figures.items_per_s is None:
        return (of_class.name, *[(units.NOTHING,)] * (7 if is_priced else 4))
    energy = units.NOTHING if figures.energy_j is None else units.value(figures.energy_j, _ENERGY)
    cells: tuple[str | Phrase, ...] = (
        of_class.name,
        _rank(figures.rank),
        (_amount(figures.items_per_s),),
        (energy,),
        (units.NOTHING if figures.mfu is None else units.share(figures.mfu),),
    )
    if not is_priced:
        return cells
    return (
        *cells,
        _rank(figures.per_money_rank),
        (_amount(figures.per_money),),
        (_amount(figures.million_cost),),
    )


def _absent(hardware: Hardware, workload: HardwareWorkload) -> Iterator[Phrase]:
    """Say why a machine has no numbers."""
    for each, figures in zip(hardware.classes, workload.figures, strict=True):
        if figures.items_per_s is None:
            yield (each.name, Words(": "), Sentence(figures.absent))


def _prices(hardware: Hardware) -> Table:
    heading = ("price", "machine", "per hour", "as of", "days ago", "source")
    rows = [
        (
            each.name,
            each.machine,
            (Words(f"{each.price.per_hour:,.6g} {hardware.currency}"),),
            (Words(each.price.as_of),),
            (units.count(each.age_days or 0),),
            (Sentence(each.price.source),),
        )
        for each in hardware.classes
        if each.price is not None
    ]
    return Table(heading, rows, left=("machine", "as of", "source"))


def _rank(rank: int | None) -> Phrase:
    return (units.NOTHING if rank is None else Words(str(rank)),)


def _multiple(estimate: Estimate | None) -> Words:
    """2.41x [2.38, 2.44]."""
    if estimate is None:
        return units.NOTHING
    return Words(f"{estimate.value:.3g}\N{MULTIPLICATION SIGN}{_range(estimate)}")


def _amount(estimate: Estimate | None) -> Words:
    """12.3k [12.1, 12.5]: the range in the unit of the value."""
    if estimate is None:
        return units.NOTHING
    scale, name = next(
        ((scale, name) for scale, name in _SCALES if estimate.value >= scale), (1.0, "")
    )
    low, high = estimate.low, estimate.high
    scaled = Estimate(
        value=estimate.value / scale,
        low=None if low is None else low / scale,
        high=None if high is None else high / scale,
    )
    return Words(f"{_digits(scaled.value)}{name}{_range(scaled)}")


def _range(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return " [one launch]"
    return f" [{_digits(estimate.low)}, {_digits(estimate.high)}]"


def _digits(number: float) -> str:
    """Three digits: 0.0123, 1.23, 123; beyond a thousand all of the whole number."""
    if number >= 1e6 or 0 < number < 1e-4:
        return f"{number:.2e}"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"

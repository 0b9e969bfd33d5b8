"""Tables that explain the judged metrics: epochs, use of GPUs, compilation."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

from ci_perf.model.metrics import Unit
from ci_perf.model.process import Profile
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.tables import Block, Fold, Table

_INTRODUCTION = Words(
    "They explain the numbers above, and decide nothing. GPUs and parts of a step are those of the "
    "base only where it was launched, too; parts are timed in a pass of their own."
)
_CACHES = {"empty": "cold", "filled": "warm"}


def fold(profiles: Sequence[Profile], *, shown: int) -> Iterator[Fold]:
    """Yield a table of at most `shown` rows for everything that is known, if something is."""
    tables = {
        title: Table(heading, rows, left=("part", "GPU", "caches", "eager"))
        for title, heading, list_rows in (
            ("time of an epoch", ("workload", "throughput", "epoch"), _list_epochs),
            ("parts of a step", ("workload", "part", "by the host", "by the device"), _list_parts),
            ("GPUs", ("workload", "GPU", "utilisation", "power", "memory in use"), _list_gpus),
            (
                "compilation",
                ("workload", "caches", "first step", "each later step", "pays after", "eager"),
                _list_compilations,
            ),
        )
        if (rows := [row for profile in profiles for row in list_rows(profile)])
    }
    page: list[Block] = [(_INTRODUCTION,)]
    for title, table in tables.items():
        more = len(table.rows) > shown
        cut = f" ({shown:,} of {len(table.rows):,} rows)" if more else ""
        page.append((Words(f"{title[0].upper()}{title[1:]}{cut}:"),))
        page.append(dataclasses.replace(table, rows=table.rows[:shown]))
    if tables:
        yield Fold((Words(f"More about the workloads: {', '.join(tables)}"),), page, is_open=True)


def _list_epochs(profile: Profile) -> Iterator[Phrase]:
    """Yield the throughput of both sides, and how long all training data take."""
    items = profile.items_per_epoch
    if items is None:
        return
    sides = [side.step_time_s for side in (profile.base, profile.head) if side]
    steps = items / profile.items_per_step
    epochs = [steps * step_s for step_s in sides]
    shown = (units.duration(s) if s >= 60 else units.seconds(s) for s in epochs)
    rates = (units.throughput(profile.items_per_step, s, profile.item_unit) for s in sides)
    yield profile.workload, _render_sides(rates), Words(" → ".join(dict.fromkeys(shown)))


def _render_sides(sides: Iterable[Words]) -> Words:
    """Show the base, where it is known, and the head."""
    known = list(sides)
    return units.both(known[0], known[-1])


def _list_parts(profile: Profile) -> Iterator[Phrase]:
    """Yield how long each named part of a step takes, by the clocks of the host and the device."""
    before = profile.base.phases if profile.base else {}
    for name in before | profile.head.phases:
        sides = [side.get(name) for side in (before, profile.head.phases) if side]
        yield (
            profile.workload,
            name,
            _render_sides(_value(part.host_s if part else None, Unit.SECOND) for part in sides),
            _render_sides(_value(part.device_s if part else None, Unit.SECOND) for part in sides),
        )


def _list_gpus(profile: Profile) -> Iterator[Phrase]:
    """Yield what each GPU of the head did, beside what it did for the base."""
    before = {gpu.uuid: gpu for gpu in profile.base.gpus} if profile.base else {}
    for gpu in profile.head.gpus:
        sides = [side for side in (before.get(gpu.uuid), gpu) if side]
        yield (
            profile.workload,
            gpu.uuid,
            _render_sides(_value(side.utilization, Unit.SHARE) for side in sides),
            _render_sides(_value(side.power_w, Unit.WATT) for side in sides),
            _render_sides(_value(side.memory_peak_bytes, Unit.BYTE) for side in sides),
        )


def _value(number: float | None, unit: Unit) -> Words:
    return units.NOTHING if number is None else units.value(number, unit)


def _list_compilations(profile: Profile) -> Iterator[Phrase]:
    """Yield what compiling costs and gains, and after how many steps, in all, it is ahead."""
    for each in profile.break_evens:
        pays = Words("not faster")
        if each.is_faster and each.gain_s > 0:
            pays = units.render_count(1 + max(0, math.ceil(each.cost_s / each.gain_s)), "step")
        yield (
            profile.workload,
            Words(_CACHES[each.cache]),
            units.difference(0, each.cost_s, Unit.SECOND),
            units.difference(0, -each.gain_s, Unit.SECOND),
            pays,
            each.eager,
        )

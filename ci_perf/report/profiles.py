"""Tables that explain the judged metrics: epochs, use of GPUs, compilation, first losses."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.model.metrics import Unit
from ci_perf.model.process import BreakEven, GpuUse, Profile
from ci_perf.model.run import Run
from ci_perf.report import phrases, units
from ci_perf.report.escape import Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Page, Table

_INTRODUCTION = Words(
    "Measured of the head alone, to explain the numbers above. No verdict depends on them."
)
# Readings of the monitor that the table of GPUs shows.
_READINGS = {"utilization": "utilisation", "power_w": "power", "used_peak_bytes": "memory in use"}
_CACHES = {"empty": "cold", "filled": "warm"}
_LOSSES_INTRODUCTION = Words(
    "Losses of the first steps, in the first process of each workload. `fingerprint_steps` in "
    "suite.toml says how many steps are recorded."
)
# The heading of a column, and the losses below it.
_Column = tuple[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class _Section:
    """A table with its title; nothing is shown of one without rows."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Phrase]
    left: Sequence[str] = ()


def summary(profiles: Sequence[Profile]) -> Phrase:
    """Name in one line what is known; empty where nothing is."""
    titles = ", ".join(section.title for section in _sections(profiles))
    return (Words(f"More about the head: {titles}"),) if titles else ()


def page(profiles: Sequence[Profile], *, shown: int) -> Page:
    """Show a table of at most `shown` rows for everything that is known."""
    parts: list[Phrase | Table] = [(_INTRODUCTION,)]
    for section in _sections(profiles):
        more = len(section.rows) > shown
        cut = f" ({shown:,} of {len(section.rows):,} rows)" if more else ""
        parts.append((Words(f"{section.title[0].upper()}{section.title[1:]}{cut}:"),))
        parts.append(Table(section.heading, section.rows[:shown], section.left))
    return [*parts, *_absent(profiles)]


def _sections(profiles: Sequence[Profile]) -> list[_Section]:
    gpus = [(profile.workload, *_use(gpu)) for profile in profiles for gpu in profile.gpus]
    compiled = [
        (profile.workload, *_break_even(break_even))
        for profile in profiles
        for break_even in profile.break_evens
    ]
    every = [
        _Section("time of an epoch", ("workload", "throughput", "epoch"), list(_epochs(profiles))),
        _Section("GPUs", ("workload", "GPU", *_READINGS.values()), gpus, left=("GPU",)),
        _Section(
            "compilation",
            ("workload", "caches", "first step", "each later step", "pays after", "eager"),
            compiled,
            left=("caches", "eager"),
        ),
    ]
    return [section for section in every if section.rows]


def _epochs(profiles: Iterable[Profile]) -> Iterator[Phrase]:
    for profile in profiles:
        if profile.epoch_s is not None:
            rate = units.throughput(profile.items_per_step, profile.step_time_s, profile.item_unit)
            yield profile.workload, rate, _long(profile.epoch_s)


def _long(seconds: float) -> Words:
    return units.duration(seconds) if seconds >= 60 else units.seconds(seconds)


def _use(gpu: GpuUse) -> Phrase:
    return (
        gpu.uuid,
        _value(gpu.utilization, Unit.SHARE),
        _value(gpu.power_w, Unit.WATT),
        _value(gpu.memory_peak_bytes, Unit.BYTE),
    )


def _value(number: float | None, unit: Unit) -> Words:
    return units.NOTHING if number is None else units.value(number, unit)


def _absent(profiles: Iterable[Profile]) -> Page:
    """Say what the driver answered for readings that are absent, each answer once."""
    answers: dict[tuple[str, str], dict[str, None]] = {}
    for gpu in (gpu for profile in profiles for gpu in profile.gpus):
        for name in _READINGS.keys() & gpu.absent.keys():
            answers.setdefault((_READINGS[name], gpu.absent[name]), {})[gpu.uuid] = None
    return [
        (Words(f"No {title} of "), *phrases.joined((uuid,) for uuid in uuids), Words(": "), said)
        for (title, said), uuids in sorted(answers.items())
    ]


def _break_even(break_even: BreakEven) -> Phrase:
    steps = break_even.steps
    return (
        Words(_CACHES[break_even.cache]),
        units.difference(0, break_even.cost_s, Unit.SECOND),
        units.difference(0, -break_even.gain_s, Unit.SECOND),
        Words("not faster") if steps is None else units.numbered(steps, "step"),
        break_even.eager,
    )


def losses(runs: Sequence[tuple[str, Run]]) -> Page:
    """Show a table for each workload file: a row per step, a column per workload and run.

    `runs` are pairs of a word for the headings, empty for a single run, and the run.
    """
    columns: dict[str, dict[str, list[_Column]]] = {}
    without: list[str] = []
    for side, run in runs:
        for workload in run.measured:
            name, _, variant = workload.workload.partition(".")
            if noted := workload.processes[0].fingerprint.losses:
                heading = " ".join(filter(None, (variant or name, side)))
                columns.setdefault(name, {}).setdefault(variant, []).append((heading, noted))
            else:
                without.append(workload.workload)
    tables = [
        part
        for name, variants in columns.items()
        for part in _titled(name, [column for sides in variants.values() for column in sides])
    ]
    return [[_LOSSES_INTRODUCTION], *tables, *_left_out(without)]


def _titled(name: str, columns: Sequence[_Column]) -> Page:
    """Show the name that workloads share above their table."""
    headings, values = zip(*columns, strict=True)
    steps = itertools.zip_longest(*values)
    rows = [(Words(f"{number}"), *map(_cell, row)) for number, row in enumerate(steps, start=1)]
    return [[name], Table(("step", *headings), rows)]


def _cell(loss: float | None) -> Words:
    return units.NOTHING if loss is None else Words(f"{loss:#.6g}".replace("-", units.MINUS))


def _left_out(names: Sequence[str]) -> Page:
    every = list(dict.fromkeys(names))
    return (
        [[Words("Without a loss: "), *phrases.joined((name,) for name in every)]] if every else []
    )

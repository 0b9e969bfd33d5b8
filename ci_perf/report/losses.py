"""The losses of the first steps, workloads side by side: one optimizer beside another."""

import itertools
from collections.abc import Sequence

from ci_perf.model.run import Measured, Run
from ci_perf.report import units, words
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Table

_INTRODUCTION = Words(
    "Losses of the first steps, in the first process of each workload. `fingerprint_steps` in "
    "suite.toml says how many steps are noted."
)
# The heading of a column, and the losses below it.
_Column = tuple[str, tuple[float, ...]]


def page(runs: Sequence[tuple[str, Run]]) -> Page:
    """Show a table for each workload file: a row per step, a column per workload and run.

    `runs` are runs with the word that names each in a heading, empty for a single one.
    """
    columns: dict[str, dict[str, list[_Column]]] = {}
    without: list[str] = []
    for side, run in runs:
        for workload in run.measured:
            name, _, variant = workload.workload.partition(".")
            if losses := _losses(workload):
                heading = " ".join(filter(None, (variant or name, side)))
                found = columns.setdefault(name, {}).setdefault(variant, [])
                found.append((heading, losses))
            else:
                without.append(workload.workload)
    tables = [
        part
        for name, variants in columns.items()
        for part in _titled(name, [column for sides in variants.values() for column in sides])
    ]
    return [[_INTRODUCTION], *tables, *_left_out(without)]


def _losses(workload: Measured) -> tuple[float, ...]:
    return workload.processes[0].fingerprint.losses


def _titled(name: str, columns: Sequence[_Column]) -> Page:
    """Show the name that workloads share above their table."""
    headings, losses = zip(*columns, strict=True)
    steps = itertools.zip_longest(*losses)
    rows = [(Words(f"{number}"), *map(_cell, row)) for number, row in enumerate(steps, start=1)]
    return [[name], Table(("step", *headings), rows)]


def _cell(loss: float | None) -> Words:
    return units.NOTHING if loss is None else Words(f"{loss:#.6g}".replace("-", units.MINUS))


def _left_out(names: Sequence[str]) -> Page:
    every = list(dict.fromkeys(names))
    return [[Words("Without a loss: "), *words.joined((name,) for name in every)]] if every else []

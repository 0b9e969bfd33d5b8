"""Runs of one suite beside each other, with the prices of their machines. Launches nothing."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.gate.compare import read_run
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.report import side_by_side
from ci_perf.report.side_by_side import Prices
from ci_perf.report.tables import Page
from ci_perf.system import files


def page(sources: Sequence[Run | Path], prices: Path | None) -> Page:
    """Show runs as the columns of a table, with what a million items cost by the file of prices.

    Raises InvalidFileError (a run; prices.toml, or one without a price of a machine) and UsageError
    (runs of different suites, or of different code on different machines).
    """
    runs = [(label, run) for run, label in map(read_run, sources)]
    machines = ((label, layout.machine_key(run.environment.hard)) for label, run in runs)
    return side_by_side.page(runs, None if prices is None else read_prices(prices, machines))


def read_prices(path: Path, machines: Iterable[tuple[str, str]]) -> Prices:
    """Read prices.toml, which has to know each machine, named with what it has measured.

    Raises InvalidFileError.
    """
    try:
        data = tomllib.loads(files.read_text(path))
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{path}: expected TOML, found: {error}") from None
    prices = codec.convert(data, Prices, name=str(path))
    for label, machine in machines:
        if machine not in prices.per_hour:
            hint = codec.did_you_mean(machine, list(prices.per_hour))
            raise InvalidFileError(
                f"{path}: $.per_hour: expected the price of {machine}, the machine of {label}, "
                f"found none; {hint}"
            )
    return prices

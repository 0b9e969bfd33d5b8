"""What checks have taken, month by month: from their comparison.json files. Launches nothing."""

import math
from collections.abc import Iterator
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.gate import side_by_side
from ci_perf.model.comparison import Comparison
from ci_perf.model.summary import Cost
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.side_by_side import Prices
from ci_perf.report.tables import Page, Table
from ci_perf.system import files

_MONTH = len("2026-11")
_HOUR_S = 3600
_FILE = "comparison.json"


def page(folder: Path, prices: Path | None) -> Page:
    """Show the costs of all comparisons below a folder, by month and machine, each run once.

    Raises UsageError (no comparison) and InvalidFileError (a comparison, or the file of prices).
    """
    paths = sorted(folder.rglob(_FILE))
    if not paths:
        raise UsageError(
            f"--cost {folder}: expected files called {_FILE} below it, found none; download them, "
            "for example with `gh run download --dir FOLDER`"
        )
    read = {
        each.head.run: (path, each) for path in paths for each in [files.read(path, Comparison)]
    }
    months: dict[tuple[str, str], list[Cost]] = {}
    labels: dict[str, str] = {}
    for path, comparison in read.values():
        machine, cost = comparison.head.machine, comparison.cost
        if machine is not None and cost is not None:
            key = layout.machine_key(machine)
            labels.setdefault(key, str(path))
            months.setdefault((cost.started_at[:_MONTH], key), []).append(cost)
    known = (
        side_by_side.read_prices(prices, [(label, key) for key, label in labels.items()])
        if prices
        else None
    )
    heading = ["month", "machine", "checks", "launches", "saved", "launched", "waited", "held"]
    table = Table(
        heading=(*heading, *([known.currency] if known else [])),
        rows=[_row(*key, months[key], known) for key in sorted(months)],
        left=("month", "machine"),
    )
    return (table, *_note_unknown(len(read) - sum(map(len, months.values()))))


def _row(month: str, machine: str, costs: list[Cost], prices: Prices | None) -> list[Phrase | str]:
    held_s = math.fsum(each.held_s for each in costs)
    money = prices.per_hour[machine] * held_s / _HOUR_S if prices else 0.0
    return [
        month,
        machine,
        Words(f"{len(costs):,}"),
        Words(f"{sum(each.launches for each in costs):,}"),
        Words(f"{sum(each.saved for each in costs):,}"),
        units.duration(math.fsum(each.launched_s for each in costs)),
        units.duration(math.fsum(each.waited_s for each in costs)),
        units.duration(held_s),
        *([Words(f"{money:,.2f}")] if prices else []),
    ]


def _note_unknown(count: int) -> Iterator[Phrase]:
    if count:
        runs = units.render_count(count, "comparison")
        yield (Words(f"Without a cost, of an older ci-perf or of no machine: {runs}."),)

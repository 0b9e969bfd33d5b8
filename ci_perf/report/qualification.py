"""What a machine was found to notice, and how often it cried wolf, for its owner."""

import math
import statistics

from ci_perf.judge.policy import LOOKS
from ci_perf.model.calibration import Qualification, QualifiedWorkload, Replays
from ci_perf.report import tables, units
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table

# The share at which a smallest detectable change counts as detected, too.
_NOTICED = 0.8


def markdown(found: Qualification) -> str:
    """Render for a job summary."""
    return tables.markdown(_page(found))


def terminal(found: Qualification, *, width: int, color: bool) -> str:
    """Render for a terminal."""
    return tables.terminal(_page(found), width=width, color=color)


def _page(found: Qualification) -> Page:
    return [
        _conclusion(found),
        *([_missed(found)] if _unnoticed(found) else []),
        _table(found),
        _explained(found),
        *([_few(found)] if _fewest_pairs(found) < LOOKS[-1] else []),
    ]


def _conclusion(found: Qualification) -> Phrase:
    noticed = len(found.workloads) - len(_unnoticed(found))
    every = units.numbered(len(found.workloads), "workload")
    alarms = statistics.fmean(_alarms(one.same) for one in found.workloads.values())
    return [
        Words(f"This machine notices {_size(found)} in {noticed} of {every}, "),
        Words(f"and raises an alarm in {units.counted(alarms)} of confirmations without a change."),
    ]


def _missed(found: Qualification) -> Phrase:
    phrase: list[str] = [Words(f"Found in fewer than {units.counted(_NOTICED)} of confirmations: ")]
    for name in _unnoticed(found):
        one = found.workloads[name]
        beyond = ", its limit is not smaller" if one.limit >= found.size else ""
        phrase += [name, Words(f" ({units.counted(one.slower.regressed)}{beyond}), ")]
    return [*phrase[:-1], Words(phrase[-1].removesuffix(", ") + ".")]


def _table(found: Qualification) -> Table:
    slower = _size(found)
    heading = [
        "workload",
        "limit",
        "pairs differ by",
        "no change: said",
        "false alarms",
        "undecided",
        "pairs",
        f"{slower}: said",
        "measured",
        "found",
        "undecided",
        "pairs",
    ]
    rows = [_row(name, one) for name, one in found.workloads.items()]
    return Table(heading, rows, left=["no change: said", f"{slower}: said"])


def _row(name: str, one: QualifiedWorkload) -> list[str]:
    same, slower = one.same, one.slower
    return [
        name,
        units.limit(one.limit),
        units.share(one.spread),
        Words(same.call),
        units.counted(_alarms(same)),
        units.counted(same.inconclusive),
        Words(f"{same.pairs:.1f}"),
        Words(slower.call),
        units.percent(math.expm1(slower.estimate)),
        units.counted(slower.regressed),
        units.counted(slower.inconclusive),
        Words(f"{slower.pairs:.1f}"),
    ]


def _explained(found: Qualification) -> Phrase:
    return [
        Words(f"Said: the verdict on the pairs as they were launched, {_pairs(found)} per "),
        Words("workload and change. The shares are of "),
        Words(f"{found.replays:,} confirmations per workload and change, replayed with pairs "),
        Words("drawn from these, with replacement: they are no more certain than so many "),
        Words("independent pairs can make them."),
    ]


def _few(found: Qualification) -> Phrase:
    return [
        Words(f"A confirmation may take {LOOKS[-1]} pairs, and {_fewest_pairs(found)} were "),
        Words("launched: the shares promise too much. Ask for more "),
        "--rounds",
        Words("."),
    ]


def _pairs(found: Qualification) -> str:
    counts = {one.pairs for one in found.workloads.values()}
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _fewest_pairs(found: Qualification) -> int:
    return min(one.pairs for one in found.workloads.values())


def _unnoticed(found: Qualification) -> list[str]:
    return [n for n, one in found.workloads.items() if one.slower.regressed < _NOTICED]


def _alarms(replays: Replays) -> float:
    return replays.regressed + replays.improved


def _size(found: Qualification) -> Words:
    return units.percent(found.size)

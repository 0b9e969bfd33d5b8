"""Tables for the owner of a machine: what `calibrate` chose, and what `qualify` noticed."""

import math
import statistics

from ci_perf.judging.calibration import MOST_INCONCLUSIVE, STATISTICS
from ci_perf.judging.policy import LOOKS
from ci_perf.model.baseline import (
    CalibratedWorkload,
    Calibration,
    Noise,
    Qualification,
    QualifiedWorkload,
    Replays,
)
from ci_perf.report import units
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table

_STATISTICS = {"median": "the middle block", "p25": "the block at 25 %", "min": "the fastest block"}
_NOISE: dict[Noise, str] = {
    "quiet": "Noise: quiet. The time by the wall decides.",
    "crowded": (
        "Noise: crowded. Other programs take the CPU, and CPU time differs less: where the time by "
        "the wall has no answer, CPU time gives one. It does not see waiting (a sleep, a lock, a "
        "slow disk)."
    ),
    "shared_host": (
        "Noise: launches differ, and CPU time does not help: the host of this machine, its caches "
        "or its clocks are shared. Exact evidence (operators, FLOPs, memory), pairs of processes "
        "that alternate, a larger limit or another machine help."
    ),
}
# The share of confirmations that the smallest detectable change is defined by, too.
_NOTICED = 0.8


def page(result: Calibration | Qualification) -> Page:
    """Show the outcome: a sentence with the result, then tables, then what the words mean."""
    return _qualification(result) if isinstance(result, Qualification) else _calibration(result)


def _calibration(calibration: Calibration) -> Page:
    return [
        _headline(calibration),
        _noise(calibration),
        _statistic(calibration),
        *([_blindness()] if calibration.statistic == "min" else []),
        _limit(calibration),
        _workloads(calibration),
        *([_two_modes(calibration)] if _with_two_modes(calibration) else []),
        _explained(calibration),
    ]


def _headline(calibration: Calibration) -> Phrase:
    return [
        Words("This machine: statistic "),
        Words(calibration.statistic),
        Words(f", limit {units.limit(calibration.limit)}"),
        Words(f", by {units.numbered(len(calibration.workloads), 'workload')} of suite "),
        calibration.provenance.suite,
    ]


def _statistic(calibration: Calibration) -> Phrase:
    spreads = ", ".join(
        f"{name} {units.share(calibration.launches[name])}"
        for name in STATISTICS
        if name in calibration.launches
    )
    return [
        Words(f"Statistic: {_STATISTICS[calibration.statistic]} represents a launch. "),
        Words(f"Launches of the same code typically differ by: {spreads}. "),
        Words("A statistic of fewer blocks is chosen only if it is a quarter less noisy."),
    ]


def _noise(calibration: Calibration) -> Phrase:
    """Say which of three cases the machine is, and what follows for its verdicts."""
    says = _NOISE[calibration.noise]
    if calibration.launches_cpu is not None:
        says += (
            f" CPU time of launches typically differs by {units.share(calibration.launches_cpu)}."
        )
    if calibration.trimmed:
        says += " The mean of pairs leaves out the outermost fifth on each side."
    return [Words(says)]


def _blindness() -> Phrase:
    return [
        Words("The fastest block hides what slows only some of the steps: an occasional pause "),
        Words("does not show in the step time. The metric "),
        "step_p95_s",
        Words(" shows it."),
    ]


def _limit(calibration: Calibration) -> Phrase:
    share = calibration.inconclusive
    if share > MOST_INCONCLUSIVE:
        return [
            Words(f"Limit: none up to {units.limit(calibration.limit)} of a step time: it leaves "),
            Words(f"{units.counted(share)} of unchanged workloads undecided. A quieter machine "),
            Words("or longer blocks would decide more."),
        ]
    return [
        Words(f"Limit: {units.limit(calibration.limit)} of a step time is the smallest that "),
        Words(f"leaves at most {units.limit(MOST_INCONCLUSIVE)} of unchanged workloads "),
        Words("undecided. suite.toml decides which limit holds; below this one, rows end without "),
        Words("an answer more often."),
    ]


def _workloads(calibration: Calibration) -> Table:
    heading = [
        "workload",
        "step time",
        "launches differ by",
        "pairs differ by",
        "smallest detectable",
        "pairs",
        "undecided",
        "note",
    ]
    rows = [_row(name, workload, calibration) for name, workload in calibration.workloads.items()]
    return Table(heading, rows, left=["note"])


def _row(name: str, workload: CalibratedWorkload, calibration: Calibration) -> list[str]:
    return [
        name,
        units.seconds(workload.step_time_s),
        units.share(workload.launches[workload.statistic]),
        units.share(workload.pairs),
        units.share(workload.smallest_detectable),
        Words(f"{workload.expected_pairs:.1f}"),
        units.counted(workload.inconclusive),
        _note(workload, calibration),
    ]


def _note(workload: CalibratedWorkload, calibration: Calibration) -> Words:
    own = (
        [f"suite.toml says {workload.statistic}"]
        if workload.statistic != calibration.statistic
        else []
    )
    return Words("; ".join([*own, *(["two modes"] if workload.two_modes else [])]))


def _with_two_modes(calibration: Calibration) -> list[str]:
    return [name for name, workload in calibration.workloads.items() if workload.two_modes]


def _two_modes(calibration: Calibration) -> Phrase:
    count, every = (
        len(_with_two_modes(calibration)),
        units.numbered(len(calibration.workloads), "workload"),
    )
    return [
        Words(f"Two modes, {count} of {every}: some launches are fast, "),
        Words("others slow, and none in between. A few launches may all show the same mode. Six "),
        Words("launches with one mode look like two in 6 % of cases: calibrate again to be sure."),
    ]


def _explained(calibration: Calibration) -> Phrase:
    processes = min(workload.processes for workload in calibration.workloads.values())
    return [
        Words(f"Smallest detectable: a change that {LOOKS[-1]} pairs of launches confirm in "),
        Words("80 % of pull requests. Pairs, undecided: simulated confirmations of an unchanged "),
        Words(f"workload. All numbers are from {processes} launches per workload: enough to "),
        Words("choose, too few to guarantee."),
    ]


def _qualification(qualification: Qualification) -> Page:
    return [
        _conclusion(qualification),
        *([_missed(qualification)] if _unnoticed(qualification) else []),
        _qualified_table(qualification),
        _what_shares_mean(qualification),
        *([_few(qualification)] if _fewest_pairs(qualification) < LOOKS[-1] else []),
    ]


def _conclusion(qualification: Qualification) -> Phrase:
    noticed = len(qualification.workloads) - len(_unnoticed(qualification))
    every = units.numbered(len(qualification.workloads), "workload")
    alarms = statistics.fmean(
        _alarms(workload.same) for workload in qualification.workloads.values()
    )
    return [
        Words(f"This machine notices {_size(qualification)} in {noticed} of {every}, "),
        Words(f"and raises a false alarm in {units.counted(alarms)} of confirmations."),
    ]


def _missed(qualification: Qualification) -> Phrase:
    phrase: list[str] = [Words(f"Found in fewer than {units.counted(_NOTICED)} of confirmations: ")]
    for name in _unnoticed(qualification):
        workload = qualification.workloads[name]
        beyond = "; its limit is not smaller" if workload.limit >= qualification.size else ""
        phrase += [name, Words(f" ({units.counted(workload.slower.regressed)}{beyond}), ")]
    return [*phrase[:-1], Words(phrase[-1].removesuffix(", ") + ".")]


def _qualified_table(qualification: Qualification) -> Table:
    slower = _size(qualification)
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
    rows = [_qualified_row(name, workload) for name, workload in qualification.workloads.items()]
    return Table(heading, rows, left=["no change: said", f"{slower}: said"])


def _qualified_row(name: str, workload: QualifiedWorkload) -> list[str]:
    same, slower = workload.same, workload.slower
    return [
        name,
        units.limit(workload.limit),
        units.share(workload.spread),
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


def _what_shares_mean(qualification: Qualification) -> Phrase:
    return [
        Words(f"Said: the verdict on the launched pairs, {_pairs(qualification)} per "),
        Words("workload and change. The shares are of "),
        Words(
            f"{qualification.replays:,} confirmations per workload and change, replayed with pairs "
        ),
        Words("drawn from these with replacement, so they are no more certain than so "),
        Words("many independent pairs."),
    ]


def _few(qualification: Qualification) -> Phrase:
    return [
        Words(
            f"A confirmation may take {LOOKS[-1]} pairs, and {_fewest_pairs(qualification)} were "
        ),
        Words("launched: the shares are too optimistic. Ask for more "),
        "--rounds",
        Words("."),
    ]


def _pairs(qualification: Qualification) -> str:
    counts = {workload.pairs for workload in qualification.workloads.values()}
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def _fewest_pairs(qualification: Qualification) -> int:
    return min(workload.pairs for workload in qualification.workloads.values())


def _unnoticed(qualification: Qualification) -> list[str]:
    return [
        n for n, workload in qualification.workloads.items() if workload.slower.regressed < _NOTICED
    ]


def _alarms(replays: Replays) -> float:
    return replays.regressed + replays.improved


def _size(qualification: Qualification) -> Words:
    return units.percent(qualification.size)

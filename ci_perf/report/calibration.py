"""What calibrating a machine found, for its owner."""

import math

from ci_perf.judge.calibration import MOST_INCONCLUSIVE, STATISTICS
from ci_perf.judge.policy import LOOKS, PolicyKind, policy
from ci_perf.model.calibration import CalibratedWorkload, Calibration
from ci_perf.model.suite import Preset
from ci_perf.report import tables, units
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table

_STATISTICS = {"median": "the middle block", "p25": "the block at 25 %", "min": "the fastest block"}


def markdown(found: Calibration) -> str:
    """Render for a job summary."""
    return tables.markdown(_page(found))


def terminal(found: Calibration, *, width: int, color: bool) -> str:
    """Render for a terminal."""
    return tables.terminal(_page(found), width=width, color=color)


def _page(found: Calibration) -> Page:
    return [
        _headline(found),
        _statistic(found),
        *([_blindness()] if found.statistic == "min" else []),
        _preset(found),
        _presets(found),
        _workloads(found),
        *([_two_modes(found)] if _with_two_modes(found) else []),
        _explained(found),
    ]


def _headline(found: Calibration) -> Phrase:
    return [
        Words("This machine: statistic "),
        Words(found.statistic),
        Words(", preset "),
        Words(found.preset),
        Words(f", by {units.numbered(len(found.workloads), 'workload')} of suite "),
        found.provenance.suite,
    ]


def _statistic(found: Calibration) -> Phrase:
    spreads = ", ".join(
        f"{name} {units.share(found.launches[name])}"
        for name in STATISTICS
        if name in found.launches
    )
    return [
        Words(f"Statistic: {_STATISTICS[found.statistic]} speaks for a launch. "),
        Words(f"Launches of the same code typically differ by: {spreads}. "),
        Words("One that sees fewer blocks is taken only where it is quieter by a quarter."),
    ]


def _blindness() -> Phrase:
    return [
        Words("The fastest block hides what slows only some of the steps: a pause now and then "),
        Words("is not seen in the step time. The metric "),
        "step_p95_s",
        Words(" sees it."),
    ]


def _preset(found: Calibration) -> Phrase:
    share = found.inconclusive[found.preset]
    if share > MOST_INCONCLUSIVE:
        return [
            Words(f"Preset: {found.preset}, the widest, and even that would leave "),
            Words(f"{units.counted(share)} of unchanged workloads undecided. A quieter machine "),
            Words("would answer more, and so would longer blocks."),
        ]
    return [
        Words(f"Preset: {found.preset}, the narrowest that leaves at most "),
        Words(f"{units.limit(MOST_INCONCLUSIVE)} of unchanged workloads undecided."),
    ]


def _presets(found: Calibration) -> Table:
    rows = [_preset_row(preset, share) for preset, share in found.inconclusive.items()]
    return Table(["preset", "limit", "margin", "undecided"], rows)


def _preset_row(preset: Preset, share: float) -> list[str]:
    time = policy(PolicyKind.TIME, preset)
    return [
        Words(preset),
        units.limit(math.expm1(time.floor)),
        units.limit(math.expm1(time.margin)),
        units.counted(share),
    ]


def _workloads(found: Calibration) -> Table:
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
    rows = [_row(name, one, found) for name, one in found.workloads.items()]
    return Table(heading, rows, left=["note"])


def _row(name: str, one: CalibratedWorkload, found: Calibration) -> list[str]:
    return [
        name,
        units.seconds(one.step_time_s),
        units.share(one.launches[one.statistic]),
        units.share(one.pairs),
        units.share(one.smallest_detectable),
        Words(f"{one.expected_pairs:.1f}"),
        units.counted(one.inconclusive),
        _note(one, found),
    ]


def _note(one: CalibratedWorkload, found: Calibration) -> Words:
    own = [f"suite.toml says {one.statistic}"] if one.statistic != found.statistic else []
    return Words("; ".join([*own, *(["two modes"] if one.two_modes else [])]))


def _with_two_modes(found: Calibration) -> list[str]:
    return [name for name, one in found.workloads.items() if one.two_modes]


def _two_modes(found: Calibration) -> Phrase:
    count, every = len(_with_two_modes(found)), units.numbered(len(found.workloads), "workload")
    return [
        Words(f"Two modes, {count} of {every}: some launches are fast, "),
        Words("others slow, and none between. A few launches may all show the same one. Of six "),
        Words("launches with one mode, 6 % look like two by chance: calibrate again to be sure."),
    ]


def _explained(found: Calibration) -> Phrase:
    processes = min(one.processes for one in found.workloads.values())
    return [
        Words(f"Smallest detectable: a change that {LOOKS[-1]} pairs of launches confirm in "),
        Words("80 % of pull requests. Pairs, undecided: what a confirmation of a workload that "),
        Words(f"has not changed would take, simulated. All from {processes} launches per "),
        Words("workload: good for choosing, too few for guarantees."),
    ]

"""What a calibration says of a machine, for its owner."""

from ci_perf.features.calibrate.calibration import MOST_INCONCLUSIVE, STATISTICS
from ci_perf.judging.policy import LOOKS
from ci_perf.model.baseline import CalibratedWorkload, Calibration, Noise
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Page, Table

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


def page(calibration: Calibration) -> Page:
    """Show the outcome: a sentence with the result, then a table, then what the words mean."""
    said = (
        f"This machine: statistic {calibration.statistic}, limit {units.limit(calibration.limit)}, "
        f"by {units.render_count(len(calibration.workloads), 'workload')} of suite {{suite}}"
    )
    return [
        fill(said, suite=(calibration.provenance.suite,)),
        (Words(_noise(calibration)),),
        _statistic(calibration),
        (Words(_limit(calibration)),),
        _workloads(calibration),
        (Words(_explain_statistic(calibration)),),
    ]


def _noise(calibration: Calibration) -> str:
    """Say which of three cases the machine is, and what follows for its verdicts."""
    says = _NOISE[calibration.noise]
    if calibration.launches_cpu is not None:
        spread = units.share(calibration.launches_cpu)
        says += f" CPU time of launches typically differs by {spread}."
    if calibration.trimmed:
        says += " The mean of pairs leaves out the outermost fifth on each side."
    return says


def _statistic(calibration: Calibration) -> Phrase:
    launches = calibration.launches
    spreads = (f"{name} {units.share(launches[name])}" for name in STATISTICS if name in launches)
    blind = (
        " It hides what slows only some of the steps, such as an occasional pause. The metric "
        "{metric} shows that."
    )
    said = (
        f"Statistic: {_STATISTICS[calibration.statistic]} represents a launch. Launches of the "
        f"same code typically differ by: {', '.join(spreads)}. A statistic of fewer blocks is "
        "chosen only if it is a quarter less noisy."
    )
    return fill(said + (blind if calibration.statistic == "min" else ""), metric=("step_p95_s",))


def _limit(calibration: Calibration) -> str:
    limit = units.limit(calibration.limit)
    if calibration.inconclusive > MOST_INCONCLUSIVE:
        return (
            f"Limit: none up to {limit} of a step time: it leaves "
            f"{units.render_share(calibration.inconclusive)} of unchanged workloads undecided. A "
            "quieter machine or longer blocks would decide more."
        )
    return (
        f"Limit: {limit} of a step time is the smallest that leaves at most "
        f"{units.limit(MOST_INCONCLUSIVE)} of unchanged workloads undecided. suite.toml decides "
        "which limit holds; below this one, rows end without an answer more often."
    )


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
    rows = [
        [
            name,
            units.seconds(workload.step_time_s),
            units.share(workload.launches[workload.statistic]),
            units.share(workload.pairs),
            units.share(workload.smallest_detectable),
            Words(f"{workload.expected_pairs:.1f}"),
            units.render_share(workload.inconclusive),
            _note(workload, calibration),
        ]
        for name, workload in calibration.workloads.items()
    ]
    return Table(heading, rows, left=["note"])


def _note(workload: CalibratedWorkload, calibration: Calibration) -> Words:
    is_own = workload.statistic != calibration.statistic
    notes = [f"suite.toml says {workload.statistic}"] if is_own else []
    return Words("; ".join([*notes, *(["two modes"] if workload.two_modes else [])]))


def _explain_statistic(calibration: Calibration) -> str:
    workloads = calibration.workloads.values()
    said = (
        f"Smallest detectable: a change that {LOOKS[-1]} pairs of launches confirm in 80 % of pull "
        "requests. Pairs, undecided: simulated confirmations of an unchanged workload. All numbers "
        f"are from {min(each.processes for each in workloads)} launches per workload: enough to "
        "choose, too few to guarantee."
    )
    if any(workload.two_modes for workload in workloads):
        said += (
            " Two modes: some launches are fast, others slow, and none in between. Six launches "
            "with one mode look like two in 6 % of cases: calibrate again to be sure."
        )
    return said

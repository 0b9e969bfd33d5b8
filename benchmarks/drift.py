"""How often the notice "main has drifted" is wrong, and how much a creeping main loses before it.

    python -m benchmarks.drift [--full]

Simulates main branches of 20 workloads in the regimes of `benchmarks.verdicts`, with one session of
5 launches per merge and at most 20 sessions in a baseline. Each merge is one check. A main that
does not move gets a *wrong notice* if any of its workloads gets one in 30 checks in a row: from the
first session on, or from the session on with which the baseline is full. In a main that creeps, one
workload becomes slower by the same share with each merge.

Without `--full` it takes about 30 seconds and uses the open part of the seeds only. It fails (exit
code 1) where surely more than 5 % of the mains that do not move get a wrong notice.
"""

import argparse
import math
import sys
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts.observed import Array
from benchmarks.verdicts.regimes import LAUNCHES, REGIMES, Regime, Workloads
from benchmarks.verdicts.scores import Rate
from benchmarks.verdicts.simulated import SEED, SUITE, Part
from ci_perf.judging import trends
from ci_perf.judging.policy import PolicyKind, policy_of
from ci_perf.model.baseline import MAX_SESSIONS

QUICK, FULL = 40, 300
CREEPS = (0.003, 0.008, 0.015)
SESSIONS = MAX_SESSIONS + trends.CHECKS
FLOOR = policy_of(PolicyKind.TIME).limit
# Mains that are simulated at once: a matter of memory.
AT_ONCE = 20


@dataclass(frozen=True)
class Machine:
    """A regime, and how much a session resembles the one before (correlation)."""

    name: str
    regime: Regime
    correlation: float = 0.0


_TYPICAL = next(regime for regime in REGIMES if regime.name == "typical")
MACHINES = (
    *(Machine(regime.name, regime) for regime in REGIMES),
    Machine("typical, sessions correlated 0.3", _TYPICAL, 0.3),
    Machine("typical, sessions correlated 0.5", _TYPICAL, 0.5),
)


@dataclass(frozen=True)
class Score:
    """What mains on one machine got: wrong notices, and the session that told of each creep."""

    first: Rate
    full: Rate
    told: dict[float, list[float]]


def main(*, full: bool) -> int:
    """Print the table; fail where wrong notices are surely too many."""
    parts: tuple[Part, ...] = ("open", "held out") if full else ("open",)
    count = FULL if full else QUICK
    print(f"{count * len(parts)} mains per row (seed {SEED}, {', '.join(parts)}).\n")
    print(_header())
    broken = False
    for machine in MACHINES:
        scored = score(
            main for part in parts for main in mains(machine, count, _random(machine, part))
        )
        print(_line(machine, scored), flush=True)
        is_promised = machine.correlation == 0
        worst = max(scored.first.bounds[0], scored.full.bounds[0])
        broken |= is_promised and worst > trends.ALPHA
    if broken:
        print(f"expected wrong notices in at most {trends.ALPHA:.0%} of the mains", file=sys.stderr)
    return int(broken)


def mains(machine: Machine, count: int, random: np.random.Generator) -> Iterator[Array]:
    """Yield [SUITE, SESSIONS] for each main: the session means of its workloads, as logarithms."""
    for first in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - first)
        workloads = Workloads.draw(machine.regime, size * SUITE, random)
        effects = workloads.session_effects(SESSIONS, SUITE, random)
        launches = np.median(workloads.launches(SESSIONS, LAUNCHES, random), axis=-1)
        means = correlated(effects, machine.correlation) + launches.mean(axis=-1)
        yield from means.reshape(size, SUITE, SESSIONS)


def correlated(effects: Array, correlation: float) -> Array:
    """Let each session of [workloads, sessions] resemble the one before; the variance stays."""
    alike = effects.copy()
    for place in range(1, effects.shape[-1]):
        alike[:, place] = (
            correlation * alike[:, place - 1] + math.sqrt(1 - correlation**2) * effects[:, place]
        )
    return alike


def score(branches: Iterable[Array]) -> Score:
    """Judge mains: as they are, and with a creep in one of their workloads."""
    first, full = Rate(), Rate()
    told: dict[float, list[float]] = {creep: [] for creep in CREEPS}
    for number, means in enumerate(branches):
        first += Rate(int(is_told(means, range(1, trends.CHECKS + 1))), 1)
        full += Rate(int(is_told(means, range(MAX_SESSIONS, SESSIONS))), 1)
        for creep, sessions in told.items():
            sessions.append(told_after(means, number % SUITE, creep))
    return Score(first, full, told)


def is_told(means: Array, checks: Iterable[int]) -> bool:
    """Whether any of these checks gives a notice; each is a number of sessions."""
    return any(any(notices(means[:, :sessions])) for sessions in checks)


def told_after(means: Array, workload: int, creep: float) -> float:
    """Return after how many sessions a creep in one workload is told; infinite if never."""
    creeping = means.copy()
    creeping[workload] += math.log1p(creep) * np.arange(SESSIONS)
    for sessions in range(1, SESSIONS + 1):
        if notices(creeping[:, :sessions])[workload]:
            return sessions
    return math.inf


def notices(means: Array) -> Sequence[bool]:
    """Say of each workload whether a check gives a notice; the oldest sessions are gone."""
    lines = [trends.fit_line(series) for series in means[:, -MAX_SESSIONS:].tolist()]
    of_mains = [
        trends.Trend(kind=PolicyKind.TIME, line=line, floor=FLOOR) for line in lines if line
    ]
    return trends.have_drifted(of_mains) or [False] * len(means)


def _random(machine: Machine, part: Part) -> np.random.Generator:
    places = MACHINES.index(machine), typing.get_args(Part).index(part)
    return np.random.default_rng([SEED, *places])


def _header() -> str:
    creeps = [f"{100 * creep:.1f} % per merge: told after, lost" for creep in CREEPS]
    names = ["machine", "wrong notices, first 30", "wrong notices, later 30", *creeps]
    return f"| {' | '.join(names)} |\n|:--|" + "--:|" * (len(names) - 1)


def _line(machine: Machine, scored: Score) -> str:
    cells = [machine.name, _rate(scored.first), _rate(scored.full)]
    cells += [_delay(sessions, creep) for creep, sessions in scored.told.items()]
    return f"| {' | '.join(cells)} |"


def _rate(rate: Rate) -> str:
    low, high = rate.bounds
    return f"{100 * rate.share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _delay(sessions: Sequence[float], creep: float) -> str:
    """Spell the median of the sessions, and what is lost by then."""
    middle = float(np.median(sessions))
    return f"{middle:.0f}, {100 * creep * (middle - 1):.1f} %"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift")
    parser.add_argument("--full", action="store_true")
    sys.exit(main(full=parser.parse_args().full))

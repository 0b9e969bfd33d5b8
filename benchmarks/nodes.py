"""What becomes of pull requests on nodes of one class that differ, by the product's own judge.

    python -m benchmarks.nodes [--full]

Simulates pull requests of 20 workloads, divided among four nodes, on launches of the regime
`typical` of `benchmarks.verdicts`. Nodes are faster or slower by so much (standard deviation), half
of it for all workloads alike. The baseline has 12 sessions, each on one node. Pairs are launched on
the head's own node from look to look, as a session does. *Nobody knows the node* is the judge as it
would be without knowing nodes. Counted are unchanged pull requests with a false alarm (any gating
row that regressed or improved) and without an answer, and what is said of one workload that is 5 %
slower.

Without `--full` it takes some five minutes on two cores. It fails (exit code 1) where more than 1 %
of the unchanged pull requests of a row raise an alarm.
"""

import argparse
import concurrent.futures
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from benchmarks.verdicts.observed import Array
from benchmarks.verdicts.promises import MOST_ALARMED
from benchmarks.verdicts.regimes import COMMON_SHARE, LAUNCHES, ORDINARY, PAIRS, Workloads
from benchmarks.verdicts.scores import Rate
from benchmarks.verdicts.simulated import SEED, SUITE
from ci_perf.judging import compare
from ci_perf.judging.policy import CALM_LOOKS, default_limits
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.environment import CpuMachine, Software
from ci_perf.model.run import Interleaved, Source
from ci_perf.model.suite import Limits, Tiers
from ci_perf.model.summary import PairedNumbers, SessionNumbers, Subject, Summary
from ci_perf.model.validity import Status, Validity

QUICK, FULL = 200, 1_000
SESSIONS, SHARDS, SLOWER = 12, 4, 0.05
_TYPICAL = next(regime for regime in ORDINARY if regime.name == "typical")
_CALLS = {Verdict.REGRESSED, Verdict.IMPROVED}
_METRIC = "step_time_s"
_LIMITS = Limits(default=default_limits())
_SOURCE = Source(commit="0" * 40, branch="main", dirty=False)
_VALID = Validity(status=Status.VALID)
_SOFT = Software(
    python="",
    torch="",
    transformers=None,
    cuda=None,
    cudnn=None,
    driver=None,
    image=None,
    cpu_model="",
    threads=1,
    kernel="",
)


@dataclass(frozen=True)
class Fleet:
    """Where sessions were recorded, and where the head is measured; by numbers of nodes.

    ``spread`` is the standard deviation between nodes, as a logarithm.
    """

    name: str
    recorded_on: int
    measured_on: range
    spread: float = 0.08
    knows_nodes: bool = True


FLEETS = (
    Fleet("history of 1 node, head on others", 1, range(1, 5)),
    Fleet("history of 2 nodes, head on others", 2, range(2, 6)),
    Fleet("history of 3 nodes, head on others", 3, range(3, 7)),
    Fleet("history of 4 nodes, head on these", 4, range(4)),
    Fleet("history of 1 node, head on it", 1, range(1)),
    Fleet("history of 3 alike nodes, head on others", 3, range(3, 7), spread=0.0),
    Fleet("the first, where nobody knows the node", 1, range(1, 5), knows_nodes=False),
    Fleet("the fourth, where nobody knows the node", 4, range(4), knows_nodes=False),
)


@dataclass
class Counts:
    """What became of pull requests on one fleet."""

    alarmed: Rate = field(default_factory=Rate)
    unanswered: Rate = field(default_factory=Rate)
    found: Rate = field(default_factory=Rate)
    missed: Rate = field(default_factory=Rate)
    pairs: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class PullRequest:
    """All that could be launched of one pull request; logarithms of step times.

    The first axis goes over workloads. The others: of ``sessions`` sessions and launches, of
    ``head`` launches, of ``pairs`` pairs and sides.
    """

    sessions: Array
    head: Array
    pairs: Array
    session_nodes: Sequence[str]
    head_nodes: Sequence[str]


def draw(fleet: Fleet, random: np.random.Generator, *, change: float) -> PullRequest:
    """Draw one pull request, of which the first workload takes `change` longer (a logarithm)."""
    workloads = Workloads.draw(_TYPICAL, SUITE, random)
    effects = workloads.session_effects(SESSIONS + 1, SUITE, random)
    factors = _factors(fleet, random)
    recorded = random.integers(0, fleet.recorded_on, SESSIONS)
    measured = random.choice(list(fleet.measured_on), SHARDS)[np.arange(SUITE) % SHARDS]
    launches = np.median(workloads.launches(SESSIONS, LAUNCHES, random), axis=-1)
    of_head = effects[:, SESSIONS] + factors[np.arange(SUITE), measured]
    changes = np.zeros(SUITE)
    changes[0] = change
    sides = np.median(workloads.pairs(random), axis=-1) + of_head[:, None, None]
    sides[:, 1::2] = sides[:, 1::2, ::-1]  # the sides take turns in coming first
    sides[:, :, 1] += changes[:, None]
    return PullRequest(
        sessions=launches + (effects[:, :SESSIONS] + factors[:, recorded])[..., None],
        head=np.median(workloads.today(LAUNCHES, random), axis=-1) + (of_head + changes)[:, None],
        pairs=sides,
        session_nodes=[_named(fleet, node) for node in recorded],
        head_nodes=[_named(fleet, node) for node in measured],
    )


def _factors(fleet: Fleet, random: np.random.Generator) -> Array:
    """Return [workloads, nodes]: how much longer each workload takes on each node."""
    nodes = max(fleet.recorded_on, fleet.measured_on.stop)
    common = random.standard_normal((1, nodes))
    own = random.standard_normal((SUITE, nodes))
    factors: Array = fleet.spread * (
        math.sqrt(COMMON_SHARE) * common + math.sqrt(1 - COMMON_SHARE) * own
    )
    return factors


def _named(fleet: Fleet, node: int) -> str:
    return f"node{node}" if fleet.knows_nodes else ""


def judge(pull: PullRequest) -> tuple[Comparison, int]:
    """Judge as a session and its report do; return how many pairs were launched, too."""
    base, launched = _base(pull), [0] * SUITE
    head = _head(pull, launched, suspects=0)
    undecided, suspects = compare.undecided(base, head, limits=_LIMITS, tiers=Tiers())
    while left := [int(n) for n in undecided if launched[int(n)] < PAIRS]:
        for number in left:
            launched[number] = next(look for look in CALM_LOOKS if look > launched[number])
        head = _head(pull, launched, suspects=suspects)
        undecided, _ = compare.undecided(base, head, limits=_LIMITS, tiers=Tiers())
    return compare.compare(base, head, limits=_LIMITS), sum(launched)


def _base(pull: PullRequest) -> Summary:
    subjects = [
        _subject(
            number,
            [
                _session(day, node, pull.sessions[number, day])
                for day, node in enumerate(pull.session_nodes)
            ],
        )
        for number in range(SUITE)
    ]
    return _summary(subjects)


def _head(pull: PullRequest, launched: Sequence[int], *, suspects: int) -> Summary:
    subjects = []
    for number, count in enumerate(launched):
        session = _session(SESSIONS, pull.head_nodes[number], pull.head[number])
        paired = tuple(
            ({_METRIC: math.exp(base)}, {_METRIC: math.exp(head)})
            for base, head in pull.pairs[number, :count]
        )
        subject = _subject(number, [session])
        subjects.append(
            msgspec.structs.replace(subject, paired=PairedNumbers(pairs=paired) if count else None)
        )
    how = Interleaved(
        ref="main", source=_SOURCE, suspects=suspects, budget_s=1.0, spent_s=0.0, stopped="decided"
    )
    return msgspec.structs.replace(_summary(subjects), interleaved=how)


def _session(day: int, node: str, launches: Array) -> SessionNumbers:
    return SessionNumbers(
        commit=f"commit{day}",
        recorded_at=f"2026-11-{day + 1:02}T10:00:00Z",
        node=node,
        soft=_SOFT,
        processes=tuple({_METRIC: math.exp(value)} for value in launches),
    )


def _subject(number: int, sessions: Sequence[SessionNumbers]) -> Subject:
    return Subject(
        workload=f"{number}",
        parameters={},
        items_per_step=1.0,
        item_unit="step",
        statistic="median",
        machine=CpuMachine(cpu_model="simulated", logical_cores=1),
        sessions=tuple(sessions),
    )


def _summary(subjects: Sequence[Subject]) -> Summary:
    return Summary(
        label="",
        source=_SOURCE,
        run="simulated",
        suite="simulated",
        selection=(),
        validity=_VALID,
        subjects=tuple(subjects),
        failed=(),
    )


def count(fleet: Fleet, pull_requests: int) -> Counts:
    """Judge unchanged pull requests, and as many of which one workload is slower."""
    counts = Counts()
    for number in range(pull_requests):
        random = np.random.default_rng((SEED, FLEETS.index(fleet), number))
        unchanged, pairs = judge(draw(fleet, random, change=0.0))
        rows = list(_gating(unchanged))
        counts.alarmed += Rate(int(any(row.verdict in _CALLS for row in rows)), 1)
        counts.unanswered += Rate(int(any(row.verdict is Verdict.INCONCLUSIVE for row in rows)), 1)
        counts.pairs.append(pairs)
        slower, _ = judge(draw(fleet, random, change=math.log1p(SLOWER)))
        said = next(row.verdict for row in _gating(slower) if row.workload == "0")
        counts.found += Rate(int(said is Verdict.REGRESSED), 1)
        counts.missed += Rate(int(said in {Verdict.UNCHANGED, Verdict.IMPROVED}), 1)
    return counts


def _gating(comparison: Comparison) -> Iterator[Change]:
    return (row for row in comparison.rows if isinstance(row, Change) and row.gate)


def main(*, full: bool) -> int:
    """Print the table; fail where false alarms are more than promised."""
    pull_requests = FULL if full else QUICK
    print(
        f"{pull_requests} unchanged pull requests per row, and as many with one workload that is "
        f"{SLOWER:.0%} slower (seed {SEED}).\n\n"
        "| nodes | differ by | false alarm | no answer | pairs | slower by 5 %: found "
        "| called unchanged |\n|--|--:|--:|--:|--:|--:|--:|"
    )
    broken = []
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = pool.map(count, FLEETS, [pull_requests] * len(FLEETS))
        for fleet, counts in zip(FLEETS, results, strict=True):
            low, high = counts.alarmed.bounds
            print(
                f"| {fleet.name} | {fleet.spread:.0%} "
                f"| {counts.alarmed.share:.1%} [{low:.1%}, {high:.1%}] "
                f"| {counts.unanswered.share:.1%} | {np.mean(counts.pairs):.0f} "
                f"| {counts.found.share:.1%} | {counts.missed.share:.1%} |",
                flush=True,
            )
            if counts.alarmed.share > MOST_ALARMED:
                broken.append(f"{fleet.name}: expected at most {MOST_ALARMED:.0%} false alarms")
    for words in broken:
        print(words, file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help=f"{FULL} pull requests per row")
    sys.exit(main(full=parser.parse_args().full))

"""How long 10,000 units take on 500 nodes of which some are lost, beside the ideal makespan.

`python -m benchmarks.fleet_simulation`. Ledger and rules are the real ones; the engine, its nodes
and the clock are simulated. Lengths are log-normal around 200 s; a lost node is noticed after a
minute and comes back after half an hour; 2 % of the nodes are four times slower.
"""

import argparse
import heapq
import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ci_perf.errors import EngineError
from ci_perf.fleet.engine import EngineJob, JobState, Observation, Placed
from ci_perf.fleet.ledger import Ledger
from ci_perf.fleet.reading import Outcome, Unusable, Usable, WrongNode
from ci_perf.fleet.settings import FleetRules, World
from ci_perf.model.fleet import Attempt, Ending, Event, NodeClass
from ci_perf.model.run import Run

# What can become of an attempt once it runs on a node.
Fate = Literal["measured", "unusable", "wrong_node", "crashed", "hangs", "node_dies", "vanishes"]

_NOTICED_S, _REPAIRED_S, _POLL_S = 60.0, 1800.0, 3.0
_SLOW_SHARE, _SLOW = 0.02, 4.0


@dataclass(frozen=True, slots=True)
class SimulatedUnit:
    """A unit that takes some time, as it is expected to, more or less."""

    id: str
    expected_s: float
    machine_class: str
    takes_s: float


@dataclass(slots=True)
class Host:
    """A node: taken by an attempt, or out of order for a while."""

    name: str
    slowness: float = 1.0
    taken_by: str = ""
    down_until: float = 0.0


@dataclass(slots=True)
class SimulatedAttempt:
    """What the cluster knows of an attempt, and what will come of it."""

    attempt: Attempt
    job: EngineJob
    state: JobState = "queued"
    node: str = ""
    fate: Fate = "measured"
    ends_at: float = 0.0
    is_forgotten: bool = False


@dataclass(slots=True)
class Cluster:
    """An engine of which everything is simulated.

    `fate` draws what becomes of an attempt, `refuses` and `is_silent` whether the engine takes no
    job and answers no question, `cancels` whether it does as it is told.
    """

    hosts: Mapping[str, Sequence[Host]]
    units: Mapping[str, SimulatedUnit]
    fate: Callable[[], Fate]
    clock: Callable[[], float]
    refuses: Callable[[], bool] = bool
    is_silent: Callable[[], bool] = bool
    cancels: Callable[[Sequence[Placed]], bool] = lambda _placed: True
    poll_s: float = _POLL_S
    known: dict[str, SimulatedAttempt] = field(default_factory=dict)
    most_at_once: int = 0
    _queue: dict[str, list[SimulatedAttempt]] = field(default_factory=dict)
    _events: list[tuple[float, int, SimulatedAttempt]] = field(default_factory=list)
    _count: "itertools.count[int]" = field(default_factory=itertools.count)

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine."""
        self._advance()
        if self.refuses():
            raise EngineError("the queue is full")
        for attempt in job.attempts:
            simulated = SimulatedAttempt(attempt, job)
            self.known[attempt.nonce] = simulated
            self._queue.setdefault(job.class_name, []).append(simulated)
        self._place()
        return {attempt.nonce: f"handle-{attempt.nonce}" for attempt in job.attempts}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine."""
        self._advance()
        if self.is_silent():
            raise EngineError("the controller does not answer")
        seen = {}
        for p in placed:
            simulated = self.known.get(p.attempt.nonce)
            if simulated is not None and not simulated.is_forgotten:
                seen[p.attempt.nonce] = Observation(state=simulated.state, node=simulated.node)
        return seen

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine."""
        self._advance()
        if not self.cancels(placed):
            return
        jobs = {p.attempt.job for p in placed if not p.handle}
        nonces = {p.attempt.nonce for p in placed}
        for simulated in self.known.values() if jobs else map(self.known.get, nonces):
            if simulated is None or simulated.state not in {"queued", "running"}:
                continue
            if simulated.attempt.nonce in nonces or simulated.attempt.job in jobs:
                self._free(simulated)
                simulated.state = "lost"

    def close(self) -> None:
        """See FleetEngine."""

    def alive(self) -> list[str]:
        """Name the attempts that are queued or run."""
        return [n for n, s in self.known.items() if s.state in {"queued", "running"}]

    def _advance(self) -> None:
        """Let everything happen that is due by now."""
        while self._events and self._events[0][0] <= self.clock():
            at, _, simulated = heapq.heappop(self._events)
            if simulated.state == "running":
                self._end(simulated, at)
        self._place()

    def _end(self, simulated: SimulatedAttempt, at: float) -> None:
        if simulated.fate == "hangs":
            return
        host = self._host(simulated)
        simulated.state = "lost" if simulated.fate == "node_dies" else "ended"
        simulated.is_forgotten = simulated.fate == "vanishes"
        host.taken_by = ""
        if simulated.fate == "node_dies":
            host.down_until = at + _REPAIRED_S

    def _free(self, simulated: SimulatedAttempt) -> None:
        if simulated.state == "running":
            self._host(simulated).taken_by = ""
        else:
            self._queue[simulated.job.class_name].remove(simulated)

    def _host(self, simulated: SimulatedAttempt) -> Host:
        hosts = self.hosts[simulated.job.class_name]
        return next(host for host in hosts if host.name == simulated.node)

    def _place(self) -> None:
        """Start what is queued on nodes that are free, in the order in which it came."""
        now = self.clock()
        for class_name, waiting in self._queue.items():
            hosts = self.hosts[class_name]
            free = [h for h in hosts if not h.taken_by and h.down_until <= now] if waiting else []
            for simulated in [*waiting]:
                host = next((h for h in free if h.name not in simulated.job.avoid), None)
                if host is not None:
                    free.remove(host)
                    waiting.remove(simulated)
                    self._start(simulated, host, now)
            taken = sum(bool(host.taken_by) for host in hosts) if waiting or free else 0
            self.most_at_once = max(self.most_at_once, taken)

    def _start(self, simulated: SimulatedAttempt, host: Host, now: float) -> None:
        simulated.state, simulated.node, simulated.fate = "running", host.name, self.fate()
        host.taken_by = simulated.attempt.nonce
        length_s = self.units[simulated.attempt.unit].takes_s * host.slowness
        if simulated.fate == "node_dies":
            length_s = length_s / 2 + _NOTICED_S
        simulated.ends_at = now + length_s
        heapq.heappush(self._events, (simulated.ends_at, next(self._count), simulated))


class Time:
    """A clock that a sleep moves, and nothing else."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


def reader(cluster: Cluster, run: Run) -> Callable[[Attempt], Outcome | None]:
    """Return what reads the result of a simulated attempt, as its fate says."""

    def read(attempt: Attempt) -> Outcome | None:
        simulated = cluster.known[attempt.nonce]
        if simulated.state != "ended":
            return None
        match simulated.fate:
            case "measured":
                return Usable(run=run, duration_s=cluster.units[attempt.unit].takes_s)
            case "unusable":
                return Unusable("its result is refused")
            case "wrong_node":
                return WrongNode("gpu_model")
            case _:
                return None

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of the units of one simulation, and how long it took."""

    endings: tuple[Ending, ...]
    makespan_s: float
    ideal_s: float


def simulate(units: int, nodes: int, lost: float, seed: int, run: Run) -> Result:
    """Run the ledger on a simulated cluster, of which each attempt loses its node with a chance."""
    draw = random.Random(seed)  # noqa: S311  no secret
    lengths = [draw.lognormvariate(5.3, 0.7) for _ in range(units)]
    planned = {
        f"u{number}": SimulatedUnit(
            f"u{number}", length, "gpu", length * draw.lognormvariate(0, 0.1)
        )
        for number, length in enumerate(lengths)
    }
    slowness = [_SLOW if draw.random() < _SLOW_SHARE else 1.0 for _ in range(nodes)]
    hosts = [Host(f"n{number}", slow) for number, slow in enumerate(slowness)]
    clock = Time()
    cluster = Cluster(
        hosts={"gpu": hosts},
        units=planned,
        fate=lambda: "node_dies" if draw.random() < lost else "measured",
        clock=clock,
    )
    events: list[Event] = []
    world = World(
        engine=cluster,
        prepare=lambda job, _attempts: job,
        read=reader(cluster, run),
        record=events.extend,
        notify=lambda _line: None,
        clock=clock,
        sleep=clock.sleep,
    )
    ledger = Ledger(planned.values(), {"gpu": NodeClass(nodes=nodes)}, world, FleetRules())
    endings = ledger.run()
    return Result(endings=endings, makespan_s=clock.now, ideal_s=sum(lengths) / nodes)


def main(arguments: Sequence[str]) -> int:
    """Print a table; exit code 1 where a unit is missing or the makespan is beyond the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--lost", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args(arguments)
    from tests.runs import a_run

    run: Run = a_run()  # type: ignore[no-untyped-call]
    print("| seed | makespan | of ideal | measured | lost | missing | own time |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    shares = []
    missing = 0
    for seed in range(asked.seeds):
        start = time.perf_counter()
        result = simulate(asked.units, asked.nodes, asked.lost, seed, run)
        spent_s = time.perf_counter() - start
        kinds = [ending.kind for ending in result.endings]
        absent = asked.units - len({ending.unit for ending in result.endings})
        missing += absent
        shares.append(result.ideal_s / result.makespan_s)
        print(
            f"| {seed} | {result.makespan_s:.0f} s | {shares[-1]:.0%} | {kinds.count('measured')} "
            f"| {kinds.count('lost')} | {absent} | {spent_s:.1f} s |"
        )
    print(f"\nmean {statistics.mean(shares):.1%} of the ideal makespan; {missing} units missing")
    return int(missing > 0 or statistics.mean(shares) < 0.8)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

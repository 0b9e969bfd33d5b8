"""Measure how often a watch of a branch finds the commit that made it worse, night by night.

    python -m benchmarks.watch_nights [--nights N] [--workloads N]

Prints a table: simulated nights with five commits each. Once a week, a commit makes all workloads
slower by 1.5 to 10 times the limit; it is reverted two days after it was found. Each session draws
differences of pairs; the judge decides as in `ci-perf watch`. A night has time for 12 sessions.
"""

import argparse
import math
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from benchmarks.bisection import Machine
from ci_perf.features.bisect import bisecting
from ci_perf.features.bisect.bisecting import Search
from ci_perf.features.bisect.bisection import CommitAnswer
from ci_perf.features.watch.branch_line import BranchLine
from ci_perf.features.watch.night import BudgetSpentError, Key, Night, Searched
from ci_perf.features.watch.sessions import PairsAnswer
from ci_perf.features.watch.suspects import SUSPICIOUS, Suspect, find_better
from ci_perf.judging.confirm import Outcome
from ci_perf.judging.policy import Policy, PolicyKind, policy_of
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Change, Code, Interval, Verdict
from ci_perf.model.environment import CpuMachine
from ci_perf.model.run import Tool
from ci_perf.model.watch import Watched, WatchedRepository

USUAL = policy_of(PolicyKind.TIME)
# How much pairs, and sessions of the history, differ: as shares of the limit.
MACHINES = {"calm": (0.2, 0.2), "typical": (0.5, 0.4), "noisy": (1.0, 0.8)}
COMMITS, WEEK, SESSIONS, KEPT, REVERTED_AFTER = 5, 7, 12, 20, 2
FIRST_DAY = date(2026, 1, 1)
SOME_COMMIT = Commit(id="c", author="a", date=FIRST_DAY.isoformat(), title="")
_STEP = "step_time_s"
_VERDICTS = {
    "regressed": Verdict.REGRESSED,
    "improved": Verdict.IMPROVED,
    "unchanged": Verdict.UNCHANGED,
}
_LIKE = {
    "regressed": CommitAnswer.LIKE_BAD,
    "improved": CommitAnswer.LIKE_GOOD,
    "unchanged": CommitAnswer.LIKE_GOOD,
}


class _Line(BranchLine):
    """A branch without a repository."""

    def find_revert(self, commit: str) -> str:
        del commit
        return ""


@dataclass
class Simulated:
    """A branch and its machine; ``levels`` are logarithms of the step time, by commit."""

    spread: float
    session_spread: float
    workloads: int
    uniform: random.Random
    levels: dict[str, float] = field(default_factory=dict)
    history: list[tuple[str, float]] = field(default_factory=list)
    left: int = 0

    def measure_pairs(
        self, commit: str, base: str, names: list[str], *, explains: bool = False, keeps: float = 0
    ) -> PairsAnswer:
        """See CommitLauncher."""
        del explains
        self._spend(keeps)
        effect = self.levels[commit] - self.levels[base]
        return PairsAnswer(
            changes={(name, _STEP): self._change(name, self._draw(USUAL, effect)) for name in names}
        )

    def search(self, good: str, bad: str, key: Key) -> Searched:
        """Bisect as `ci-perf bisect` does."""
        self._spend()
        names = list(self.levels)
        line = names[names.index(good) : names.index(bad) + 1]
        effects = [self.levels[each] - self.levels[good] for each in line]
        first = self._draw(USUAL, effects[-1])
        if first.call != "regressed":
            return Searched()
        limit = bisecting.DIVIDING * first.estimate
        dividing = Policy(limit=limit, session_spread=USUAL.session_spread)
        search, is_late = Search(len(line) - 1), False
        while (at := bisecting.next_position(search)) is not None and not is_late:
            is_late = self.left <= 0
            if not is_late:
                self.left -= 1
                call = self._draw(dividing, effects[at]).call
                search = search.with_answer(at, _LIKE.get(call, CommitAnswer.UNDECIDED))
        low, high = search.range.low, search.range.high
        change = self._change(key[0], first)
        return Searched(left=tuple(line[low + 1 : high + 1]), change=change, is_late=is_late)

    def add_session(self, head: str) -> list[Suspect]:
        """Measure HEAD, add it to the history, and return what that suspects."""
        value = self.levels[head] + self.uniform.gauss(0, self.session_spread * USUAL.limit)
        known = self.history[-KEPT:]
        self.history.append((head, value))
        if not known:
            return []
        values = [*(each for _, each in known), value]
        goods = tuple(known[at][0] for at in find_better(values, SUSPICIOUS * USUAL.limit))
        return [
            Suspect(workload=f"w{n}", metric=_STEP, goods=goods)
            for n in range(self.workloads)
            if goods
        ]

    def _spend(self, keeps: float = 0.0) -> None:
        if self.left <= keeps * SESSIONS:
            raise BudgetSpentError
        self.left -= 1

    def _draw(self, policy: Policy, effect: float) -> Outcome:
        return Machine(self.spread * USUAL.limit, self.uniform).session(policy, effect)

    def _change(self, workload: str, outcome: Outcome) -> Change:
        ratio = math.exp(outcome.estimate)
        ends = [math.exp(min(max(each, -9.0), 9.0)) for each in (outcome.low, outcome.high)]
        return Change(
            workload=workload,
            metric=_STEP,
            base=1.0,
            head=ratio,
            base_processes=outcome.pairs,
            head_processes=outcome.pairs,
            base_sessions=1,
            items_per_step=1,
            item_unit="item",
            ratio=ratio,
            interval=Interval(low=ends[0], high=ends[1]),
            limit=math.expm1(USUAL.limit),
            smallest_detectable=None,
            gate=True,
            verdict=_VERDICTS.get(outcome.call, Verdict.INCONCLUSIVE),
            code=Code.WITHIN_LIMIT,
            pairs=outcome.pairs,
        )


@dataclass
class Ended:
    """What a simulation has shown: for each loss, after how many nights it was found."""

    planted: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    innocent: int = 0
    creeps: int = 0
    sessions: int = 0
    nights: int = 0

    @property
    def in_time(self) -> float:
        """The share of losses whose commit was named within two nights."""
        quick = [
            commit
            for commit, night in self.planted.items()
            if commit in self.named and self.named[commit] - night <= 1
        ]
        return len(quick) / len(self.planted)


def simulate(nights: int, spreads: tuple[float, float], workloads: int, seed: int = 1) -> Ended:
    """Live through many nights on one branch."""
    uniform = random.Random(f"{seed} {spreads} {workloads}")  # noqa: S311  no secret
    world = Simulated(*spreads, workloads, uniform, levels={"c0": 0.0})
    ended = Ended(nights=nights)
    known: Watched | None = None
    level, open_losses, creeps = 0.0, dict[str, float](), set[str]()
    for night in range(nights):
        for number in range(COMMITS):
            commit = f"c{night * COMMITS + number + 1}"
            mended = [
                each
                for each in open_losses
                if each in ended.named and night - ended.named[each] >= REVERTED_AFTER
            ]
            if mended:
                level -= open_losses.pop(mended[0])
            elif night % WEEK == WEEK - 1 and number == (night // WEEK) % COMMITS:
                effect = math.log1p(uniform.uniform(1.5, 10) * math.expm1(USUAL.limit))
                level, open_losses[commit] = level + effect, effect
                ended.planted[commit] = night
            world.levels[commit] = level
        known = _watch(world, known, night)
        ended.sessions += SESSIONS - world.left
        for culprit in known.culprits:
            if culprit.commit not in ended.named:
                ended.named[culprit.commit] = night
                ended.innocent += culprit.commit not in ended.planted
        creeps |= {each.since.commit for each in known.creeps}
    ended.creeps = len(creeps)
    return ended


def _watch(world: Simulated, before: Watched | None, night: int) -> Watched:
    commits = tuple(world.levels)
    line = _Line(
        top=Path(),
        repository=WatchedRepository(root="c0"),
        commits=commits,
        places={commit: at for at, commit in enumerate(commits)},
        described=dict.fromkeys(commits, SOME_COMMIT),
    )
    today = (FIRST_DAY + timedelta(days=night)).isoformat()
    known = Watched(
        tool=Tool(version="0"),
        repository=line.repository,
        suite="smoke",
        machine=CpuMachine(cpu_model="simulated", logical_cores=2),
        started=today,
        ended=today,
        head=line.head,
        complete=False,
        culprits=before.culprits if before else (),
        creeps=before.creeps if before else (),
        suspicions=before.suspicions if before else (),
        no_answer=before.no_answer if before else (),
    )
    world.left = SESSIONS
    suspects = world.add_session(line.head)
    return Night(
        known=known,
        line=line,
        launcher=world,
        today=today,
        find_accepted=lambda _culprit: None,
        keep=lambda _known: None,
        find_owner=lambda _workload: None,
        is_removed=lambda _workload: False,
    ).go(suspects, {})


def main(nights: int, workloads: int) -> None:
    """Print the table."""
    print(f"{nights} nights, {workloads} workloads, {COMMITS} commits a night, a loss a week\n")
    print(
        "| machine | losses | right commit within two nights | at all | innocent commits | creeps |"
        " sessions a night |"
    )
    print("|--|--:|--:|--:|--:|--:|--:|")
    for name, spreads in MACHINES.items():
        ended = simulate(nights, spreads, workloads)
        count = len(ended.planted)
        at_all = len(ended.planted.keys() & ended.named.keys()) / count
        cells = (
            name,
            count,
            f"{100 * ended.in_time:.1f} %",
            f"{100 * at_all:.1f} %",
            ended.innocent,
            ended.creeps,
            f"{ended.sessions / nights:.1f}",
        )
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--workloads", type=int, default=1)
    asked = parser.parse_args()
    main(asked.nights, asked.workloads)

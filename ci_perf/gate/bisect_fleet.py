"""Measure the commits of a bisect on the nodes of a fleet: those of a round at the same time.

Each pair is of one node. Which node that is does not matter, as every commit is compared with the
known-good one that was launched beside it.
"""

from collections.abc import Iterator, Sequence

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import Notify, explain
from ci_perf.gate.bisect_sessions import Measurement, PairsJudge, measurement_of
from ci_perf.gate.commit_units import CommitBatches, CommitFleet
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model.environment import GpuMachine, is_same
from ci_perf.model.explained import ExplainedWorkloads
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkUnit
from ci_perf.model.task import MachineDescription
from ci_perf.system.signals import Interrupts

# Once here and once elsewhere, as of a pull request.
_ATTEMPTS = 2


class FleetSessions:
    """Sessions on nodes; see bisect_sessions.Sessions.

    The budget is spent by measuring, not by waiting in a queue: a round costs its longest session.
    """

    def __init__(
        self,
        fleet: CommitFleet,
        options: MeasureOptions,
        good: str,
        ending: Interrupts,
        notify: Notify,
        *,
        workload: str,
    ) -> None:
        """Launch commits beside `good`. Raises UsageError and InvalidFileError: see fleet.toml."""
        self.count = 0
        self.machine: MachineDescription | None = None
        self._batches = CommitBatches(fleet, options, ending, notify, attempts=_ATTEMPTS)
        self._options, self._good, self._workload = options, good, workload
        self._spent_s = self._expected_s = 0.0
        self._rounds = 0
        self._of_parent: Run | None = None

    @property
    def together(self) -> int:
        """See Sessions."""
        return self._batches.nodes

    @property
    def left_s(self) -> float:
        """See Sessions."""
        return self._options.budget_s - self._spent_s

    def measure(self, commit: str, judge: PairsJudge, *, against: str = "") -> Measurement:
        """See Sessions."""
        unit = self._unit(commit, judge, against)
        ((measured, run),) = self._runs("parent" if against else "bad", [unit])
        if measured != commit:
            raise UsageError(
                f"--resume: expected a search that has measured {commit}, found one that has "
                f"measured {measured}; name the same commits, or another folder"
            )
        self._of_parent = run if against and isinstance(run, Run) else None
        return self._measurement(run, judge)

    def measure_all(
        self, commits: Sequence[str], judge: PairsJudge
    ) -> Iterator[tuple[str, Measurement]]:
        """See Sessions."""
        self._rounds += 1
        chosen = [self._unit(commit, judge) for commit in commits]
        for commit, run in self._runs(f"round-{self._rounds}", chosen):
            yield commit, self._measurement(run, judge)

    def explained(self, culprit: str, parent: str, judge: PairsJudge) -> ExplainedWorkloads:
        """See Sessions: by the session of the culprit and its parent, or by one for this."""
        run: Run | str | None = self._of_parent
        if run is None:
            unit = self._unit(culprit, judge, parent)
            ((_, run),) = self._runs("explained", [unit])
        if not isinstance(run, Run):
            raise CiPerfError(run)
        if not run.profiled:
            raise CiPerfError("the node has profiled nothing, as its pairs prove no loss")
        return explain.of_pairs(run.suite, parent, run.profiled)

    def _unit(self, commit: str, judge: PairsJudge, against: str = "") -> WorkUnit:
        """Return the unit of a commit: only the last one, against its parent, is explained."""
        machine = self.machine
        return self._batches.unit(
            commit,
            [self._workload],
            against=against or self._good,
            expected_s=self._expected_s,
            metric=judge.metric,
            # Which machine it is, and so how noisy, the first node tells.
            limits=judge.limits(machine.environment.hard) if machine else None,
            tiers=judge.tiers,
            explained=bool(against) and self._options.explain,
        )

    def _runs(self, batch: str, chosen: Sequence[WorkUnit]) -> Iterator[tuple[str, Run | str]]:
        """Yield of each unit its commit, and its run or why there is none.

        Raises KeyboardInterrupt after those that have ended.
        """
        done = self._batches.measure(batch, chosen, budget_s=max(self.left_s, 0.0))
        self.count += len(done.units)
        durations_s = [run.duration_s for run in done.runs.values()]
        self._spent_s += max(durations_s, default=0.0)
        self._expected_s = max([self._expected_s, *durations_s])
        for unit in done.units:
            if unit.id in done.runs:
                yield unit.source.commit, done.runs[unit.id]
            elif unit.id in done.reasons:
                yield unit.source.commit, done.reasons[unit.id]
        if done.is_interrupted:
            raise KeyboardInterrupt

    def _measurement(self, run: Run | str, judge: PairsJudge) -> Measurement:
        if isinstance(run, str):
            return Measurement(failure=run)
        known = self.machine.environment.hard if self.machine else run.environment.hard
        if not is_same(known, run.environment.hard):
            why = "expected a node like that of the known-bad commit"
            difference = f"{known}, found {run.environment.hard}"
            return Measurement(distrust=f"{why}, {difference}; say in fleet.toml what to `expect`")
        self.machine = _described(run, self.machine)
        return measurement_of(run, judge)


def _described(run: Run, known: MachineDescription | None) -> MachineDescription:
    """Describe the machine of a run, as far as the programs of commits are compared by it.

    Of the variables of its nodes only those are known that a program has read.
    """
    variables = dict(known.variables) if known else {}
    for program in run.programs:
        variables |= {name: value for name, value in program.variables.items() if value}
    is_gpu = isinstance(run.environment.hard, GpuMachine)
    return MachineDescription(
        device="cuda" if is_gpu else "cpu",
        locks=(),
        gpus=(),
        environment=run.environment if known is None else known.environment,
        variables=variables,
    )

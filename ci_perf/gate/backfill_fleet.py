"""Have the nodes of a fleet measure the commits of a backfill, and add their sessions in order.

The commits of a batch are measured at the same time, in any order. A session is added only once all
older ones of the batch have ended, so that it never stands before one of older code.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf import worktree
from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.gate import Notify, commits, fleet
from ci_perf.gate.backfill_baselines import LineBaselines
from ci_perf.gate.commit_units import CommitBatches, MeasuredUnits
from ci_perf.gate.commits import CommitPrograms
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model.backfill import BackfilledCommit, BackfillOutcome
from ci_perf.model.baseline import MAX_SESSIONS
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.fleet import Expectation
from ci_perf.model.run import Run
from ci_perf.model.suite import is_selected
from ci_perf.system.signals import Interrupts


@dataclass(slots=True, kw_only=True)
class FleetBackfill:
    """A line that nodes measure; ``force`` accepts what was measured under pressure."""

    batches: CommitBatches
    options: MeasureOptions
    programs: CommitPrograms
    force: bool
    ending: Interrupts
    notify: Notify
    baselines: LineBaselines | None = None

    def go(self, positions: Sequence[int]) -> Iterator[BackfilledCommit]:
        """Yield what became of the commits, oldest first. Raises CiPerfError, KeyboardInterrupt."""
        machine = self._known_machine()
        newest, left = 0, MAX_SESSIONS
        if machine is not None:
            self.baselines = self._of(machine)
            newest, left = self.baselines.newest_known(), self.baselines.left()
            yield from (self.baselines.passed(at) for at in positions if at <= newest)
        waiting = [at for at in positions if at > newest]
        number = 0
        while waiting:
            number += 1
            name = f"commits-{number}"
            begun = self._begun(name)
            chosen = [at for at in waiting if at <= max(begun)] if begun else waiting[:left]
            if not begun and left <= 0:
                break
            waiting = waiting[len(chosen) :]
            measured = self._measured(name, chosen)
            for at in chosen:
                self.ending.check()
                added = self._added(at, measured)
                left -= added.outcome == "measured"
                yield added
            if measured.is_interrupted:
                raise KeyboardInterrupt
        yield from (self._outcome(at, "left") for at in waiting)

    def _known_machine(self) -> Machine | None:
        """Return the machine of baselines that the nodes are; `None` where there are none.

        Raises UsageError where `expect` does not tell which one that is.
        """
        folder = Path(self.options.root, self.options.baselines)
        every = layout.read_everything(folder, self.options.suite)
        machines = {layout.machine_key(each.machine): each.machine for each in every}
        expect = self.batches.node_class.expect
        alike = {key: each for key, each in machines.items() if not expect.difference(each)}
        if not machines or (expect != Expectation() and not alike):
            return None
        if len(alike) == 1 and expect != Expectation():
            return next(iter(alike.values()))
        raise UsageError(
            "fleet.toml: expected in `expect` of the class what tells which machine of "
            f"{self.options.baselines} its nodes are ({', '.join(sorted(machines))}), found "
            f"{'facts of several' if alike and expect != Expectation() else 'nothing'}; name its "
            "gpu_model, or its cpu_model"
        )

    def _of(self, machine: Machine) -> LineBaselines:
        return LineBaselines(
            options=self.options,
            line=self.programs.line,
            machine=machine,
            force=self.force,
            notify=self.notify,
        )

    def _begun(self, batch: str) -> list[int]:
        """Return the positions of a batch of an earlier call. Raises UsageError: of other ones."""
        known = {each.commit.id: at for at, each in enumerate(self.programs.line.commits)}
        begun = [unit.source.commit for unit in self.batches.kept(batch)]
        if others := [commit for commit in begun if commit not in known]:
            raise UsageError(
                f"--resume: expected commits of this line, found {others[0]}; name the same "
                "commits, or another folder with --fleet-output"
            )
        return [known[commit] for commit in begun]

    def _measured(self, batch: str, positions: Sequence[int]) -> MeasuredUnits:
        """Have commits measured; one without a suite has no unit."""
        planned = ((at, self._workloads(at)) for at in positions)
        units = [
            self.batches.unit(self.programs.line.id(at), names)
            for at, names in planned
            if not isinstance(names, CiPerfError)
        ]
        if not units:
            return MeasuredUnits(units=())
        return self.batches.measure(batch, units, budget_s=0.0)

    def _workloads(self, at: int) -> tuple[str, ...] | CiPerfError:
        try:
            workloads = self.programs.plan(at).workloads
        except CiPerfError as error:
            return error
        select = self.options.select
        names = tuple(each.id for each in workloads if is_selected(each.id, select))
        return names or UsageError(f"expected a workload {', '.join(select)}, found none")

    def _added(self, at: int, measured: MeasuredUnits) -> BackfilledCommit:
        """Add the session of a commit, and say what became of it. Raises KeyboardInterrupt."""
        commit = self.programs.line.id(at)
        unit = next((each for each in measured.units if each.source.commit == commit), None)
        if unit is None:
            planned = self._workloads(at)
            other = "what is resumed has not measured it: begin anew in another --fleet-output"
            note = str(planned) if isinstance(planned, CiPerfError) else other
            return self._outcome(at, "failed", note)
        if unit.id in measured.reasons:
            return self._outcome(at, "failed", measured.reasons[unit.id])
        if unit.id not in measured.runs:
            raise KeyboardInterrupt  # nobody has measured it yet, and no newer one comes first
        run = measured.runs[unit.id]
        if self.baselines is None:
            self.baselines = self._of(_usual_machine(measured.runs))
        if not is_same(self.baselines.machine, run.environment.hard):
            expected, actual = self.baselines.machine, run.environment.hard
            why = f"expected the machine of its class, {expected}, found {actual}"
            return self._outcome(at, "failed", f"{why}; say in fleet.toml what to `expect`")
        try:
            # Nothing of it runs here: the session is judged by its own suite.toml.
            with worktree.commit_of(self.options.root, commit, has_setup=True) as checkout:
                own = commits.options_of(self.options, checkout)
                return self.baselines.add(run, own, at)
        except CannotWriteError:
            raise
        except CiPerfError as error:
            self.notify(f"{self.programs.line.shown(at)}: {error}")
            return self._outcome(at, "failed", str(error))

    def _outcome(self, at: int, outcome: BackfillOutcome, note: str = "") -> BackfilledCommit:
        commit = self.programs.line.commits[at].commit
        return BackfilledCommit(commit=commit, outcome=outcome, note=note)


def _usual_machine(runs: dict[str, Run]) -> Machine:
    """Return the machine of most runs."""
    unlike = dict(fleet.unlike_most(runs))
    return next(run.environment.hard for name, run in runs.items() if name not in unlike)

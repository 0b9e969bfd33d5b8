"""One session: every process of every workload, the pairs after them, and the run they make."""

import dataclasses
import datetime as dt
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import hooks
from ci_perf.baselines import layout
from ci_perf.judging.earlier_checks import Before
from ci_perf.measuring import distrust
from ci_perf.model import run as runs
from ci_perf.model.baseline import Calibration
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.run import Source
from ci_perf.model.suite import LARGEST_LIMIT, Plan
from ci_perf.model.task import MachineDescription
from ci_perf.model.validity import distinct, validity_of
from ci_perf.same_program.records import Records
from ci_perf.session.interleaving import Against, Interleaving
from ci_perf.session.lab import GpuLostError, Lab, MachineChecks, describe, new_identity
from ci_perf.session.listener import Listener
from ci_perf.session.programs import SessionPrograms
from ci_perf.session.runner import SessionRunner
from ci_perf.session.schedule import Forecast, PairJudge
from ci_perf.suite import plan_screening
from ci_perf.system import git
from ci_perf.version import __version__

__all__ = [
    "Against",
    "Forecast",
    "Lab",
    "Listener",
    "MachineChecks",
    "PairJudge",
    "describe",
    "measure",
    "new_identity",
]


def measure(
    lab: Lab,
    plan: Plan,
    *,
    against: Against | None = None,
    records: Records | None = None,
    baselines: Path | None = None,
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> runs.Run:
    """Measure the plan, alone on its device. A workload that fails is recorded and stops no other.

    A calibration of the machine below `baselines` completes the plan. With `against`, base and
    head are launched in turns where the baselines do not clear the head. A workload of which
    `records` says that both sides use the same files is not launched; the others make new records.
    An interrupt ends the child, and the run, as far as it has come, says so in its validity; before
    anything is launched, it raises KeyboardInterrupt. Raises BusyError.
    """
    plan = complete_plan(plan, baselines, lab.machine)
    if against and against.checkout.plan:
        before = complete_plan(against.checkout.plan, baselines, lab.machine)
        checkout = dataclasses.replace(against.checkout, plan=before)
        against = dataclasses.replace(against, checkout=checkout)
    if against and against.routes:
        # As many launches of the head as the judge asks for before pairs.
        hard = lab.machine.environment.hard
        plan = plan_screening(plan, against.judge.first_launches(plan, hard))
    session = _Session(
        lab=lab,
        plan=plan,
        source=git.source(Path(plan.root)),
        against=against,
        before=against.before if against else Before(),
        started=now(),
    )
    if against:
        lab.reasons += distrust.distrust_base(plan, against.checkout.root)
    if records:
        moved = session.before.moved(session.source)
        session.programs = SessionPrograms(plan.workloads, lab.machine, records, moved=moved)
    if not session.plan_to_launch().workloads:
        return session.launch()
    with lab.held():
        session.started, session.start = now(), time.monotonic()
        lab.await_quiet()
        return session.launch()


# Whose rows are explained: also those of which pairs have said a little less than "proven".
_MOVED = frozenset({Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED})


@dataclass(slots=True, kw_only=True)
class _Session:
    """What is known before anything is launched, and what launches all of the plan."""

    lab: Lab
    plan: Plan
    source: Source
    against: Against | None
    before: Before
    started: dt.datetime
    start: float = field(default_factory=time.monotonic)
    programs: SessionPrograms | None = None
    runner: SessionRunner = field(init=False)

    def launch(self) -> runs.Run:
        """Launch what has to be launched, and return the run.

        Rounds of the head come first, then pairs with the base, then launches that explain. An
        interrupt that comes after the verdict was told ends what explains it, and no more.
        """
        self._record_base()
        plan, interrupts = self.plan_to_launch(), self.lab.interrupts
        self.runner = runner = SessionRunner(plan, self.lab)
        pairs, explaining = None, []
        if self.against:
            pairs = Interleaving(runner, self.against, seed=self.lab.identity)
            explaining = open_explaining(self.lab, self.against)
        if not plan.workloads:
            # Pairs of no workload: they describe the base that the head is the same as.
            self._launch_pairs(pairs)
            return self._run_so_far(pairs)
        verdict = None
        try:
            self._launch_heads(pairs)
            self._launch_pairs(pairs)
            interrupts.check()
            run = self._run_so_far(pairs)
            verdict = self.against.judge.verdict(run) if self.against else None
            sides = {}
            if pairs and verdict and explaining:
                sides = {name: pairs.tasks_of_own_files(name) for name in find_moved(run, verdict)}
            if self.against and verdict:
                explain_s = (self.against.explain_budget_s or 0.0) if sides else 0.0
                self.lab.listener.decided(verdict, explain_s)
                for each in explaining:
                    each.profile_pairs(sides, explain_s)
            interrupts.check()
        except KeyboardInterrupt:
            interrupts.came = verdict is None
        except GpuLostError:  # its reason says so, and nothing more is launched
            pass
        if interrupts.came:
            self.lab.reasons.append(distrust.INTERRUPTED)
        return self._run_so_far(pairs, explaining)

    def plan_to_launch(self) -> Plan:
        """Return the plan without the workloads that need no launch, as far as is known."""
        if self.programs is None:
            return self.plan
        left = self.programs.select_to_measure(self.plan.workloads)
        return msgspec.structs.replace(self.plan, workloads=left)

    def _record_base(self) -> None:
        """Launch the base once of every workload of which no record is known: it makes one."""
        if self.programs is None or self.against is None:
            return
        lab, unknown = self.lab, self.programs.find_unknown()
        for workload in (each for each in self.plan.workloads if each.id in unknown):
            base = self.against.checkout.find_task(lab.task(workload, 0))
            if base is not None:
                lab.listener.recording(workload.id)
            try:
                outcome = lab.outcome(base) if base else None
            except GpuLostError:  # the rounds find it lost, too
                return
            self.programs.note_base(workload, base, outcome)

    def _launch_heads(self, pairs: Interleaving | None) -> None:
        """Launch the rounds of the head, and what comes before. Raises as `_launch_pairs` does.

        Before them come both sides of the most telling cases, as long as a loss is obvious.
        """
        plan = self.runner.plan
        self.runner.begin(self.against.budget_s if self.against else 0.0)
        if pairs:
            self._launch_telling_cases(pairs)
        if not (pairs and pairs.is_over):
            self.runner.launch_rounds()
        if self.programs:
            root = Path(plan.root)
            self.programs.keep(self.lab.identity, plan.workloads, self.runner.results, root)

    def _launch_telling_cases(self, pairs: Interleaving) -> None:
        for name in pairs.list_telling_cases():
            if pairs.is_over:
                return
            self.runner.launch_first(name)
            pairs.screen(self._run_so_far(pairs))
            while pairs.may_be_obvious(name):
                pairs.launch(name)
                pairs.judge(self._run_so_far(pairs), name)

    def _launch_pairs(self, pairs: Interleaving | None) -> None:
        """Launch base and head in turns, and have each pair judged.

        Raises KeyboardInterrupt, and GpuLostError.
        """
        if pairs is None:
            return
        pairs.begin(self._run_so_far(pairs))
        while workload := pairs.choose_next():
            pairs.launch(workload)
            pairs.judge(self._run_so_far(pairs), workload)
        if self.programs:
            self.programs.note_variation(self.runner.results, pairs.paired())

    def _run_so_far(self, pairs: Interleaving | None, explaining: Iterable[Any] = ()) -> runs.Run:
        """Return the run as far as it has come."""
        runner = self.runner
        run = runs.Run(
            tool=runs.Tool(version=__version__),
            id=self.lab.identity,
            started_at=self.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            duration_s=round(time.monotonic() - self.start, 3),
            waited_s=round(self.lab.waited_s, 3),
            source=self.source,
            suite=self.plan.suite,
            selection=self.plan.selection,
            environment=self.lab.machine.environment,
            validity=validity_of(distinct(self.lab.reasons)),
            canaries=tuple(runner.canaries),
            measured=runner.measured(),
            failed=runner.failed(),
            interleaved=pairs.described() if pairs else None,
            paired=pairs.paired() if pairs else (),
            same=self.programs.same if self.programs else (),
            touched=self.programs.touched if self.programs else (),
            programs=tuple(self.programs.programs) if self.programs else (),
            profiled=tuple(pairs for each in explaining for pairs in each.pairs.values()),
        )
        return self.before.joined(run)


def open_explaining(lab: Lab, against: Against) -> list[Any]:
    """Return what profiles both sides of workloads, by the features that there are, if asked."""
    explaining = hooks.find_targets("after_pairs") if against.explain_budget_s is not None else ()
    return [make(lab, traces=against.traces) for make in map(hooks.load, explaining)]


def find_moved(run: runs.Run, verdict: Comparison) -> list[str]:
    """Name the workloads to explain, the worst first: those that pairs of the run call moved."""
    if run.validity.against(""):
        return []
    paired = {paired.workload for paired in run.paired if paired.pairs}
    moved = [row for row in verdict.rows if isinstance(row, Change) and row.verdict in _MOVED]
    return list(
        dict.fromkeys(row.workload for row in moved if row.pairs and row.workload in paired)
    )


def with_calibration(plan: Plan, calibration: Calibration | None) -> Plan:
    """Return the plan with the machine's statistic wherever suite.toml says nothing of its own.

    How long its launches time follows from how much they were found to differ.
    """
    if calibration is None:
        return plan
    workloads = []
    for workload in plan.workloads:
        protocol = workload.protocol
        statistic = protocol.statistic if workload.own_statistic else calibration.statistic
        known = calibration.workloads.get(workload.id)
        spread = (known or calibration).launches.get(statistic, 0.0)
        protocol = msgspec.structs.replace(
            protocol,
            statistic=statistic,
            launch_spread=max(protocol.launch_spread, min(spread, LARGEST_LIMIT)),
        )
        workloads.append(msgspec.structs.replace(workload, protocol=protocol))
    return msgspec.structs.replace(plan, workloads=tuple(workloads))


def complete_plan(plan: Plan, baselines: Path | None, machine: MachineDescription) -> Plan:
    """Return the plan with the statistic of the machine's calibration."""
    if baselines is None:
        return plan
    return with_calibration(plan, layout.read_calibration(baselines, machine.environment.hard))

"""Rehearse a gate: measure a commit beside itself, as it is and with plants, as a check would."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import session, worktree
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.rehearsal import findings, plants
from ci_perf.features.rehearsal.plants import WantedPlant
from ci_perf.gate import arguments, collecting, compare, lab, measure, run_summary, sources
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.baseline import Provenance
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.plant import Plant
from ci_perf.model.rehearsed import RehearsedSuite, RehearsedWorkload
from ci_perf.model.run import UNKNOWN_COMMIT, Run
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.report import units
from ci_perf.session import Against, Lab, Listener
from ci_perf.system import files, git, signals
from ci_perf.worktree import Checkout

# A=A takes half of the time at most: plants need as much again.
_HALVES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What was shown, and on which machine."""

    machine: Machine
    suite: RehearsedSuite
    is_interrupted: bool


def rehearse(
    asked: Mapping[str, Any],
    *,
    wanted: Sequence[WantedPlant],
    command: Sequence[str],
    setup: str,
    notify: Notify,
    listener: Listener,
) -> Rehearsal:
    """Measure HEAD beside itself, then each workload with each plant; an interrupt ends it early.

    Raises UsageError, InvalidFileError and other CiPerfErrors, and KeyboardInterrupt where nothing
    was found yet.
    """
    root = files.current_folder()
    source = git.source(root)
    if source.dirty or source.commit == UNKNOWN_COMMIT:
        state = "uncommitted changes" if source.dirty else "none"
        raise UsageError(
            f"rehearse: expected a commit, of which base and head are copies, found {state}; "
            "commit first, or see a first red by `ci-perf try`"
        )
    opened = sources.open_source(
        root, {**asked, "against": "HEAD"}, command=command, setup=setup, notify=notify
    )
    with opened as given:
        options = arguments.measure_options(None, given)
        plan = measure.plan(options, has_tests=True)
        with _open_lab(plan, options, notify, listener) as (here, checkout):
            with here.held():
                here.await_quiet()
                come = here.interrupts.have_come
                plan = collecting.collect_plan(
                    plan, Path(plan.root), runs=True, notify=notify, interrupted=come
                )
                base = collecting.collect_base(checkout, plan, notify, come)
            here.wait_s, here.listener = 0.0, Listener()  # it was awaited; each answer is told
            refuse_plants(plan.workloads, wanted, has_gpu=here.machine.device != "cpu")
            rounds = _Rounds(here, base, options, notify, here.clock() + options.budget_s)
            is_interrupted = False
            try:
                rounds.measure_all(plan, wanted)
            except KeyboardInterrupt:
                is_interrupted = True
            suite = rounds.describe(plan)
            machine = here.machine.environment.hard
    return Rehearsal(machine=machine, suite=suite, is_interrupted=is_interrupted)


@contextlib.contextmanager
def _open_lab(
    plan: Plan, options: MeasureOptions, notify: Notify, listener: Listener
) -> Iterator[tuple[Lab, Checkout]]:
    """Provide an open session beside a checkout of the same commit. Raises as `lab.open` does."""
    root, has_setup = Path(plan.root), bool(plan.setup.command)
    with (
        signals.note_signals() as interrupts,
        worktree.commit_of(root, "HEAD", has_setup=has_setup) as checkout,
    ):
        base = lab.with_plan(checkout, plan, options)
        opened = lab.open_with_base(base, plan, options, interrupts, notify, listener)
        with opened as here:
            checked = here.base or base
            if checked.trouble:
                raise CiPerfError(checked.trouble)
            yield here, checked


def refuse_plants(
    workloads: Sequence[PlannedWorkload], wanted: Sequence[WantedPlant], *, has_gpu: bool
) -> None:
    """Refuse plants for which these workloads have no place. Raises UsageError."""
    for want in wanted:
        if want.kind == "wait" and not has_gpu:
            raise UsageError(
                "--plant wait: expected a GPU, for which a step can wait, found a CPU; plant work "
                "(--plant 5%)"
            )
        for workload in workloads:
            if want.kind != "work" and workload.launch == "command":
                raise UsageError(
                    f"--plant {want.kind}: expected a workload or a test, found the command "
                    f"{workload.id}: only work can be planted there; name other workloads"
                )
    if all(workload.parameters.get("metric") for workload in workloads):
        plants.refuse_printed(workloads[0])


@dataclass(slots=True)
class _Rounds:
    """Measures round after round in one open session, and keeps what each has shown."""

    here: Lab
    base: Checkout
    options: MeasureOptions
    notify: Notify
    end_s: float
    known: dict[str, RehearsedWorkload] = field(default_factory=dict)
    first: Run | None = None

    def measure_all(self, plan: Plan, wanted: Sequence[WantedPlant]) -> None:
        """Measure all workloads without a plant, then each with each. Raises KeyboardInterrupt."""
        number = len(plan.workloads)
        self.notify(f"A=A: {units.render_count(number, 'workload')} beside the same commit")
        run, comparison = self._measure(plan, None, _HALVES)
        self.first = run
        rules = self._rules(run)
        for workload in plan.workloads:
            told = findings.judge_alike(run, comparison, workload.id, rules.limits, rules.fail_on)
            self.known[workload.id] = told
            self.notify(f"{workload.id}: A=A {told.alike}{f': {told.why}' * bool(told.why)}")
        sharing = run.interleaved.suspects if run.interleaved else 0
        left = [*self._list_rounds(plan, wanted, run)]
        for place, (workload, want) in enumerate(left):
            self._try_plant(plan, workload, want, sharing, len(left) - place)

    def describe(self, plan: Plan) -> RehearsedSuite:
        """Return what is known so far. Raises KeyboardInterrupt: nothing is."""
        if self.first is None:
            raise KeyboardInterrupt
        run = self.first
        return RehearsedSuite(
            workloads=self.known,
            provenance=Provenance(
                recorded_at=run.started_at,
                source=run.source,
                run=run.id,
                tool_version=run.tool.version,
                suite=run.suite,
                selection=plan.selection,
                soft=run.environment.soft,
                distrust=tuple(sorted({reason.code for reason in run.validity.reasons})),
            ),
        )

    def _list_rounds(
        self, plan: Plan, wanted: Sequence[WantedPlant], run: Run
    ) -> Iterator[tuple[PlannedWorkload, WantedPlant]]:
        measured = {each.workload for each in run.measured}
        for workload in plan.workloads:
            if workload.id in measured and not workload.parameters.get("metric"):
                own = wanted or plants.choose_plants(self.known[workload.id].limit)
                yield from ((workload, want) for want in own)

    def _try_plant(
        self, plan: Plan, workload: PlannedWorkload, want: WantedPlant, sharing: int, left: int
    ) -> None:
        """Measure a workload with one plant, and add what was found to what is known of it."""
        assert self.first is not None
        numbers = findings.list_numbers(self.first, workload.id)
        is_gpu = self.here.machine.device != "cpu" and workload.launch != "command"
        plant = plants.make_plant(workload.id, want, numbers, is_gpu=is_gpu)
        alone = msgspec.structs.replace(plan, workloads=(workload,), selection=(workload.id,))
        broken: Iterable[str] = ()
        if self.here.clock() < self.end_s:
            run, comparison = self._measure(alone, plant, left, sharing=sharing)
            attempt = findings.judge_plant(plant, run, comparison, self._rules(run).fail_on)
            broken = findings.find_broken(attempt, self.known[workload.id].limit, run, comparison)
        else:
            attempt = findings.leave_out(plant)
        before = self.known[workload.id]
        self.known[workload.id] = msgspec.structs.replace(
            before,
            attempts=(*before.attempts, attempt),
            broken=tuple(dict.fromkeys((*before.broken, *broken))),
        )
        why = f": {attempt.why}" if attempt.why else ""
        pairs = units.render_count(attempt.pairs, "pair")
        self.notify(
            f"{workload.id}: {plants.name_plant(plant)} {attempt.answer.value}{why} "
            f"({pairs}, {units.duration(attempt.duration_s)})"
        )

    def _measure(
        self, plan: Plan, plant: Plant | None, rounds: int, *, sharing: int = 0
    ) -> tuple[Run, Comparison]:
        """Launch and judge a round, with its share of the time. Raises KeyboardInterrupt."""
        here, names = self.here, {workload.id for workload in plan.workloads}
        here.plant, here.identity = plant, session.new_identity()
        here.reasons.clear()
        before = self.base.plan and msgspec.structs.replace(
            self.base.plan,
            workloads=tuple(each for each in self.base.plan.workloads if each.id in names),
        )
        against = Against(
            checkout=dataclasses.replace(self.base, plan=before),
            budget_s=max(0.0, self.end_s - here.clock()) / rounds,
            judge=compare.BaselineJudge("", self.options, sharing),
            routes=self.options.processes is None,
        )
        run = session.measure(here, plan, against=against, baselines=self.options.baselines)
        if run_summary.is_interrupted(run):
            raise KeyboardInterrupt
        baselines = self.options.baselines
        return run, compare.against_baselines(run, baselines, label="", rules=self._rules(run))

    def _rules(self, run: Run) -> compare.Rules:
        where, machine = self.options, run.environment.hard
        quiet: list[str] = []
        return compare.rules(
            where.workloads, run.suite, where.baselines, machine, notify=quiet.append
        )

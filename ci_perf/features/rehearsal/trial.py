"""Measure a checkout beside itself, with work that is planted into the launches of one side."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import hooks, session, suite
from ci_perf.api_types import Notify
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.features.rehearsal import plants
from ci_perf.gate import arguments, collecting, compare, lab, measure, run_summary, sources
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import launch_numbers
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.metrics import STEP_TIME
from ci_perf.model.plant import Plant
from ci_perf.model.run import Run
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import Task
from ci_perf.report import units
from ci_perf.session import Against, Lab, Listener
from ci_perf.session.lab import MachineChecks
from ci_perf.session.schedule import PairJudge
from ci_perf.system import files, git, scratch
from ci_perf.worktree import Checkout

# A newcomer believes a loss of a tenth, pairs find four times their own noise, and where two pairs
# were disturbed, twice the time is plain enough.
_LEAST_SHARE, _MOST_SHARE = 0.1, 1.0
_SPREADS = 4
_PAIRS = 2
# Six pairs with the plant take twice as long as what comes before them.
_TIMES_LONGER = 2
# A command of 3 s runs once in a launch, so that six pairs take a minute.
_COMMAND_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What was planted, in words, and the verdict; ``trouble`` is why the run is not written."""

    scope: str
    comparison: Comparison
    trouble: CannotWriteError | None = None


class _SameCheckout(Checkout):
    """The checkout of the head as its base: only the plant tells them apart."""

    def spell_task(self, task: Task) -> Task:
        """Return the task without its plant."""
        return msgspec.structs.replace(task, plant=None)


class _TwoPairs(PairJudge):
    """Asks for two pairs, and judges nothing."""

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """See PairJudge."""
        del machine
        return {workload.id: 1 for workload in plan.workloads}

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge."""
        is_done = any(len(each.pairs) >= _PAIRS for each in run.paired)
        return {} if is_done else {each.workload: 1.0 for each in run.measured}, 1


def measure_trial(
    asked: Mapping[str, Any], *, command: Sequence[str], notify: Notify, listener: Listener
) -> Trial:
    """Plant work into a command, a test or a workload, and judge pairs with and without it.

    Raises UsageError, InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    root = files.current_folder()
    is_named = command or asked["suite"] or any(asked.get(each) for each in hooks.find_sources())
    if not (is_named or suite.exists(Path(root, asked["workloads"]))):
        raise UsageError(
            "try: expected a program, found none; next: ci-perf try -- python train.py"
        )
    source = sources.open_source(root, {**asked, "against": "HEAD"}, command=command, notify=notify)
    with source as given, scratch.folder() as temporary:
        options = arguments.measure_options(
            None, {**given, "against": None, "baselines": temporary.path / "baselines"}
        )
        if options.output is not None:
            files.check_target(options.output)
        plan = measure.plan(options, has_tests=True)
        with lab.open(plan, options, notify, listener) as here:
            plan = _choose_workload(here, plan, notify)
            return _measure_open(here, plan, options, notify)


def describe_end(*, is_red: bool) -> str:
    """Say what the report means, and what comes next."""
    if not is_red:
        return (
            "Not red: the noise of this machine hides the work. Next: end other programs and try "
            "again; `ci-perf doctor` says what disturbs a machine"
        )
    return (
        "This is what your pull request would show. Nothing in your files was changed. Next: "
        "commit, change something on a branch, and run `ci-perf check --against main` in place of "
        "`ci-perf try`"
    )


def _choose_workload(here: Lab, plan: Plan, notify: Notify) -> Plan:
    """Return the plan with the first workload alone. Raises UsageError: it has no step to slow."""
    come, root = here.interrupts.have_come, Path(plan.root)
    with here.held():
        here.await_quiet()
        plan = collecting.collect_plan(plan, root, runs=True, notify=notify, interrupted=come)
    here.wait_s = 0.0  # it was awaited
    first, *others = plan.workloads
    if others:
        notify(f"{first.id}: the first of {1 + len(others)}; name another one to try it")
    plants.refuse_printed(first)
    if first.launch == "command":
        protocol = msgspec.structs.replace(first.protocol, timed_max_s=_COMMAND_S)
        first = msgspec.structs.replace(first, protocol=protocol)
        # Both sides write into one folder, so two copies must not run at once.
        here.checks = MachineChecks(has_room=lambda *_: False)
    return msgspec.structs.replace(plan, workloads=(first,))


def _measure_open(here: Lab, plan: Plan, options: MeasureOptions, notify: Notify) -> Trial:
    """Measure the plan beside itself, then with a plant, and judge that."""
    root, (workload,) = Path(plan.root), plan.workloads
    same = _SameCheckout(
        root=root, top=root, head_top=root, source=git.source(root), ref="HEAD", notes=()
    )
    against = Against(checkout=same, budget_s=options.budget_s, judge=_TwoPairs(), routes=True)
    notify(f"{workload.id}: a few launches first, which show how much it varies by itself")
    heard, here.listener = here.listener, Listener()
    alike = check_pairs(session.measure(here, plan, against=against), workload)
    here.listener = heard
    here.plant = make_plant(alike, workload, iteration_s=plants.time_iteration())
    # The unit of a command that reports no steps is "run".
    is_whole = (workload.launch, alike.measured[0].item_unit) == ("command", "run")
    scope = _describe_plant(here.plant, is_whole=is_whole)
    notify(f"{scope}. The verdict takes about {units.duration(_TIMES_LONGER * alike.duration_s)}")
    against = dataclasses.replace(
        against,
        checkout=dataclasses.replace(same, notes=(scope,)),
        judge=compare.BaselineJudge("", options),
    )
    run, trouble = session.measure(here, plan, against=against), None
    try:
        if options.output is not None:
            files.write(options.output, run)
    except CannotWriteError as error:
        # Minutes of measuring are worth their verdict.
        trouble = error
    check_pairs(run, workload)
    rules = compare.rules(options.workloads, run.suite, machine=run.environment.hard, notify=notify)
    label = str(options.output) if options.output else f"run {run.id}"
    comparison = compare.against_baselines(run, options.baselines, label=label, rules=rules)
    return Trial(scope=scope, comparison=comparison, trouble=trouble)


def check_pairs(run: Run, workload: PlannedWorkload) -> Run:
    """Return a run that has pairs. Raises CiPerfError: the program failed; KeyboardInterrupt."""
    if run_summary.is_interrupted(run):
        raise KeyboardInterrupt
    failures = [(each.reason, each.output) for each in run.failed]
    for why, output in failures + [(each.trouble, each.output) for each in run.paired]:
        if why:
            text = f"{workload.id}: expected to end well, found {why}; next: run it without ci-perf"
            raise CiPerfError(text, output=output)
    if (reason := run.validity.against("")) is not None:
        raise CiPerfError(f"{workload.id}: nothing holds on this machine now: {reason.detail}")
    if (pairs := sum(len(paired.pairs) for paired in run.paired)) < _PAIRS:
        raise UsageError(
            f"--budget: expected time for {_PAIRS} pairs of {workload.id}, found time for {pairs}; "
            "give it more, or try a shorter program"
        )
    return run


def make_plant(alike: Run, workload: PlannedWorkload, *, iteration_s: float) -> Plant:
    """Return work that is plain to see beside what pairs of the same program differ by."""
    pairs = alike.paired[0].pairs
    spread = max(abs(launch_numbers.step_difference(pair)) for pair in pairs)
    share = round(min(max(_LEAST_SHARE, _SPREADS * spread), _MOST_SHARE), 2)
    step_s = min(launch_numbers.find_own_numbers(pair.base)[STEP_TIME.name] for pair in pairs)
    return plants.size_work(workload.id, share, step_s=step_s, iteration_s=iteration_s)


def _describe_plant(plant: Plant, *, is_whole: bool) -> str:
    where = "after the command, before its time is taken" if is_whole else "at the end of each step"
    work = units.render_count(plant.iterations, "iteration")
    return (
        f"ci-perf try slows down the head on purpose, by about {plant.share:.0%}: {work} of an "
        f"empty loop {where}. Base and head are the same files"
    )

"""Launch base and head in turns, until every suspect is decided or the budget is spent.

schedule.py says whose turn it is. The judge is asked after every launch. The budget is looked at
before every one, so that it is overrun by at most one pair.
"""

import filecmp
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from ci_perf.judging import launch_numbers, suite_rules
from ci_perf.judging.earlier_checks import Before
from ci_perf.judging.generated import has_other_kernels
from ci_perf.judging.policy import EARLY_PAIRS, MOST_PAIRS, OBVIOUS, PAIRS_WITHOUT_HISTORY
from ci_perf.judging.rules import proves_loss
from ci_perf.launch import Outcome
from ci_perf.measuring import user_code
from ci_perf.model.base import Side
from ci_perf.model.comparison import Change, Verdict, severity_of
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.run import Interleaved, Pair, Paired, Run
from ci_perf.model.suite import Plan, PlannedWorkload, find_family, is_selected
from ci_perf.model.task import CommandTurn, Task, TaskFailure
from ci_perf.session import changed_code, command_pairs, schedule
from ci_perf.session.runner import SessionRunner
from ci_perf.session.schedule import Kernels, PairJudge, Waiting
from ci_perf.worktree import Checkout

# A launch need not be known better than this share of the change that pairs show.
_SHARE_OF_CHANGE = 0.1
# The largest spread that is believed: launches that differ by as much as they take.
_MOST_SPREAD = 1.0
# Of normal noise, the standard deviation in median absolute deviations, which no outlier enlarges.
_DEVIATIONS = 1.4826
# Of the budget, how much may find out which workloads have other kernels before a first pair.
_SHARE_FOR_KERNELS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The base, checked out, for how long it may be launched, and who says for which workloads.

    ``before`` is what is known of earlier checks and runs.
    ``routes`` says that the judge chooses how often the head is launched before, too; ``fail_fast``
    that no pair follows the first proven loss. Afterwards,
    counting what both sides do may take ``explain_budget_s``; `None` asks for no counts. Their
    traces are put into the folder ``traces``. With ``keeps_sources`` the processes of pairs have
    the source of generated kernels.
    """

    checkout: Checkout
    budget_s: float
    judge: PairJudge
    before: Before = field(default_factory=Before)
    routes: bool = False
    fail_fast: bool = False
    explain_budget_s: float | None = None
    traces: Path | None = None
    keeps_sources: bool = False


@dataclass(slots=True)
class _Base:
    """What is known of the base of one workload."""

    workload: PlannedWorkload
    is_own_file: bool = False
    is_begun: bool = False
    warmed_up: WorkerResult | None = None
    first: Side = "base"
    may_be_resident: bool = True
    may_fork: bool = True
    # What both sides import in their first steps, where neither is forked.
    late_libraries: tuple[str, ...] = ()
    # Why the copies of a command do not take turns at the steps that it prints.
    against_turn: str = ""
    pairs: list[Pair] = field(default_factory=list)
    failure: TaskFailure | None = None

    def is_done(self) -> bool:
        """Whether no further pair is launched, whatever the judge would like."""
        return self.failure is not None or len(self.pairs) >= MOST_PAIRS


class Interleaving:
    """Launches pairs and keeps them."""

    def __init__(self, runner: SessionRunner, against: Against, *, seed: str) -> None:
        """Launch by `runner`; the order of its plan's launches is drawn by `seed`."""
        self._runner = runner
        self._lab = runner.lab
        self._against = against
        self._random = random.Random(seed)  # noqa: S311  the order of launches, no secret
        self._bases = {workload.id: _Base(workload) for workload in runner.plan.workloads}
        self._suspects = 0
        self._is_proven = self._has_new_pair = False
        self._proven_families: set[tuple[str, str]] = set()
        self._incomparable = _incomparable(against.checkout, runner.plan)
        # The suspects, worst first, and those still undecided, each with the pairs it may need.
        self._expected = self._undecided = dict.fromkeys(self._bases, float(PAIRS_WITHOUT_HISTORY))
        hard = runner.lab.machine.environment.hard
        self._run: Run | None = None
        self._accepted = against.judge.accepted(runner.plan.suite, hard)
        self._start = runner.lab.clock()
        self._spent_s = 0.0
        self._stopped: Literal["decided", "budget", "proven", "interrupted"] = "interrupted"

    def list_telling_cases(self) -> list[str]:
        """Name whose pairs come before the rounds, which do not say whom to suspect.

        There are none where a history does, or earlier pairs.
        """
        plan, hard = self._runner.plan, self._lab.machine.environment.hard
        if self._against.before.offered or not self._against.judge.is_blind(plan, hard):
            return []
        commit = self._against.checkout.source.commit
        likely = changed_code.list_naming_changed(plan.workloads, Path(plan.root), commit)
        return schedule.list_telling_cases(plan.workloads, {*likely})

    def begin(self, run: Run) -> None:
        """Ask the judge for the suspects: their number, and who is first of equals, is fixed here.

        There is none of a run that nobody will judge.
        """
        self._suspects = self.screen(run)
        self._expected = self._undecided
        if self._undecided:
            self._find_proven(run)
        if (left := self._left()) and not self.is_over:
            launches_s = {name: self._runner.launch_s(name) for name in left}
            warm_ups = {name: self._warm_ups(name) for name in left}
            budget_s = self._against.budget_s
            forecast = schedule.forecast(launches_s, budget_s, warm_ups)
            self._lab.listener.interleaving(left, budget_s, forecast)

    def screen(self, run: Run) -> int:
        """Ask the judge for the suspects so far, and count them: none if nobody will judge."""
        self._run, self._undecided = run, {}
        self._start = self._lab.clock() - self._spent_s
        return self._ask(run) if run.validity.against("") is None else 0

    def _ask(self, run: Run) -> int:
        """Ask the judge for the suspects, and count them; whatever had no launch is one, too."""
        unknown = dict.fromkeys(self._runner.list_unlaunched(), float(PAIRS_WITHOUT_HISTORY))
        undecided, suspects = self._against.judge.undecided(run)
        self._undecided = undecided | unknown
        return suspects

    @property
    def is_over(self) -> bool:
        """Whether the first proven loss ends the check."""
        return self._is_proven and self._against.fail_fast

    def may_be_obvious(self, name: str) -> bool:
        """Whether the early look may prove a loss: all that both sides have launched shows it."""
        base = self._bases[name]
        is_spent = self._spent_s >= self._against.budget_s
        if name not in self._left() or self.is_over or is_spent or len(base.pairs) >= EARLY_PAIRS:
            return False
        differences = map(launch_numbers.step_difference, self._list_known(base))
        return all(difference >= math.log1p(OBVIOUS) for difference in differences)

    def _list_known(self, base: _Base) -> Sequence[Pair]:
        """Return the pairs of a workload; before them, a launch of each side that was alone."""
        head, before = self._runner.results(base.workload.id), base.warmed_up
        alone = [Pair(first="head", base=before.process, head=head[0].process)] if before else []
        return base.pairs or alone

    def choose_next(self) -> str:
        """Return whose pair is next; "" where all is decided, or the budget spent."""
        left = self._left()
        if not left:
            self._stopped = "decided"
        elif self.is_over:
            self._stopped = "proven"
        elif self._spent_s >= self._against.budget_s:
            self._stopped = "budget"
        else:
            return self._choose_of(left)
        return ""

    def _choose_of(self, left: Sequence[str]) -> str:
        waiting = {
            name: Waiting(
                pairs=len(self._bases[name].pairs),
                expected=self._undecided[name],
                launch_s=self._runner.launch_s(name),
                warm_ups=self._warm_ups(name),
                of_proven=self._find_family(name) in self._proven_families,
                kernels=self._compare_kernels(name),
            )
            for name in left
        }
        return schedule.next_workload(waiting, is_proven=self._is_proven)

    def judge(self, run: Run, workload: str) -> None:
        """Ask the judge which workloads a run with one more pair of one leaves undecided."""
        self._run = run
        self._ask(run)
        self._find_proven(run)
        if self._has_new_pair:
            row = self._find_worst(run, workload)
            family = self._find_family(workload)
            if row and row.verdict is Verdict.REGRESSED and family[0]:
                self._proven_families.add(family)
            self._lab.listener.pair_finished(workload, row, self._most_s())

    def _find_worst(self, run: Run, workload: str) -> Change | None:
        """Judge one workload alone, for it costs less; return what is worst of its pairs so far."""
        verdict = self._against.judge.verdict(
            msgspec.structs.replace(
                run,
                measured=tuple(each for each in run.measured if each.workload == workload),
                paired=tuple(each for each in run.paired if each.workload == workload),
            )
        )
        rows = [
            row
            for row in (verdict.rows if verdict else ())
            if isinstance(row, Change) and row.workload == workload and row.pairs and row.gate
        ]
        return min(rows, key=lambda row: (severity_of(row).rank, -(row.ratio or 1.0)), default=None)

    def _find_family(self, workload: str) -> tuple[str, str]:
        return find_family(workload, self._bases[workload].workload.parameters)

    def _most_s(self) -> float:
        """Return how long the pairs that there can still be take, within the budget."""
        pairs_s = (
            2 * self._runner.launch_s(name) * (MOST_PAIRS - len(self._bases[name].pairs))
            for name in self._left()
        )
        return max(0.0, min(self._against.budget_s - self._spent_s, math.fsum(pairs_s)))

    def _find_proven(self, run: Run) -> None:
        verdict = None if self._is_proven else self._against.judge.verdict(run)
        self._is_proven = self._is_proven or (verdict is not None and proves_loss(verdict))

    def _left(self) -> tuple[str, ...]:
        """Name the undecided workloads that may be launched, worst first."""
        return tuple(
            name
            for name in self._expected
            if name in self._undecided and not self._bases[name].is_done()
        )

    def described(self) -> Interleaved:
        """Say how it went so far."""
        return Interleaved(
            ref=self._against.checkout.ref,
            source=self._against.checkout.source,
            suspects=self._suspects,
            budget_s=self._against.budget_s,
            spent_s=round(self._spent_s, 3),
            stopped=self._stopped,
            pairs=sum(len(base.pairs) for base in self._bases.values()),
            notes=(*self._against.checkout.notes, *self._list_against_turn()),
            accepted=self._accepted,
            dependencies=self._against.checkout.dependencies,
            incomparable=self._incomparable,
            expected=_list_expected(self._against.checkout.plan, self._runner.plan),
            unlaunched=self._runner.list_unlaunched(),
            unmeasured=self._against.checkout.unmeasured,
            planted=self._lab.plant,
            environment=self._against.checkout.environment,
        )

    def paired(self) -> tuple[Paired, ...]:
        """Return what was launched in turns, and what could not be."""
        return tuple(
            Paired(
                workload=name,
                file="base" if base.is_own_file else "head",
                pairs=tuple(base.pairs),
                trouble=base.failure.reason if base.failure else "",
                output=base.failure.output if base.failure else "",
            )
            for name, base in self._bases.items()
            if base.pairs or base.failure
        )

    def tasks_of_own_files(self, workload: str) -> tuple[Task, Task] | None:
        """Spell out a launch of each side, base first, of which each has all code below its root.

        `None` where the base has no file of the workload.
        """
        base = self._bases[workload]
        head = self._task(base, "head", index=0)
        task = self._against.checkout.find_task(head)
        return None if task is None else (task, head)

    def launch(self, name: str) -> None:
        """Launch the next pair of a workload, or what has to come before it."""
        base = self._bases[name]
        before = len(base.pairs)
        self._lab.listener.pair_started(name, before + 1, len(self._left()))
        if not base.is_begun:
            self._begin(base)
        if self._warm_ups(name):
            self._warm_up(base)
        else:
            self._launch_both(base)
        self._spent_s = self._lab.clock() - self._start
        if base.failure is not None:
            self._lab.listener.base_failed(name, base.failure.reason)
        self._has_new_pair = len(base.pairs) > before  # one that does not count is launched again

    def _begin(self, base: _Base) -> None:
        """Draw which side comes first, and have each run its own workload file.

        So a change of that file shows, and of what it finds beside itself. A base that has no such
        file runs the head's.
        """
        head, checkout = base.workload, self._against.checkout
        base.workload = checkout.find_workload(head, Path(self._runner.plan.root)) or head
        if base.workload.file != head.file:
            base.is_own_file = _is_changed(Path(base.workload.file), Path(head.file))
        base.first = self._random.choice(("base", "head"))
        base.is_begun = True

    def _warm_ups(self, workload: str) -> int:
        """Return how many launches must fill the base's caches before its first pair.

        Kernels and compiled code are kept from launch to launch. On a CPU the head's launches show
        whether there are any.
        """
        compiles = [result.process.compiles for result in self._runner.results(workload)]
        has_caches = self._lab.machine.device != "cpu" or any(
            counts is None or counts.graphs or counts.cache == "filled" for counts in compiles
        )
        return int(has_caches and self._bases[workload].warmed_up is None)

    def _compare_kernels(self, workload: str) -> Kernels:
        """Say whether the base has other kernels: its first, uncounted launch shows them."""
        head = self._runner.results(workload)[0].process
        if warmed_up := self._bases[workload].warmed_up:
            return Kernels.OTHER if has_other_kernels(warmed_up.process, head) else Kernels.SAME
        may_tell = bool(self._warm_ups(workload) and (head.generated or head.device_work))
        has_time = self._spent_s < _SHARE_FOR_KERNELS * self._against.budget_s
        return Kernels.UNKNOWN if may_tell and has_time else Kernels.SAME

    def _warm_up(self, base: _Base) -> None:
        """Launch the base once, uncounted and shortly: the head's caches are filled by now, too."""
        task = _time_by_spread(self._task(base, "base", index=0), _MOST_SPREAD)
        outcome = self._lab.outcome(task)
        checked = self._checked(base.workload.id, outcome)
        if isinstance(checked, TaskFailure):
            base.failure = checked
        else:
            base.warmed_up = checked

    def _launch_both(self, base: _Base) -> None:
        """Launch both sides; the one that came second last time comes first."""
        sides: tuple[Side, Side] = ("base", "head")
        first, second = sides if base.first == "base" else sides[::-1]
        spread = _spread_of_launches(self._list_known(base))
        tasks = [
            msgspec.structs.replace(
                _time_by_spread(self._task(base, side, index=len(base.pairs)), spread),
                keeps_sources=self._against.keeps_sources,
            )
            for side in (first, second)
        ]
        tasks = self._fork(base, tasks)
        may_fork = bool(tasks[0].libraries)
        is_resident = self._may_be_resident(base)
        if turn := self._find_turn(base, is_resident=is_resident):
            by_turn = [msgspec.structs.replace(task, command_turn=turn) for task in tasks]
            outcomes = self._lab.outcome_of_pair(*by_turn)
            first_launch = self._runner.results(base.workload.id)[0]
            if reason := command_pairs.refuse(outcomes, first_launch):
                base.against_turn = reason
                return
        elif is_resident:
            outcomes = self._lab.outcome_of_pair(tasks[0], tasks[1])
            if not may_fork and any(isinstance(outcome, TaskFailure) for outcome in outcomes):
                # Two at once need more memory, and longer: next time each is launched alone.
                base.may_be_resident = False
                return
        elif self._lab.checks.at_once() < sum(schedule.processes(each.workload) for each in tasks):
            outcomes = tuple(self._lab.outcome(task) for task in tasks)
        else:  # they import at once
            with self._lab.ready(tasks) as launches:
                outcomes = tuple(launch() for launch in launches)
        if not may_fork:
            late = {each.late_libraries for each in outcomes if isinstance(each, WorkerResult)}
            base.late_libraries = late.pop() if len(late) == 1 else ()
        forked = {isinstance(each, WorkerResult) and each.forked for each in outcomes}
        base.may_fork &= not may_fork or forked == {True}
        if may_fork and (len(forked) > 1 or any(isinstance(e, TaskFailure) for e in outcomes)):
            return  # what fails, or is not alike, is launched again
        by_side = dict(zip((first, second), outcomes, strict=True))
        self._keep(base, by_side, resident=is_resident, forked=may_fork and base.may_fork)
        base.first = second

    def _fork(self, base: _Base, tasks: list[Task]) -> list[Task]:
        """Return tasks with the libraries that they have in common with another suspect's, if any.

        They may then be forked from the same processes; see docs/decisions/030. None does while a
        pair may decide something of how a process starts: it is timed as long as one that is.
        """
        assert self._run is not None
        if not base.may_fork or self._lab.machine.device != "cpu":
            return tasks
        for late in dict.fromkeys((base.late_libraries, ())):
            named = [_name_libraries(task, late) for task in tasks]
            if not all(task.libraries for task in named):
                return tasks
            if self._has_others(base, {task.libraries for task in named}, late):
                if self._against.judge.is_start_open(self._run, base.workload.id):
                    return [msgspec.structs.replace(task, forks_next=True) for task in tasks]
                return named
        return tasks

    def _has_others(
        self, base: _Base, libraries: set[tuple[str, ...]], late: tuple[str, ...]
    ) -> bool:
        """Whether another suspect's pair of the same number is forked from these libraries."""
        number, left = len(base.pairs), {*self._left()}
        return any(
            _name_libraries(self._task(other, "head", index=number), late).libraries in libraries
            for name, other in self._bases.items()
            if other is not base
            if (other.may_fork and name in left and len(other.pairs) <= number)
            or any(pair.forked for pair in other.pairs[number : number + 1])
            if late in {(), *(each.late_libraries for each in self._runner.results(name)[:1])}
        )

    def _keep(
        self, base: _Base, by_side: dict[Side, Outcome], *, resident: bool, forked: bool
    ) -> None:
        head, other = by_side["head"], self._checked(base.workload.id, by_side["base"])
        if isinstance(head, TaskFailure):
            # The head ran before and crashes now: that is never unchanged.
            self._runner.fail(base.workload.id, head)
            return
        if isinstance(other, TaskFailure):
            base.failure = other
            return
        base.pairs.append(
            Pair(
                first=base.first,
                resident=resident,
                forked=forked,
                base=other.process,
                head=head.process,
            )
        )

    def _checked(self, workload: str, base: Outcome) -> Outcome:
        """Refuse a base whose step does another amount of work: its time says something else."""
        if isinstance(base, TaskFailure):
            return base
        head = self._runner.results(workload)[0]
        if (base.items_per_step, base.item_unit) == (head.items_per_step, head.item_unit):
            return base
        return TaskFailure(
            phase=Phase.BUILD,
            reason=f"a step of the base does {base.items_per_step:g} {base.item_unit}, one of the "
            f"head {head.items_per_step:g} {head.item_unit}: their times cannot be compared",
        )

    def _task(self, base: _Base, side: Side, *, index: int) -> Task:
        """Spell out one launch; neither side may import the other's code."""
        if side == "head":
            head = next(own for own in self._runner.plan.workloads if own.id == base.workload.id)
            return self._lab.task(head, index)
        return self._against.checkout.spell_task(self._lab.task(base.workload, index))

    def _find_turn(self, base: _Base, *, is_resident: bool) -> CommandTurn | None:
        """Return how long a turn of a command is; `None` where its copies take none."""
        results = self._runner.results(base.workload.id)
        turn = command_pairs.find_turn(base.workload, results)
        if base.against_turn or turn is None:
            return None
        if is_resident:
            base.against_turn = command_pairs.find_against(results)
        elif "server" not in base.workload.parameters:
            base.against_turn = "there is no room in memory for both sides at once"
        return None if base.against_turn else turn

    def _list_against_turn(self) -> Iterator[str]:
        for name, base in self._bases.items():
            if base.against_turn:
                yield (
                    f"{name}: each launch ran to its end before the next one began, because "
                    f"{base.against_turn}"
                )

    def _may_be_resident(self, base: _Base) -> bool:
        """Whether both may be there at once: on a CPU where they fit, see decision 009."""
        has_server = "server" in base.workload.parameters  # two of them may not fit on a GPU
        if self._lab.machine.device != "cpu" or has_server or not base.may_be_resident:
            return False
        head = self._runner.results(base.workload.id)[0]
        needed = [side.process.memory for side in (base.warmed_up or head, head)]
        has_room = self._lab.checks.has_room
        return has_room(base.workload, needed) or (
            self._lab.launcher.free_memory() and has_room(base.workload, needed)
        )


def _incomparable(checkout: Checkout, plan: Plan) -> dict[str, str]:
    """Say, by workload, why the base is not launched beside the head."""
    if checkout.trouble:
        return {workload.id: checkout.trouble for workload in plan.workloads}
    return suite_rules.other_work(checkout.plan, plan) if checkout.plan else {}


def _list_expected(base: Plan | None, head: Plan) -> tuple[str, ...]:
    """Name the selected workloads that the base has, of its tests those that the head launches.

    A test that the head lacks is a change of the gate.
    """
    launched = {workload.id for workload in head.workloads}
    return tuple(
        workload.id
        for workload in (base.workloads if base else ())
        if is_selected(workload.id, head.selection)
        and (workload.id in launched or not workload.collects)
    )


def _spread_of_launches(pairs: Sequence[Pair]) -> float:
    """Return the standard deviation of launches that does no harm, as a share; 0 without pairs.

    That is what they differ by, or a small part of the change that they show: a loss of 50 % is
    proven by short launches.
    """
    if not pairs:
        return 0.0
    differences = list(map(launch_numbers.step_difference, pairs))
    middle = statistics.median(differences)
    of_pairs = _DEVIATIONS * statistics.median(abs(each - middle) for each in differences)
    return min(max(of_pairs / math.sqrt(2), _SHARE_OF_CHANGE * abs(middle)), _MOST_SPREAD)


def _time_by_spread(task: Task, spread: float) -> Task:
    """Return a task that times no longer than pays where launches differ by this spread."""
    protocol = task.workload.protocol
    largest = max(protocol.launch_spread, spread)
    protocol = msgspec.structs.replace(protocol, launch_spread=largest)
    workload = msgspec.structs.replace(task.workload, protocol=protocol)
    return msgspec.structs.replace(task, workload=workload)


def _name_libraries(task: Task, late: Sequence[str]) -> Task:
    """Return a task with what its file imports first, as far as that may come before it.

    Then follow the `late` ones, of those that come first.
    """
    if task.workload.launch != "process" or task.workload.world_size > 1:
        return task
    file, root = Path(task.workload.file), Path(task.root)
    own = [root, file.parent, *(root / folder for folder in task.python_path)]
    libraries = user_code.name_libraries(file, own)
    libraries += tuple(name for name in late if name.partition(".")[0] in libraries)
    return msgspec.structs.replace(task, libraries=libraries)


def _is_changed(base: Path, head: Path) -> bool:
    """Whether a workload file, or one of the helpers (`_*.py`) beside it, is another on a side."""
    names = {path.name for side in (base, head) for path in side.parent.glob("_*.py")}
    same, _, _ = filecmp.cmpfiles(
        base.parent, head.parent, [base.name, *sorted(names)], shallow=False
    )
    return len(same) < 1 + len(names)

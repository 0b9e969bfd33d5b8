"""Find the commit that made a workload worse: rounds of commits, each by pairs with the good one.

Every commit is measured in a worktree of its own, as `check --against` measures a head; the
known-good commit is checked out once. `judging/bisecting.py` says which commits are next.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ci_perf import worktree
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import Notify, commits, explain
from ci_perf.gate.bisect_sessions import BisectSessions, Measurement, PairsJudge
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging import bisecting
from ci_perf.judging.bisecting import Search
from ci_perf.model.bisection import (
    BisectedCommit,
    BisectEnd,
    Bisection,
    BisectOutcome,
    CommitAnswer,
    ParentPairs,
)
from ci_perf.model.comparison import Change
from ci_perf.model.environment import Machine
from ci_perf.model.explained import ExplainedWorkloads
from ci_perf.model.metrics import JUDGED
from ci_perf.model.run import Tool
from ci_perf.model.suite import Limits
from ci_perf.report import units
from ci_perf.session import Listener
from ci_perf.system import git, git_log, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

_DECIDED = frozenset({CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD})
_METRICS = tuple(metric.name for metric in JUDGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """What is looked for: ``good`` and ``bad`` are commits, ``measuring`` names one workload.

    ``measuring.budget_s`` is for all sessions together, ``measuring.explain_budget_s`` for
    profiling the culprit afterwards. A round measures ``at_once`` commits. ``metric`` is what has
    to be worse; empty is any that gates.
    """

    measuring: MeasureOptions
    good: str
    bad: str
    at_once: int = 7
    metric: str = ""


def bisect(
    options: BisectOptions,
    *,
    notify: Notify,
    listener: Callable[[], Listener],
    sessions: type[BisectSessions] = BisectSessions,
) -> Bisection:
    """Find the commit after `good`, up to `bad`, that made the workload worse.

    Each session has a `listener` of its own; `sessions` is what launches them. An interrupt ends
    the search once the known-bad commit was measured: what is known then is returned, and says so.
    Raises UsageError, InvalidFileError, CiPerfError where either end cannot be measured, and
    KeyboardInterrupt before anything is known.
    """
    _check(options)
    root = options.measuring.root
    line = commits.between(root, options.good, options.bad)
    programs = CommitPrograms(line, options.measuring, notify)
    workload, has_setup = _workload(programs, options)
    with (
        signals.noted() as ending,
        worktree.commit_of(root, line.id(0), has_setup=has_setup) as base,
    ):
        launching = sessions(options.measuring, base, ending, notify, listener, workload=workload)
        return _Bisecting(options, line, programs, launching, workload, notify, ending).go()


def _check(options: BisectOptions) -> None:
    if options.at_once < 1:
        raise UsageError(f"--at-once: expected 1 or more, found {options.at_once}")
    if options.metric and options.metric not in _METRICS:
        raise UsageError(
            f"--metric: expected one of {', '.join(_METRICS)}, found {options.metric!r}"
        )


def _workload(programs: CommitPrograms, options: BisectOptions) -> tuple[str, bool]:
    """Return the workload as the known-bad commit has it, and whether its suite has a setup."""
    plan = programs.plan(len(programs.line.commits) - 1)
    wanted = options.measuring.select
    names = [each.id for each in plan.workloads if _is_named(each.id, wanted)]
    if len(names) == 1:
        return names[0], bool(plan.setup.command)
    known = ", ".join(names or [each.id for each in plan.workloads])
    what = "one workload" if names else f"a workload of {plan.suite} at {options.bad}"
    raise UsageError(f"{' '.join(wanted)}: expected {what}; name one of {known}")


def _is_named(name: str, wanted: tuple[str, ...]) -> bool:
    return any(each in {name, name.partition(".")[0]} for each in wanted)


class _BudgetSpentError(Exception):
    """The time for sessions is over."""


@dataclass(slots=True)
class _Bisecting:
    """A search that goes on, and what is known of each commit."""

    options: BisectOptions
    line: CommitLine
    programs: CommitPrograms
    sessions: BisectSessions
    workload: str
    notify: Notify
    ending: Interrupts
    known: dict[int, BisectedCommit] = field(default_factory=dict)
    rounds: int = 0
    notes: list[str] = field(default_factory=list)
    search: Search = field(init=False)
    effect: Change | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.search = Search(len(self.line.commits) - 1)
        if git.source(self.options.measuring.root).dirty:
            self.notes.append("uncommitted changes are not measured: commits are")

    def go(self) -> Bisection:
        """Measure the known-bad commit, then rounds, then the culprit against its parent."""
        self.known[0] = self._described(0, CommitAnswer.LIKE_GOOD)
        is_worse = self._confirm()
        ended: BisectEnd = "decided"
        parent: ParentPairs | None = None
        explained: ExplainedWorkloads | None = None
        try:
            if is_worse:
                self._search()
            if is_worse and self.search.range.is_one:
                parent = self._against_parent()
                explained = self._explained() if _is_worse(parent) else None
        except _BudgetSpentError:
            ended = "budget"
        except KeyboardInterrupt:
            ended = "interrupted"
        return self._answer(ended, parent, explained, is_worse=is_worse)

    # --- the known-bad commit

    def _confirm(self) -> bool:
        """Whether the known-bad commit is worse. Raises CiPerfError where nobody can say."""
        last, metric = self.search.last, self.options.metric
        self._say(last, "the known-bad commit against the known-good one")
        judge = PairsJudge(self._usual_limits, self.programs.plan(last).tiers)
        measured = self.sessions.measure(self.line.id(last), judge)
        if measured.is_same:
            self.known[last] = self._described(
                last, CommitAnswer.LIKE_GOOD, same_as=self.line.id(0)
            )
            return False
        if measured.failure:
            raise CiPerfError(
                f"{self.options.bad} ({self.line.shown(last)}): expected pairs of "
                f"{self.workload} with {self.options.good}, found that {measured.failure}; "
                "name commits that can be measured",
                output=measured.output,
            )
        self.effect = bisecting.worse(measured.rows, metric)
        if self.effect is None:
            row = bisecting.row_of(measured.rows, metric or "step_time_s")
            if row is None and metric:
                raise UsageError(f"--metric {metric}: {self.workload} has no such metric here")
            answer = bisecting.answer(row)
            self.known[last] = self._described(last, answer, change=row)
            return False
        self.known[last] = self._described(last, CommitAnswer.LIKE_BAD, change=self.effect)
        self.notify(f"{self.line.shown(last)}: {_said(self.effect)}")
        self._spread(0)
        self._spread(last)
        return True

    def _limits(self, machine: Machine) -> Limits:
        return self.programs.plan(self.search.last, self.programs.calibration(machine)).limits

    def _usual_limits(self, machine: Machine) -> Limits:
        metric = self.effect.metric if self.effect else self.options.metric
        limits = self._limits(machine)
        return bisecting.only(limits, self.workload, metric) if metric else limits

    def _dividing_limits(self, machine: Machine) -> Limits:
        assert self.effect is not None
        return bisecting.dividing(self._limits(machine), self.effect)

    # --- rounds

    def _search(self) -> None:
        """Go on until one commit is left, or no answer would help."""
        while positions := bisecting.next_positions(self.search, self.options.at_once):
            self.rounds += 1
            # On one machine the commits of a round follow each other, and each answer tells which
            # of the others are still of use.
            while (at := bisecting.most_useful(self.search, positions)) is not None:
                self._measure(at)

    def _measure(self, at: int) -> None:
        """Measure one commit. Raises _BudgetSpentError and KeyboardInterrupt."""
        assert self.effect is not None
        self._check_time()
        if self._is_recorded(at):
            return
        left = self.search.range.high - self.search.range.low
        self._say(at, f"one of {units.numbered(left, 'commit')} made it worse")
        judge = PairsJudge(self._dividing_limits, self.programs.plan(self.search.last).tiers)
        measured = self.sessions.measure(self.line.id(at), judge)
        change = bisecting.row_of(measured.rows, self.effect.metric)
        answer = _answer(measured, change)
        if answer is CommitAnswer.UNDECIDED and measured.is_out_of_time:
            raise _BudgetSpentError
        self.known[at] = self._described(
            at,
            answer,
            change=change,
            same_as=self.line.id(0) if measured.is_same else "",
            note=measured.failure or measured.distrust,
        )
        self.search = self.search.with_answer(at, answer)
        said = _said(change) if change else self.known[at].note or "the same program"
        self.notify(f"{self.line.shown(at)}: {answer.value.replace('_', ' ')}: {said}")
        if answer in _DECIDED:
            self._spread(at)

    def _is_recorded(self, at: int) -> bool:
        """Whether a record shows that a commit runs the program of one whose answer is known."""
        machine = self.sessions.machine
        if not self.options.measuring.record or machine is None:
            return False
        for other, known in self.known.items():
            is_measured = known.answer in _DECIDED and not known.same_as
            if is_measured and self.programs.is_same(other, at, self.workload, machine):
                self.known[at] = self._described(at, known.answer, same_as=known.commit.id)
                self.search = self.search.with_answer(at, known.answer)
                self._spread(at)
                return True
        return False

    def _spread(self, at: int) -> None:
        """Give the answer of a commit to those around it that run the same program."""
        machine = self.sessions.machine
        if not self.options.measuring.record or machine is None:
            return
        answer = self.known[at].answer
        measured = self.known[at].same_as or self.line.id(at)
        still = self.search.open
        for other in self.programs.same(at, still, self.workload, machine):
            self.known[other] = self._described(other, answer, same_as=measured)
            self.search = self.search.with_answer(other, answer)

    def _check_time(self) -> None:
        self.ending.check()
        if self.sessions.left_s <= 0:
            raise _BudgetSpentError

    # --- the culprit

    def _against_parent(self) -> ParentPairs:
        """Return pairs of the culprit and its parent: known ones, where the programs are known."""
        assert self.effect is not None
        low, high = self.search.range.low, self.search.range.high
        change = self.known[high].change or self._change_of(self.known[high].same_as)
        if low == 0 or self.known[low].same_as == self.line.id(0):
            is_own = low == 0 and self.known[high].change is not None
            return ParentPairs(change=change, launched=is_own)
        self._check_time()
        self._say(high, "the commit that made it worse, against its parent")
        judge = PairsJudge(self._usual_limits, self.programs.plan(high).tiers)
        with worktree.commit_of(self.options.measuring.root, self.line.id(low)) as parent:
            measured = self.sessions.measure(self.line.id(high), judge, against=parent)
        row = bisecting.row_of(measured.rows, self.effect.metric)
        return ParentPairs(change=row, note=measured.failure or measured.distrust)

    def _change_of(self, commit: str) -> Change | None:
        """Return what pairs of a commit have said, by its name."""
        return next((each.change for each in self.known.values() if each.commit.id == commit), None)

    def _explained(self) -> ExplainedWorkloads | None:
        """Profile the culprit and its parent. A failure of that is noted, and loses no answer."""
        options = self.options.measuring
        if not options.explain:
            return None
        self.ending.check()
        low, high = (self.line.id(at) for at in dataclasses.astuple(self.search.range))
        self.notify(f"{self.line.shown(self.search.range.high)}: profiled beside its parent")
        try:
            with worktree.commit_of(options.root, high) as culprit:
                own = commits.options_of(options, culprit)
                asked = dataclasses.replace(own, against=low, select=(self.workload,))
                return explain.now(asked, notify=_silent, listener=self.sessions.listener())
        except CiPerfError as error:
            self.notes.append(f"the cause is not known: {error}")
            return None

    # --- the answer

    def _answer(
        self,
        ended: BisectEnd,
        parent: ParentPairs | None,
        explained: ExplainedWorkloads | None,
        *,
        is_worse: bool,
    ) -> Bisection:
        left = self.search.range
        outcome: BisectOutcome = "not_worse"
        if is_worse:
            outcome = "found" if left.is_one and _is_worse(parent) else "range"
        options = self.options
        return Bisection(
            tool=Tool(version=__version__),
            suite=options.measuring.suite,
            workload=self.workload,
            metric=self.effect.metric if self.effect else "",
            good=options.good,
            bad=options.bad,
            outcome=outcome,
            ended=ended,
            started_at=git_log.utc(self.started),
            duration_s=round((datetime.now(UTC) - self.started).total_seconds(), 3),
            budget_s=options.measuring.budget_s,
            sessions=self.sessions.count,
            rounds=self.rounds,
            machine=self.sessions.machine.environment.hard if self.sessions.machine else None,
            low=left.low,
            high=left.high,
            commits=tuple(
                self.known.get(at) or self._described(at, CommitAnswer.OPEN)
                for at in range(len(self.line.commits))
            ),
            parent=parent,
            explained=explained,
            notes=tuple(self.notes),
        )

    def _described(
        self,
        at: int,
        answer: CommitAnswer,
        *,
        change: Change | None = None,
        same_as: str = "",
        note: str = "",
    ) -> BisectedCommit:
        of_line = self.line.commits[at]
        return BisectedCommit(
            commit=of_line.commit,
            parents=len(of_line.parents),
            answer=answer,
            same_as=same_as,
            change=change,
            note=note,
        )

    def _say(self, at: int, why: str) -> None:
        left = units.duration(max(self.sessions.left_s, 0.0))
        self.notify(f"session {self.sessions.count + 1}, {left} left: {self.line.shown(at)}: {why}")


def _answer(measured: Measurement, change: Change | None) -> CommitAnswer:
    if measured.is_same:
        return CommitAnswer.LIKE_GOOD
    if measured.failure:
        return CommitAnswer.FAILED
    return CommitAnswer.UNDECIDED if measured.distrust else bisecting.answer(change)


def _is_worse(parent: ParentPairs | None) -> bool:
    return parent is not None and bisecting.answer(parent.change) is CommitAnswer.LIKE_BAD


def _said(change: Change) -> str:
    interval = change.interval
    if change.ratio is None or interval is None:
        return f"{change.metric} {change.base:g} → {change.head:g}"
    return f"{change.metric} {units.change(change.ratio, interval.low, interval.high)}"


def _silent(_line: str) -> None:
    """Tell nobody: the setups of the culprit and its parent were told before."""

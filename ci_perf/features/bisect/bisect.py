"""Find the commit that made a workload worse: sessions of commits, each by pairs with the good one.

Every commit is measured in a worktree of its own, as `check --against` measures a head, one after
another. `bisecting.py` says which commit is next.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ci_perf import worktree
from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.bisect import bisecting
from ci_perf.features.bisect.answers import Answers
from ci_perf.features.bisect.bisection import (
    BisectEnd,
    Bisection,
    BisectOutcome,
    CommitAnswer,
    ParentPairs,
)
from ci_perf.features.bisect.sessions import BisectSessions, Measurement
from ci_perf.gate import arguments, commits
from ci_perf.gate.commit_pairs import PairsJudge
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Change
from ci_perf.model.environment import Machine
from ci_perf.model.metrics import JUDGED, find_own
from ci_perf.model.run import Tool
from ci_perf.model.suite import Limits
from ci_perf.report import units
from ci_perf.session import Listener
from ci_perf.system import git, git_log, signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

_METRICS = tuple(metric.name for metric in JUDGED)


def bisect(
    good: str,
    bad: str,
    workload: str,
    *,
    metric: str = "",
    root: Location | None = None,
    notify: Notify | None = None,
    listener: Callable[[], Listener] | None = None,
    **options: Any,  # noqa: ANN401  as `ci_perf.measure`
) -> Bisection:
    """Find the commit after `good`, up to `bad`, that made a workload worse; see `ci-perf bisect`.

    The result's `outcome` is "found", and the commit `commits[high]`, or it says what is left. Each
    session has a `listener` of its own. `budget_s` is for all sessions together. The other
    `options` are those of `ci_perf.measure`.
    """
    keywords = {"budget_s": 7200.0, **options}
    return search(
        arguments.measure_options(root, keywords, select=workload),
        good,
        bad,
        metric=metric,
        notify=notify or say_nothing,
        listener=listener or Listener,
    )


def search(
    measuring: MeasureOptions,
    good: str,
    bad: str,
    *,
    metric: str = "",
    notify: Notify,
    listener: Callable[[], Listener],
    sessions: type[BisectSessions] = BisectSessions,
) -> Bisection:
    """Find the commit; `sessions` is what launches them here, `metric` what has to be worse.

    An interrupt ends the search once the known-bad commit was measured: what is known then is
    returned, and says so. Raises UsageError, InvalidFileError, CiPerfError where either end cannot
    be measured, and KeyboardInterrupt before anything is known.
    """
    if metric and not (metric in _METRICS or find_own([metric])):
        raise UsageError(f"--metric: expected one of {', '.join(_METRICS)}, found {metric!r}")
    root = measuring.root
    line = commits.between(root, good, bad)
    programs = CommitPrograms(line, measuring, notify)
    workload, has_setup = find_workload(programs, measuring.select, bad)
    with signals.note_signals() as ending, contextlib.ExitStack() as stack:
        base = stack.enter_context(worktree.commit_of(root, line.id(0), has_setup=has_setup))
        launching = sessions(measuring, base, ending, notify, listener, workload=workload)
        answers = Answers(programs, workload)
        return Bisecting(measuring, good, bad, metric, answers, launching, notify, ending).go()


def find_workload(programs: CommitPrograms, wanted: tuple[str, ...], bad: str) -> tuple[str, bool]:
    """Return the workload as the known-bad commit has it, and whether its suite has a setup."""
    plan = programs.plan(len(programs.line.commits) - 1)
    names = [
        each.id
        for each in plan.workloads
        if any(name in {each.id, each.id.partition(".")[0]} for name in wanted)
    ]
    if len(names) == 1:
        return names[0], bool(plan.setup.command)
    known = ", ".join(names or [each.id for each in plan.workloads])
    what = "one workload" if names else f"a workload of {plan.suite} at {bad}"
    raise UsageError(f"{' '.join(wanted)}: expected {what}; name one of {known}")


class _BudgetSpentError(Exception):
    """The time for sessions is over."""


@dataclass(slots=True)
class Bisecting:
    """A search that goes on."""

    measuring: MeasureOptions
    good: str
    bad: str
    metric: str
    answers: Answers
    sessions: BisectSessions
    notify: Notify
    ending: Interrupts
    notes: list[str] = field(default_factory=list)
    effect: Change | None = None
    noun: str = "commit"
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if git.source(self.measuring.root).dirty:
            self.notes.append("uncommitted changes are not measured: commits are")

    @property
    def line(self) -> CommitLine:
        """The commits that are searched."""
        return self.answers.programs.line

    def go(self) -> Bisection:
        """Measure the known-bad commit, then those between, then the culprit and its parent."""
        self.answers.note(0, CommitAnswer.LIKE_GOOD)
        is_worse = self._confirm()
        ended: BisectEnd = "decided"
        parent: ParentPairs | None = None
        try:
            if is_worse:
                self._search()
            if is_worse and self.answers.search.range.is_one:
                parent = self._against_parent()
        except _BudgetSpentError:
            ended = "budget"
        except KeyboardInterrupt:
            ended = "interrupted"
        return self._answer(ended, parent, is_worse=is_worse)

    # --- the known-bad commit

    def _confirm(self) -> bool:
        """Whether the known-bad commit is worse. Raises CiPerfError where nobody can say."""
        last, metric = self.answers.search.last, self.metric
        self._say(last, f"the known-bad {self.noun} against the known-good one")
        measured = self.sessions.measure(self.line.id(last), self._judge(last))
        if measured.is_same:
            self.answers.note(last, CommitAnswer.LIKE_GOOD, same_as=self.line.id(0))
            return False
        if measured.failure:
            raise CiPerfError(
                f"{self.bad} ({self.line.shown(last)}): expected pairs of "
                f"{self.answers.workload} with {self.good}, found that "
                f"{measured.failure}; name {self.noun}s that can be measured",
                output=measured.output,
            )
        self.effect = bisecting.worse(measured.rows, metric)
        if self.effect is None:
            row = bisecting.row_of(measured.rows, metric or "step_time_s")
            if row is None and metric:
                workload = self.answers.workload
                raise UsageError(f"--metric {metric}: {workload} has no such metric here")
            self.answers.note(last, bisecting.answer(row), change=row)
            return False
        self.answers.note(last, CommitAnswer.LIKE_BAD, change=self.effect)
        self.notify(f"{self.line.shown(last)}: {_said(self.effect)}")
        self.answers.spread(0, self.sessions.machine)
        self.answers.spread(last, self.sessions.machine)
        return True

    def _judge(self, at: int, *, divides: bool = False) -> PairsJudge:
        """Return what judges pairs of a commit; where it `divides`, by half of the effect."""
        programs = self.answers.programs

        def find_limits(machine: Machine) -> Limits:
            last = self.answers.search.last
            limits = programs.plan(last, programs.defaults(machine)).limits
            if divides and self.effect:
                return bisecting.divide_limits(limits, self.effect)
            metric = self.effect.metric if self.effect else self.metric
            return bisecting.only(limits, self.answers.workload, metric) if metric else limits

        return PairsJudge(find_limits, programs.plan(at).tiers)

    # --- the commits between

    def _search(self) -> None:
        """Go on until one commit is left, or no answer would help."""
        while (at := bisecting.next_position(self.answers.search)) is not None:
            self._measure(at)

    def _measure(self, at: int) -> None:
        """Measure a commit. Raises _BudgetSpentError and KeyboardInterrupt."""
        self._check_time()
        self.answers.reuse_record(at, self.sessions.machine)
        if at not in self.answers.search.open:
            return
        left = self.answers.search.range
        count = units.render_count(left.high - left.low, self.noun)
        self._say(at, f"one of {count} made it worse")
        judge = self._judge(self.answers.search.last, divides=True)
        if not self._is_known(at, self.sessions.measure(self.line.id(at), judge)):
            raise _BudgetSpentError

    def _is_known(self, at: int, measured: Measurement) -> bool:
        """Keep what a session says of a commit; return False where it had no time to say it."""
        assert self.effect is not None
        change = bisecting.row_of(measured.rows, self.effect.metric)
        answer = _answer(measured, change)
        if answer is CommitAnswer.UNDECIDED and measured.is_out_of_time:
            return False
        self.answers.note(
            at,
            answer,
            change=change,
            same_as=self.line.id(0) if measured.is_same else "",
            note=measured.failure or measured.distrust,
        )
        said = _said(change) if change else self.answers.known[at].note or "the same program"
        self.notify(f"{self.line.shown(at)}: {answer.value.replace('_', ' ')}: {said}")
        self.answers.spread(at, self.sessions.machine)
        return True

    def _check_time(self) -> None:
        self.ending.check()
        if self.sessions.left_s <= 0:
            raise _BudgetSpentError

    # --- the culprit

    def _against_parent(self) -> ParentPairs:
        """Return pairs of the culprit and its parent: known ones, where the programs are known."""
        assert self.effect is not None
        low, high = self.answers.search.range.low, self.answers.search.range.high
        known = self.answers.known
        if low == 0 or known[low].same_as == self.line.id(0):
            is_own = low == 0 and known[high].change is not None
            return ParentPairs(change=self.answers.change_at(high), launched=is_own)
        self._check_time()
        self._say(high, f"the {self.noun} that made it worse, against the one before")
        judge = self._judge(high)
        measured = self.sessions.measure(self.line.id(high), judge, against=self.line.id(low))
        row = bisecting.row_of(measured.rows, self.effect.metric)
        return ParentPairs(change=row, note=measured.failure or measured.distrust)

    # --- the answer

    def _answer(
        self,
        ended: BisectEnd,
        parent: ParentPairs | None,
        *,
        is_worse: bool,
    ) -> Bisection:
        left = self.answers.search.range
        outcome: BisectOutcome = "not_worse"
        if is_worse:
            outcome = "found" if left.is_one and _is_worse(parent) else "range"
        return Bisection(
            tool=Tool(version=__version__),
            suite=self.measuring.suite,
            workload=self.answers.workload,
            metric=self.effect.metric if self.effect else "",
            good=self.good,
            bad=self.bad,
            outcome=outcome,
            ended=ended,
            started_at=git_log.utc(self.started),
            duration_s=round((datetime.now(UTC) - self.started).total_seconds(), 3),
            budget_s=self.measuring.budget_s,
            sessions=self.sessions.count,
            machine=self.sessions.machine.environment.hard if self.sessions.machine else None,
            low=left.low,
            high=left.high,
            commits=tuple(self.answers.known),
            parent=parent,
            notes=tuple(self.notes),
        )

    def _say(self, at: int, why: str) -> None:
        """Tell of a session that begins."""
        left = units.duration(max(self.sessions.left_s, 0.0))
        number = self.sessions.count + 1
        self.notify(f"session {number}, {left} left: {self.line.shown(at)}: {why}")


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

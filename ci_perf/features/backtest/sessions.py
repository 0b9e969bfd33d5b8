"""Measure a merge beside its parent, by the suite of today, and say what the pairs have shown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf import worktree
from ci_perf.errors import OF_MACHINE, CiPerfError
from ci_perf.features.backtest import merges
from ci_perf.features.backtest.backtested import BacktestedMerge, MergeOutcome
from ci_perf.gate.commit_pairs import CommitSessions, ExplainedPairsJudge, PairsJudge
from ci_perf.gate.commit_suite import folder_below
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.judging.earlier_checks import Before
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.environment import Machine
from ci_perf.model.metrics import Kind, find_metric
from ci_perf.model.run import Checks, Run
from ci_perf.model.suite import Limit, Limits, Tiers, find_limit
from ci_perf.system.git_log import LineCommit
from ci_perf.worktree import merge_base

_MOVED = frozenset({Verdict.REGRESSED, Verdict.IMPROVED})
# Counted, so that a change of one is no chance, whether or not it gates.
_EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAnswer:
    """What a session says of a merge; its outcome is "open" where the budget ended before."""

    outcome: MergeOutcome
    changes: tuple[Change, ...] = ()
    note: str = ""


class MergeSessions(CommitSessions):
    """Launches merges here, each in a worktree beside that of its parent."""

    def measure(self, merge: BacktestedMerge, *, left_s: float, retest: int = 0) -> MergeAnswer:
        """Measure a commit beside its parent.

        Without a `retest`, by alpha of its own; else what moved at first alone, by the share of the
        `retest`-th, with its causes. Raises CiPerfError of the machine, and KeyboardInterrupt.
        """
        names = (merge.parent, merge.commit.id)
        if not retest and (why := merges.describe_likeness(self._options.root, *names)):
            return MergeAnswer(outcome=MergeOutcome.SAME_PROGRAM, note=why)
        root, moved = self._options.root, merge.first if retest else ()
        folder = folder_below(root, self._options.suite, self._options.workloads)
        try:
            parent, commit = (merges.with_suite(root, each, folder) for each in names)
            if not retest and (parent == commit or self._is_same(parent, commit, merge)):
                return MergeAnswer(outcome=MergeOutcome.SAME_PROGRAM)
            return self._launch(parent, commit, moved, left_s=left_s, retest=retest)
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            last = error.output.strip().rpartition("\n")[2]
            said = f"{error}: {last}" if last else str(error)
            return MergeAnswer(outcome=MergeOutcome.BROKEN, note=said)

    def _is_same(self, parent: str, commit: str, merge: BacktestedMerge) -> bool:
        """Whether records say that all workloads of two commits are the same program."""
        today, machine = self.today, self.machine
        if today is None or machine is None:
            return False
        two = tuple(
            LineCommit(commit=msgspec.structs.replace(merge.commit, id=name), parents=())
            for name in (parent, commit)
        )
        line = CommitLine(start=merge_base.exactly(self._options.root, parent), commits=two)
        programs = CommitPrograms(line, self._options, self._notify)
        return all(programs.is_same(0, 1, each.id, machine) for each in today.workloads)

    def _launch(
        self, parent: str, commit: str, moved: Sequence[Change], *, left_s: float, retest: int
    ) -> MergeAnswer:
        tiers = self.today.tiers if self.today else Tiers()
        judge = make_judge(self._find_limits, tiers, moved)
        with worktree.commit_of(self._options.root, parent, has_setup=True) as base:
            run = self.run(
                commit,
                base,
                judge,
                budget_s=left_s,
                select=tuple(dict.fromkeys(each.workload for each in moved)),
                before=Before(checks=Checks(before=retest - 1)) if retest else None,
                explain_s=self._options.explain_budget_s if retest else None,
            )
        return read_answer(run, judge.judge(run).rows)


def make_judge(
    find_limits: Callable[[Machine], Limits], tiers: Tiers, moved: Sequence[Change]
) -> PairsJudge:
    """Return what judges a merge; of one that is measured again, only what `moved` gates."""
    if not moved:
        return PairsJudge(find_limits, tiers)

    def gate_moved(machine: Machine) -> Limits:
        limits = find_limits(machine)
        workloads = {
            name: limits.gate_only(
                name,
                {
                    each.metric: find_limit(limits.of(name), each.metric) or Limit()
                    for each in moved
                    if each.workload == name
                },
            )
            for name in {each.workload for each in moved}
        }
        return msgspec.structs.replace(limits, workloads={**limits.workloads, **workloads})

    return ExplainedPairsJudge(gate_moved, tiers)


def read_answer(run: Run, rows: tuple[Row, ...]) -> MergeAnswer:
    """Return what a run says of its merge, by the rows of its judge."""
    failures = [f"{each.workload}: {each.reason}" for each in run.failed]
    failures += [
        f"{each.workload}: its parent fails: {each.trouble}" for each in run.paired if each.trouble
    ]
    if (reason := run.validity.against("")) is not None:
        return MergeAnswer(outcome=MergeOutcome.UNDECIDED, note=f"{reason.code}: {reason.detail}")
    gating = [row for row in rows if isinstance(row, Change) and row.gate]
    is_open = [row for row in gating if row.verdict not in {*_MOVED, Verdict.UNCHANGED}]
    is_late = run.interleaved is not None and run.interleaved.stopped == "budget"
    changes = tuple(find_moved(rows))
    outcomes = {
        MergeOutcome.SUSPECTED: bool(changes),
        MergeOutcome.SAME_PROGRAM: bool(run.same) and not (run.measured or run.failed),
        MergeOutcome.OPEN: is_late and bool(is_open),
        MergeOutcome.FAILED: bool(failures) and not gating,
        MergeOutcome.UNDECIDED: bool(is_open or failures) or not (gating or run.same),
        MergeOutcome.UNCHANGED: True,
    }
    return MergeAnswer(
        outcome=next(outcome for outcome, holds in outcomes.items() if holds),
        changes=changes,
        note="; ".join(
            [*failures, *(f"{row.workload}: no answer on {row.metric}" for row in is_open)]
        ),
    )


def find_moved(rows: tuple[Row, ...]) -> Iterator[Change]:
    """Yield the changes that pairs have proven, of what gates or is counted."""
    for row in rows:
        if isinstance(row, Change) and row.verdict in _MOVED and row.pairs:
            metric = find_metric(row.metric)
            if row.gate or (metric is not None and metric.kind in _EXACT):
                yield row

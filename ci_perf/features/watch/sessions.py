"""Launch two commits of the branch alternately, and say what their pairs show of each metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ci_perf import worktree
from ci_perf.errors import OF_MACHINE, CiPerfError
from ci_perf.gate.commit_pairs import CommitSessions, ExplainedPairsJudge, PairsJudge
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.run import Run
from ci_perf.model.suite import Tiers

Says = Literal["worse", "alike", "open"]
_ALIKE = frozenset({Verdict.UNCHANGED, Verdict.IMPROVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsAnswer:
    """What pairs of two commits show: ``changes`` by workload and metric.

    ``same`` are workloads whose program both commits run; ``failures`` say why others have no
    pairs. ``is_late``: the budget ended before the last answer.
    """

    changes: Mapping[tuple[str, str], Change] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    failures: Mapping[str, str] = field(default_factory=dict)
    is_late: bool = False

    def says(self, workload: str, metric: str) -> Says:
        """Whether the newer commit is worse by a metric, or not, or nobody can say."""
        change = self.changes.get((workload, metric))
        if workload in self.same or (change is not None and change.verdict in _ALIKE):
            return "alike"
        is_worse = change is not None and change.verdict is Verdict.REGRESSED
        return "worse" if is_worse else "open"

    @property
    def losses(self) -> tuple[Change, ...]:
        """What gates and is worse."""
        return tuple(
            each
            for each in self.changes.values()
            if each.gate and each.verdict is Verdict.REGRESSED
        )


class WatchSessions(CommitSessions):
    """Launches commits here, each in a worktree beside that of another one."""

    def measure(
        self,
        commit: str,
        base: str,
        workloads: Sequence[str],
        *,
        left_s: float,
        explain_s: float = 0.0,
    ) -> PairsAnswer:
        """Measure a commit beside an older one. Raises CiPerfError of the machine alone.

        And KeyboardInterrupt.
        """
        make_judge = ExplainedPairsJudge if explain_s else PairsJudge
        judge = make_judge(self._find_limits, Tiers())
        try:
            with worktree.commit_of(self._options.root, base, has_setup=True) as checkout:
                run = self.run(
                    commit,
                    checkout,
                    judge,
                    budget_s=left_s,
                    select=tuple(workloads),
                    explain_s=explain_s or None,
                )
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            return PairsAnswer(failures=dict.fromkeys(workloads, str(error)))
        return read_answer(run, judge)


def read_answer(run: Run, judge: PairsJudge) -> PairsAnswer:
    """Return what a run says, with causes where its launches were profiled."""
    distrusted = {
        each.workload: f"{reason.code}: {reason.detail}"
        for each in run.measured
        if (reason := run.validity.against(each.workload)) is not None
    }
    failed = {each.workload: each.reason for each in run.failed}
    of_base = {each.workload: each.trouble for each in run.paired if each.trouble}
    failures = {**distrusted, **of_base, **failed}
    return PairsAnswer(
        changes={
            (row.workload, row.metric): row
            for row in judge.judge(run).rows
            if isinstance(row, Change) and row.pairs and row.workload not in failures
        },
        same=frozenset(each.workload for each in run.same),
        failures=failures,
        is_late=run.interleaved is not None and run.interleaved.stopped == "budget",
    )

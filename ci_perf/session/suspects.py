"""Which workloads the base is launched for: those that the committed baselines do not clear."""

import os
from pathlib import Path
from typing import Protocol

from ci_perf import suite as suites
from ci_perf.baselines import layout, summaries
from ci_perf.judging import compare, summarise
from ci_perf.model.comparison import Change, Verdict
from ci_perf.model.environment import Machine
from ci_perf.model.run import Run
from ci_perf.model.suite import Limits, Plan, Tiers
from ci_perf.model.summary import Summary

# Whose rows are explained: also those of which pairs have said a little less than "proven".
_MOVED = frozenset({Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED})


class PairJudge(Protocol):
    """Says, of a run so far, what another pair of launches may decide."""

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """Return how many launches of the head each workload starts with."""

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """Return the undecided workloads, worst first, and count all suspects.

        With each workload stands how many pairs more are expected to decide it. The suspects share
        the chance of a false alarm.
        """

    def moved(self, run: Run) -> tuple[str, ...]:
        """Name the workloads whose row pairs have called slower or faster, the worst one first."""

    def accepted(self, run: Run, base: Path) -> dict[str, tuple[str, ...]]:
        """Name what the head has accepted since the base, whose checkout is `base`: metrics."""


class BaselineJudge:
    """Judges by baselines and suite.toml as they were when it was first asked."""

    def __init__(self, *, baselines: Path, workloads: Path, root: Path) -> None:
        """`root` is the repository; baselines outside of it are the same for head and base."""
        self._baselines = baselines
        self._workloads = workloads
        self._root = root
        self._known: tuple[Summary, Limits, Tiers] | None = None

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """See PairJudge."""
        base, limits, _ = self._read(machine, plan.suite)
        return compare.first_launches(base, plan.workloads, limits)

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge."""
        base, limits, tiers = self._read(run.environment.hard, run.suite)
        return compare.undecided(base, summarise.run(run, label=""), limits=limits, tiers=tiers)

    def moved(self, run: Run) -> tuple[str, ...]:
        """See PairJudge."""
        base, limits, tiers = self._read(run.environment.hard, run.suite)
        rows = compare.compare(base, summarise.run(run, label=""), limits=limits, tiers=tiers).rows
        proven = (row for row in rows if isinstance(row, Change) and row.pairs)
        return tuple(dict.fromkeys(row.workload for row in proven if row.verdict in _MOVED))

    def accepted(self, run: Run, base: Path) -> dict[str, tuple[str, ...]]:
        """See PairJudge."""
        folder = Path(os.path.realpath(self._baselines))
        root = Path(os.path.realpath(self._root))
        if not folder.is_relative_to(root):
            return {}
        before = base / folder.relative_to(root)
        return summaries.accepted_since(self._baselines, before, run.environment.hard, run.suite)

    def _read(self, machine: Machine, suite: str) -> tuple[Summary, Limits, Tiers]:
        """Read what decides, once."""
        if self._known is not None:
            return self._known
        calibration = layout.read_calibration(self._baselines, machine)
        plan = suites.plan(
            self._workloads,
            suite,
            root=self._root,
            calibration=calibration,
        )
        base = summaries.baselines(self._baselines, machine, suite)
        self._known = base, plan.limits, plan.tiers
        return self._known

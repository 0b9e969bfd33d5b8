"""Measure commits of a line beside others, one after another, and judge each by its pairs alone.

What `bisect`, `backtest` and `watch` share. A commit is launched in a worktree of its own.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec

from ci_perf import session, suite, worktree
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError
from ci_perf.gate import commits, lab, measure, run_summary, runners
from ci_perf.gate.compare import attach_causes
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import compare, summarise
from ci_perf.judging.earlier_checks import Before
from ci_perf.judging.policy import limits_on
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.run import UNKNOWN_COMMIT, Run, Source
from ci_perf.model.suite import Limits, Plan, Tiers, find_node, is_selected
from ci_perf.model.summary import Summary
from ci_perf.model.task import MachineDescription
from ci_perf.model.validity import Status, Validity
from ci_perf.session import Listener, PairJudge
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout


class PairsJudge(PairJudge):
    """Judges by pairs alone, as no baseline tells of old commits.

    A person is told no verdict, and what somebody has accepted is a loss all the same.
    """

    def __init__(self, limits: Callable[[Machine], Limits], tiers: Tiers) -> None:
        self.limits, self.tiers = limits, tiers
        self._known: Limits | None = None

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """Return one for each: pairs decide, and need its size of a step before."""
        del machine
        return {workload.id: 1 for workload in plan.workloads}

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge."""
        head = summarise.run(run, label="")
        return compare.find_undecided(
            _summarise_unmeasured(run), head, limits=self._of(run), tiers=self.tiers
        )

    def judge(self, run: Run) -> Comparison:
        """Judge what there is."""
        head, limits = summarise.run(run, label=""), self._of(run)
        base = _summarise_unmeasured(run)
        return compare.compare(base, head, limits=limits, tiers=self.tiers)

    def _of(self, run: Run) -> Limits:
        if self._known is None:
            self._known = self.limits(run.environment.hard)
        return self._known


class ExplainedPairsJudge(PairsJudge):
    """Lets features explain what pairs call moved."""

    def verdict(self, run: Run) -> Comparison:
        """See PairJudge."""
        return self.judge(run)

    def judge(self, run: Run) -> Comparison:
        """Judge what there is, with causes where launches were profiled."""
        return attach_causes(super().judge(run), summarise.run(run, label=""))


def _summarise_unmeasured(run: Run) -> Summary:
    """Return a side that nobody has measured."""
    return Summary(
        label="",
        source=Source(commit=UNKNOWN_COMMIT, branch=UNKNOWN_COMMIT, dirty=False),
        run="",
        suite=run.suite,
        selection=(),
        validity=Validity(status=Status.VALID),
        subjects=(),
        failed=(),
    )


class CommitSessions:
    """Launches commits beside a base. ``machine`` is what the last session has found."""

    def __init__(
        self,
        options: MeasureOptions,
        ending: Interrupts,
        notify: Notify,
        listener: Callable[[], Listener],
        *,
        today: Plan | None = None,
        machine: MachineDescription | None = None,
    ) -> None:
        """Take the plan of `today`, of which the tests were collected: all commits have these."""
        self.machine = machine
        self._options = options
        self._ending = ending
        self._notify = notify
        self._listener = listener
        self.today = today
        self._ready: set[Path] = set()

    def run(
        self,
        commit: str,
        base: Checkout,
        judge: PairsJudge,
        *,
        budget_s: float,
        select: tuple[str, ...] = (),
        before: Before | None = None,
        explain_s: float | None = None,
    ) -> Run:
        """Launch a commit beside a base. Raises CiPerfError and KeyboardInterrupt."""
        chosen = dataclasses.replace(self._options, select=select or self._options.select)
        with worktree.commit_of(chosen.root, commit, has_setup=True) as head:
            options = commits.options_of(chosen, head)
            plan = measure.plan(options, has_tests=self.today is not None)
            of_base = lab.with_plan(base, plan, options)
            if self.today is not None and of_base.plan is not None:
                of_base = dataclasses.replace(of_base, plan=self._add_tests(of_base.plan, options))
            plan = self._add_tests(plan, options)
            # A container begins without what a setup has installed.
            ready = self._ready if options.runner.kind == runners.LOCAL else ()
            with lab.open_with_base(
                of_base, plan, options, self._ending, self._notify, self._listener(), ready=ready
            ) as here:
                checkout = here.base or of_base
                if checkout.trouble:
                    raise CiPerfError(checkout.trouble)
                self._ready.add(base.root)
                self.machine = here.machine
                run = session.measure(
                    here,
                    plan,
                    against=session.Against(
                        checkout=checkout,
                        budget_s=max(budget_s, 0.0),
                        judge=judge,
                        routes=True,
                        before=before or Before(),
                        explain_budget_s=explain_s,
                    ),
                    records=measure.find_records(
                        plan, options, checkout, self._notify, believes_cache=True
                    ),
                    baselines=options.baselines,
                )
        if run_summary.is_interrupted(run):
            raise KeyboardInterrupt
        return run

    def _find_limits(self, machine: Machine) -> Limits:
        """Return the limits of today."""
        options = self._options
        defaults = limits_on(machine, layout.read_calibration(options.baselines, machine))
        return suite.plan(
            options.workloads, options.suite, root=options.root, defaults=defaults
        ).limits

    def _add_tests(self, plan: Plan, options: MeasureOptions) -> Plan:
        """Return a plan with the tests that were collected, in the place of its own."""
        if self.today is None:
            return plan
        tests = (
            each
            for each in self.today.workloads
            if find_node(each.launch, each.parameters) and is_selected(each.id, options.select)
        )
        return msgspec.structs.replace(plan, workloads=(*plan.workloads, *tests), tests=())

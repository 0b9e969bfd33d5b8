"""Measure commits beside the same base, one after another, and judge each by its pairs alone."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci_perf import session, worktree
from ci_perf.api_types import Notify
from ci_perf.errors import OF_MACHINE, CiPerfError
from ci_perf.gate import commits, lab, measure, run_summary, runners
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import compare, summarise
from ci_perf.model.comparison import Row
from ci_perf.model.environment import Machine
from ci_perf.model.run import UNKNOWN_COMMIT, Run, Source
from ci_perf.model.suite import Limits, Plan, Tiers
from ci_perf.model.summary import Summary
from ci_perf.model.task import MachineDescription
from ci_perf.model.validity import Status, Validity
from ci_perf.session import Listener, PairJudge
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a session says of a commit. ``rows`` are empty where there were no pairs.

    ``failure`` is why it could not be measured, ``output`` its last lines. ``distrust`` says why
    its numbers are worth nothing. ``is_same``: both sides run the same program.
    ``is_out_of_time``: the budget ended before the judge had an answer.
    """

    rows: tuple[Row, ...] = ()
    failure: str = ""
    output: str = ""
    distrust: str = ""
    is_same: bool = False
    is_out_of_time: bool = False


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

    def rows(self, run: Run) -> tuple[Row, ...]:
        """Judge what there is."""
        head = summarise.run(run, label="")
        limits = self._of(run)
        return compare.compare(
            _summarise_unmeasured(run), head, limits=limits, tiers=self.tiers
        ).rows

    def _of(self, run: Run) -> Limits:
        if self._known is None:
            self._known = self.limits(run.environment.hard)
        return self._known


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


class BisectSessions:
    """Launches sessions here, each in a worktree of its commit, until the budget is spent."""

    def __init__(
        self,
        options: MeasureOptions,
        base: Checkout,
        ending: Interrupts,
        notify: Notify,
        listener: Callable[[], Listener],
        *,
        workload: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the known-good commit as `base`: its setup is run once, unless in a container."""
        self.count = 0
        self.machine: MachineDescription | None = None
        self._options = dataclasses.replace(options, select=(workload,))
        self._base = base
        self._ending = ending
        self._notify = notify
        self._listener = listener
        self._clock = clock
        self._end = clock() + options.budget_s
        self._ready: set[Path] = set()

    @property
    def left_s(self) -> float:
        """What is left of the budget, in seconds."""
        return self._end - self._clock()

    def measure(self, commit: str, judge: PairsJudge, *, against: str = "") -> Measurement:
        """Measure a commit beside the known-good one, or beside `against`.

        What the commit itself is to blame for is an answer. Raises CiPerfError for the rest, and
        KeyboardInterrupt.
        """
        self.count += 1
        try:
            if not against:
                run = self.run(commit, self._base, judge)
            else:
                with worktree.commit_of(self._options.root, against) as base:
                    run = self.run(commit, base, judge)
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            return Measurement(failure=str(error), output=error.output)
        if run_summary.is_interrupted(run):
            raise KeyboardInterrupt
        return measurement_of(run, judge)

    def run(self, commit: str, base: Checkout, judge: PairsJudge) -> Run:
        """Launch a commit beside a base. Raises CiPerfError; an interrupted run says so."""
        with worktree.commit_of(self._options.root, commit, has_setup=True) as head:
            options = commits.options_of(self._options, head)
            plan = measure.plan(options)
            of_base = lab.with_plan(base, plan, options)
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
                return session.measure(
                    here,
                    plan,
                    against=session.Against(
                        checkout=checkout,
                        budget_s=max(self.left_s, 0.0),
                        judge=judge,
                        routes=True,
                    ),
                    records=measure.find_records(
                        plan, options, checkout, self._notify, believes_cache=True
                    ),
                    baselines=options.baselines,
                )


def measurement_of(run: Run, judge: PairsJudge) -> Measurement:
    """Return what the run of a session says of its commit."""
    if run.same:
        return Measurement(is_same=True)
    if run.failed:
        failed = run.failed[0]
        return Measurement(failure=f"{failed.phase.value}: {failed.reason}", output=failed.output)
    reason = run.validity.against(run.measured[0].workload)
    if reason is not None:
        return Measurement(distrust=f"{reason.code}: {reason.detail}")
    for paired in run.paired:
        if paired.trouble:
            what = f"the known-good commit failed beside it: {paired.trouble}"
            return Measurement(failure=what, output=paired.output)
    stopped = run.interleaved.stopped if run.interleaved else "decided"
    return Measurement(rows=judge.rows(run), is_out_of_time=stopped == "budget")

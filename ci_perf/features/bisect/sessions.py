"""Measure commits beside the same base, one after another, and judge each by its pairs alone."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from ci_perf import worktree
from ci_perf.api_types import Notify
from ci_perf.errors import OF_MACHINE, CiPerfError
from ci_perf.gate.commit_pairs import CommitSessions, PairsJudge
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.comparison import Row
from ci_perf.model.run import Run
from ci_perf.session import Listener
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


class BisectSessions(CommitSessions):
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
        chosen = dataclasses.replace(options, select=(workload,))
        super().__init__(chosen, ending, notify, listener)
        self.count = 0
        self._base = base
        self._clock = clock
        self._end = clock() + options.budget_s

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
            run = self._launch(commit, judge, against)
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            return Measurement(failure=str(error), output=error.output)
        return measurement_of(run, judge)

    def _launch(self, commit: str, judge: PairsJudge, against: str) -> Run:
        if not against:
            return self.run(commit, self._base, judge, budget_s=self.left_s)
        with worktree.commit_of(self._options.root, against) as base:
            return self.run(commit, base, judge, budget_s=self.left_s)


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
            what = f"the known-good one failed beside it: {paired.trouble}"
            return Measurement(failure=what, output=paired.output)
    stopped = run.interleaved.stopped if run.interleaved else "decided"
    return Measurement(rows=judge.judge(run).rows, is_out_of_time=stopped == "budget")

"""Measure the commits of a line from the oldest on, and add a session of each to the baselines.

Each commit is measured as `ci-perf run` does it in a worktree, and accepted as `ci-perf accept
--append` does. Nothing is committed.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ci_perf import worktree
from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import OF_MACHINE, CiPerfError, UsageError
from ci_perf.features.history.backfill_baselines import LineBaselines
from ci_perf.features.history.backfilled import Backfill, BackfilledCommit, BackfillOutcome
from ci_perf.gate import arguments, lab, measure
from ci_perf.gate.commits import CommitLine, CommitPrograms, between, options_of
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.run import Run, Tool
from ci_perf.model.suite import is_selected
from ci_perf.model.task import MachineDescription
from ci_perf.session import Listener
from ci_perf.system import signals
from ci_perf.system.signals import Interrupts
from ci_perf.version import __version__

_RANGE = ".."


class RunSessions:
    """Launches the session of a commit, without any base."""

    def __init__(self, notify: Notify, listener: Callable[[], Listener]) -> None:
        """Give each session a `listener` of its own."""
        self._notify = notify
        self._listener = listener

    def describe(self, own: MeasureOptions, ending: Interrupts) -> MachineDescription:
        """Describe the machine, as a commit would be launched. Raises CiPerfError."""
        return lab.describe_machine(measure.plan(own), own, ending, self._notify)

    def measure(self, own: MeasureOptions, ending: Interrupts) -> Run:
        """Measure a commit. Raises CiPerfError and KeyboardInterrupt."""
        return measure.measure_plan(
            measure.plan(own),
            own,
            baselines=own.baselines,
            notify=self._notify,
            listener=self._listener(),
            interrupts=ending,
        )


def backfill(
    commits: str,
    select: str | Iterable[str] = (),
    *,
    every: int = 1,
    force: bool = False,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: Callable[[], Listener] | None = None,
    **options: Any,  # noqa: ANN401  as `ci_perf.measure`
) -> Backfill:
    """Measure the `commits` ("FROM..TO") that have no session in the baselines, oldest first.

    Writes the files, which you then commit; see `ci-perf history --measure`. `force` accepts what
    was measured under pressure. Each session has a `listener` of its own. The other `options` are
    those of `ci_perf.measure`.
    """
    say = notify or say_nothing
    return fill(
        arguments.measure_options(root, options, select=select),
        commits,
        every=every,
        force=force,
        notify=say,
        sessions=RunSessions(say, listener or Listener),
    )


def fill(
    measuring: MeasureOptions,
    commits: str,
    *,
    every: int,
    force: bool,
    notify: Notify,
    sessions: RunSessions,
) -> Backfill:
    """Measure each `every`-th of the commits, counted from the last one back.

    What was accepted before an interrupt stays. Raises UsageError, InvalidFileError and other
    CiPerfErrors: what is no matter of one commit, before the next one.
    """
    if every < 1:
        raise UsageError(f"--every: expected 1 or more, found {every}")
    first, dots, last = commits.partition(_RANGE)
    if not (first and dots and last) or last.startswith("."):
        raise UsageError(
            f"{commits}: expected FROM..TO, two commits, tags or branches, such as v1.0..main"
        )
    line = between(measuring.root, first, last)
    programs = CommitPrograms(line, measuring, notify)
    return _Backfilling(measuring, every, force, programs, notify, sessions).go()


@dataclass(slots=True)
class _Backfilling:
    """A line that is being measured, and what became of its commits so far."""

    measuring: MeasureOptions
    every: int
    force: bool
    programs: CommitPrograms
    notify: Notify
    sessions: RunSessions
    done: list[BackfilledCommit] = field(default_factory=list)

    @property
    def line(self) -> CommitLine:
        """The commits that are gone through."""
        return self.programs.line

    def go(self) -> Backfill:
        """Go through the line."""
        with signals.note_signals() as ending:
            try:
                self._measure(ending)
            except KeyboardInterrupt:
                return self._answer(is_interrupted=True)
        return self._answer(is_interrupted=False)

    def _answer(self, *, is_interrupted: bool) -> Backfill:
        return Backfill(
            tool=Tool(version=__version__),
            suite=self.measuring.suite,
            baselines=str(self.measuring.baselines),
            commits=tuple(self.done),
            is_interrupted=is_interrupted,
        )

    def _measure(self, ending: Interrupts) -> None:
        """Measure every n-th commit, with the last one. Raises KeyboardInterrupt."""
        positions = sorted(range(len(self.line.commits) - 1, 0, -self.every))
        machine = self._machine(positions, ending)
        baselines = LineBaselines(
            options=self.measuring,
            line=self.line,
            machine=machine.environment.hard,
            force=self.force,
            notify=self.notify,
        )
        left, known = baselines.left(), baselines.find_known()
        for at in positions:
            ending.check()
            if at <= max(known, default=0):
                self._note(at, "known" if at in known else "passed")
            elif left <= 0:
                self._note(at, "left")
            else:
                left -= self._commit(at, machine, baselines, ending)

    def _machine(self, positions: Iterable[int], ending: Interrupts) -> MachineDescription:
        """Describe this machine, by the first commit that can be planned.

        Raises CiPerfError where none can.
        """
        failure: CiPerfError | None = None
        for at in positions:
            try:
                with self._checked_out(at) as own:
                    return self.sessions.describe(own, ending)
            except OF_MACHINE:
                raise
            except CiPerfError as error:
                failure = failure or error
        assert failure is not None  # a line has two commits at least
        raise failure

    # --- one commit

    def _commit(
        self, at: int, machine: MachineDescription, baselines: LineBaselines, ending: Interrupts
    ) -> bool:
        """Measure and accept a commit; return whether a session was added."""
        try:
            plan = self.programs.plan(at)
            names = [
                each.id for each in plan.workloads if is_selected(each.id, self.measuring.select)
            ]
            measured_at = baselines.measured_at
            # A record tells that they are as they were where they were measured last.
            same = [
                name
                for name in names
                if name in measured_at
                and self.programs.is_same(measured_at[name], at, name, machine)
            ]
            if names and len(same) == len(names):
                other = max(measured_at[name] for name in same)
                self._note(at, "same_program", self.line.shown(other))
                return False
            self.notify(f"commit {self.line.shown(at)}")
            with self._checked_out(at) as whole:
                left = tuple(name for name in names if name not in same)
                own = dataclasses.replace(whole, select=left or whole.select)
                run = self.sessions.measure(own, ending)
                failed = baselines.add(run, own, at)
                self._note(at, "failed" if failed else "measured", failed)
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            self.notify(f"{self.line.shown(at)}: {error}")
            self._note(at, "failed", str(error))
            return False
        return True

    @contextlib.contextmanager
    def _checked_out(self, at: int) -> Iterator[MeasureOptions]:
        """Provide a commit, as the options that measure it. Raises CiPerfError."""
        root = self.measuring.root
        with worktree.commit_of(root, self.line.id(at), has_setup=True) as checkout:
            yield options_of(self.measuring, checkout)

    def _note(self, at: int, outcome: BackfillOutcome, note: str = "") -> None:
        commit = self.line.commits[at].commit
        self.done.append(BackfilledCommit(commit=commit, outcome=outcome, note=note))

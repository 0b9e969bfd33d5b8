"""Measure the commits of a line from the oldest on, and add a session of each to the baselines.

Each commit is measured as `ci-perf run` does it in a worktree, and accepted as `ci-perf accept
--append` does. Nothing is committed.
"""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf import session, worktree
from ci_perf.baselines import layout
from ci_perf.baselines.accept import MAX_REASON_CHARS
from ci_perf.errors import (
    BusyError,
    CannotWriteError,
    CiPerfError,
    EngineError,
    RefusedError,
    UsageError,
)
from ci_perf.gate import Notify, accept, commits, measure
from ci_perf.gate.accept import AcceptOptions
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model import codec
from ci_perf.model.backfill import Backfill, BackfilledCommit, BackfillOutcome
from ci_perf.model.baseline import MAX_SESSIONS, Baseline
from ci_perf.model.environment import is_same
from ci_perf.model.run import Run, Tool
from ci_perf.model.suite import is_selected
from ci_perf.model.task import MachineDescription
from ci_perf.session import Listener
from ci_perf.system import git, signals
from ci_perf.version import __version__

_RANGE = ".."
_HASH = re.compile(r"[0-9a-f]{7,64}")
# What is no matter of a commit, and would stop every other one as well.
_OF_MACHINE = (BusyError, EngineError, CannotWriteError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOptions:
    """Which commits: those of ``commits`` ("FROM..TO", as git means it), each ``every``-th one.

    They are counted from the last one back. ``force`` accepts what was measured under pressure.
    """

    measuring: MeasureOptions
    commits: str
    every: int = 1
    force: bool = False


class RunSessions:
    """Launches the session of a commit, without any base."""

    def __init__(self, notify: Notify, listener: Callable[[], Listener]) -> None:
        """Give each session a `listener` of its own."""
        self._notify = notify
        self._listener = listener

    def describe(self, own: MeasureOptions) -> MachineDescription:
        """Describe the machine, as a commit would be launched. Raises CiPerfError."""
        plan, identity = measure.plan(own), session.new_identity()
        with measure.launching(plan, own, identity, self._notify) as (ending, _, launcher):
            device = plan.device if own.device == "auto" else own.device
            machine = session.describe(plan, launcher, device, ending)
            ending.check()
            return machine

    def measure(self, own: MeasureOptions) -> Run:
        """Measure a commit. Raises CiPerfError and KeyboardInterrupt."""
        return measure.measure_plan(
            measure.plan(own),
            own,
            baselines=own.baselines,
            notify=self._notify,
            listener=self._listener(),
        )


def backfill(
    options: BackfillOptions,
    *,
    notify: Notify,
    listener: Callable[[], Listener],
    sessions: type[RunSessions] = RunSessions,
) -> Backfill:
    """Measure the commits of a line that the baselines do not have yet, oldest first.

    What was accepted before an interrupt stays. Raises UsageError, InvalidFileError and other
    CiPerfErrors: what is no matter of one commit, before the next one.
    """
    if options.every < 1:
        raise UsageError(f"--every: expected 1 or more, found {options.every}")
    first, dots, last = options.commits.partition(_RANGE)
    if not (first and dots and last) or last.startswith("."):
        raise UsageError(
            f"{options.commits}: expected FROM..TO, two commits, tags or branches, such as "
            "v1.0..main"
        )
    line = commits.between(options.measuring.root, first, last)
    programs = CommitPrograms(line, options.measuring, notify)
    return _Backfilling(options, line, programs, notify, sessions(notify, listener)).go()


@dataclass(slots=True)
class _Backfilling:
    """A line that is being measured, and what became of its commits so far."""

    options: BackfillOptions
    line: CommitLine
    programs: CommitPrograms
    notify: Notify
    sessions: RunSessions
    machine: MachineDescription | None = None
    done: list[BackfilledCommit] = field(default_factory=list)
    # Where each workload was measured last: only there can a record tell that it is the same.
    measured_at: dict[str, int] = field(default_factory=dict)

    def go(self) -> Backfill:
        """Go through the line."""
        positions = self._positions()
        with signals.noted() as ending:
            try:
                self._find_machine(positions)
                left = MAX_SESSIONS - self._uncommitted()
                newest = self._newest_known()
                for at in positions:
                    ending.check()
                    if at <= newest or left <= 0:
                        self._note(at, self._outcome_of_passed(at) if at <= newest else "left")
                    else:
                        left -= self._commit(at)
            except KeyboardInterrupt:
                return self._answer(is_interrupted=True)
        return self._answer(is_interrupted=False)

    def _answer(self, *, is_interrupted: bool) -> Backfill:
        return Backfill(
            tool=Tool(version=__version__),
            suite=self.options.measuring.suite,
            baselines=str(self.options.measuring.baselines),
            commits=tuple(self.done),
            is_interrupted=is_interrupted,
        )

    def _positions(self) -> list[int]:
        """Return every n-th position, with the last one; the first commit of the line is out."""
        return sorted(range(len(self.line.commits) - 1, 0, -self.options.every))

    # --- what is there already

    def _find_machine(self, positions: Iterable[int]) -> None:
        """Describe this machine, by the first commit that can be planned.

        Raises CiPerfError where none can.
        """
        failure: CiPerfError | None = None
        for at in positions:
            try:
                with self._checked_out(at) as own:
                    self.machine = self.sessions.describe(own)
                    return
            except _OF_MACHINE:
                raise
            except CiPerfError as error:
                failure = failure or error
        assert failure is not None  # a line has two commits at least
        raise failure

    def _sessions(self) -> Iterator[tuple[str, str]]:
        """Yield workload and commit of each session that is there. Raises InvalidFileError."""
        assert self.machine is not None
        for baseline in self._baselines():
            for each in baseline.sessions:
                yield baseline.workload, each.source.commit

    def _baselines(self) -> list[Baseline]:
        assert self.machine is not None
        options = self.options.measuring
        hard = self.machine.environment.hard
        return [
            each
            for each in layout.read_all(self._folder, hard, options.suite)
            if is_same(each.machine, hard) and is_selected(each.workload, options.select)
        ]

    @property
    def _folder(self) -> Path:
        return Path(self.options.measuring.root, self.options.measuring.baselines).absolute()

    def _newest_known(self) -> int:
        """Return the newest position that has a session; 0 where none has.

        Raises UsageError where a session is of a commit that comes later, or of another line: what
        is added becomes the newest session, and checks would compare with old code.
        """
        places = {each.commit.id: at for at, each in enumerate(self.line.commits)}
        newest = 0
        for workload, commit in self._sessions():
            at = places.get(commit)
            if at is None and not self._is_before(commit):
                raise UsageError(
                    f"{self._folder}: expected sessions of commits before those to measure, found "
                    f"one of {workload} at {commit[:12]}; what is added becomes the newest, and "
                    "checks would compare with old code: name a folder of its own, as "
                    "--baselines perf-history, and show it with ci-perf history --baselines "
                    "perf-history"
                )
            newest = max(newest, at or 0)
            self.measured_at[workload] = max(self.measured_at.get(workload, 0), at or 0)
        return newest

    def _is_before(self, commit: str) -> bool:
        if not _HASH.fullmatch(commit):
            return False
        asked = ("merge-base", "--is-ancestor", commit, self.line.id(0))
        return git.run(self.line.start.top, *asked).code == 0

    def _outcome_of_passed(self, at: int) -> BackfillOutcome:
        is_known = any(commit == self.line.id(at) for _, commit in self._sessions())
        return "known" if is_known else "passed"

    def _uncommitted(self) -> int:
        """Count the sessions of a file that git does not have, at most over all files.

        A file holds so many sessions, and git the others: none must be pushed out before that.
        """
        most = 0
        for baseline in self._baselines():
            file = layout.path(self._folder, baseline.machine, baseline.suite, baseline.workload)
            shown = git.run(file.parent, "show", f"HEAD:./{file.name}")
            known = set()
            if shown.code == 0:
                committed = codec.decode(shown.out, Baseline, name=f"{file} at HEAD")
                known = {each.run for each in committed.sessions}
            most = max(most, sum(each.run not in known for each in baseline.sessions))
        return most

    # --- one commit

    def _commit(self, at: int) -> bool:
        """Measure and accept a commit; return whether a session was added."""
        try:
            plan = self.programs.plan(at)
            names = [each.id for each in plan.workloads if self._is_asked(each.id)]
            same = [name for name in names if self._is_same(name, at)]
            if names and len(same) == len(names):
                other = max(self.measured_at[name] for name in same)
                self._note(at, "same_program", self.line.shown(other))
                return False
            self.notify(f"commit {self.line.shown(at)}")
            with self._checked_out(at) as whole:
                left = tuple(name for name in names if name not in same)
                own = dataclasses.replace(whole, select=left or whole.select)
                run = self.sessions.measure(own)
                self._accept(run, own, at)
        except _OF_MACHINE:
            raise
        except CiPerfError as error:
            self.notify(f"{self.line.shown(at)}: {error}")
            self._note(at, "failed", str(error))
            return False
        self.measured_at.update(dict.fromkeys((each.workload for each in run.measured), at))
        failed = "; ".join(f"{each.workload}: {each.reason}" for each in run.failed)
        self._note(at, "failed" if failed else "measured", failed)
        return True

    @contextlib.contextmanager
    def _checked_out(self, at: int) -> Iterator[MeasureOptions]:
        """Provide a commit, as the options that measure it. Raises CiPerfError."""
        measuring = self.options.measuring
        with worktree.commit_of(measuring.root, self.line.id(at), has_setup=True) as checkout:
            yield commits.options_of(measuring, checkout)

    def _is_asked(self, workload: str) -> bool:
        return is_selected(workload, self.options.measuring.select)

    def _is_same(self, workload: str, at: int) -> bool:
        before = self.measured_at.get(workload)
        if not before or self.machine is None or not self.options.measuring.record:
            return False
        return self.programs.is_same(before, at, workload, self.machine)

    def _accept(self, run: Run, own: MeasureOptions, at: int) -> None:
        """Add the session. Raises RefusedError, also where no workload has numbers."""
        if not run.measured:
            raise RefusedError("; ".join(f"{each.workload}: {each.reason}" for each in run.failed))
        reason = f"Backfill of {self.line.shown(at)}"
        accept.accept(
            run,
            AcceptOptions(
                root=self.options.measuring.root,
                baselines=own.baselines,
                workloads=own.workloads,
                select=tuple(each.workload for each in run.measured),
                reason=reason[:MAX_REASON_CHARS],
                append=True,
                force=self.options.force,
            ),
            label=self.line.shown(at),
            notify=self.notify,
        )

    def _note(self, at: int, outcome: BackfillOutcome, note: str = "") -> None:
        commit = self.line.commits[at].commit
        self.done.append(BackfilledCommit(commit=commit, outcome=outcome, note=note))

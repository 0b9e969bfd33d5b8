"""Watch the branch that is checked out: a session of HEAD, then pairs of commits, then a file."""

import json
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import hooks, suite
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import OF_MACHINE, CiPerfError, InvalidFileError
from ci_perf.features.watch.branch_line import BranchLine, read_line
from ci_perf.features.watch.night import BudgetSpentError, Key, Night, Searched
from ci_perf.features.watch.sessions import PairsAnswer, WatchSessions
from ci_perf.features.watch.suspects import Suspect, find_acceptance, find_suspects
from ci_perf.gate import arguments, commit_suite, compare, measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import summarise
from ci_perf.model import codec
from ci_perf.model.baseline import Baseline, RecordedSession
from ci_perf.model.comparison import Comparison, Uncompared, Verdict
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.run import Run, Tool
from ci_perf.model.suite import Plan
from ci_perf.model.watch import Creep, Culprit, Watched
from ci_perf.report import units
from ci_perf.session import Listener
from ci_perf.system import files, git, git_log, signals
from ci_perf.version import __version__

_SHOWN = 12


def watch(
    asked: Mapping[str, Any],
    *,
    output: Path,
    notify: Notify,
    listener: Callable[[], Listener],
) -> Watched:
    """Go on with the file `output`, or begin it; see `ci-perf watch`.

    Raises UsageError, InvalidFileError: the file is of another repository, suite or machine; other
    CiPerfErrors; and KeyboardInterrupt, with what is known in the file.
    """
    root = files.current_folder()
    options = arguments.measure_options(None, dict(asked))
    line = read_line(root)
    files.check_target(output)
    start, end = datetime.now(UTC), time.monotonic() + options.budget_s
    before = read_before(output, line, options.suite)
    run = measure.measure(options, notify=notify, listener=listener())
    machine = run.environment.hard
    check_machine(output, before, machine)
    comparison = compare.with_baselines(run, options, label="HEAD", fail_on=None, notify=notify)
    # Commits are launched without the tests that they may collect.
    plan = measure.plan(options, has_tests=True)
    names = {each.id for each in plan.workloads}
    suspects = list_suspects(run, comparison, options, line, plan)
    known = begin(before, line, options.suite, machine, git_log.utc(start))
    with signals.note_signals() as ending:
        sessions = WatchSessions(options, ending, notify, listener)

        def keep(document: Watched) -> None:
            ended = git_log.utc(datetime.now(UTC))
            files.write(output, msgspec.structs.replace(document, ended=ended))

        night = Night(
            known=known,
            line=line,
            launcher=_Launcher(sessions, options, asked, end, notify, listener),
            today=known.started[:10],
            find_accepted=_find_accepted(options, machine, line, names),
            keep=keep,
            find_owner=_find_owner(options),
            is_removed=lambda name: name not in names,
        )
        night.go(suspects, list_unanswered(comparison))
    return files.read(output, Watched)


def read_before(output: Path, line: BranchLine, suite: str) -> Watched | None:
    """Return what the night before has left; `None` for the first night.

    Raises InvalidFileError.
    """
    if files.is_missing(output):
        return None
    try:
        before = msgspec.structs.replace(files.read(output, Watched), notes=())
    except InvalidFileError as error:
        before = rescue(output, error)
    own = line.repository.root
    if before.repository.root != own:
        raise InvalidFileError(
            f"{output}: expected a watch of this repository, whose first commit is {own[:_SHOWN]}, "
            f"found {before.repository.root[:_SHOWN]}; name another file with -o"
        )
    if before.suite != suite:
        raise InvalidFileError(
            f"{output}: expected a watch of the suite {suite}, found {before.suite}; name a file "
            "for each suite with -o"
        )
    return before


def rescue(output: Path, error: InvalidFileError) -> Watched:
    """Return what issues need of a file that cannot be read whole: another version wrote it.

    Raises the `error` where its commits and creeps cannot be read.
    """
    try:
        data = json.loads(files.read_text(output), object_pairs_hook=codec.build_object)
        anew = {"suspicions": [], "no_answer": [], "notes": [f"the search begins anew: {error}"]}
        known = codec.drop_unknown({**data, **anew}, Watched)
        return codec.convert(known, Watched, name=str(output))
    except (ValueError, TypeError, RecursionError, CiPerfError):
        raise error from None


def check_machine(output: Path, before: Watched | None, machine: Machine) -> None:
    """Refuse the file of another machine. Raises InvalidFileError."""
    if before is not None and not is_same(before.machine, machine):
        raise InvalidFileError(
            f"{output}: expected a watch of this machine, found one of "
            f"{layout.machine_key(before.machine)}; name a file for each machine with -o (in "
            "baseline.yml: another artifact), or delete it where that machine is gone"
        )


def begin(
    before: Watched | None, line: BranchLine, suite: str, machine: Machine, started: str
) -> Watched:
    """Return the document of a night of which nothing is known yet."""
    notes = list(before.notes) if before else []
    if git.source(line.top).dirty:
        notes.append("uncommitted changes are in the session of HEAD, and not in pairs")
    return Watched(
        tool=Tool(version=__version__),
        repository=line.repository,
        suite=suite,
        machine=machine,
        started=started,
        ended=started,
        head=line.head,
        complete=False,
        culprits=before.culprits if before else (),
        creeps=before.creeps if before else (),
        suspicions=before.suspicions if before else (),
        no_answer=before.no_answer if before else (),
        notes=tuple(notes),
    )


def list_suspects(
    run: Run, comparison: Comparison, options: MeasureOptions, line: BranchLine, plan: Plan
) -> list[Suspect]:
    """Return what the history of this machine suspects."""
    machine = run.environment.hard

    @cache
    def find_first_with(session: str, path: Path) -> str | None:
        return line.find_first_with(session, path)

    def locate(baseline: Baseline, session: RecordedSession) -> str | None:
        """Return the commit of a session; of one that was squashed, the commit that brought it."""
        if session.source.commit in line.places:
            return session.source.commit
        path = layout.path(options.baselines, machine, options.suite, baseline.workload)
        return find_first_with(session.run, path)

    history = layout.read_all(options.baselines, machine, options.suite)
    names = {each.id for each in plan.workloads}
    return list(
        find_suspects(
            [each for each in history if is_same(each.machine, machine) and each.workload in names],
            summarise.run(run, label=""),
            comparison,
            plan.limits,
            locate,
        )
    )


def list_unanswered(comparison: Comparison) -> dict[str, str]:
    """Return which workloads of HEAD history says nothing of, and why."""
    return {
        row.workload: row.note or row.code.value
        for row in comparison.rows
        if isinstance(row, Uncompared)
        and not row.metric
        and row.verdict in {Verdict.FAILED, Verdict.NEW, Verdict.INCONCLUSIVE}
    }


def _find_accepted(
    options: MeasureOptions, machine: Machine, line: BranchLine, names: Container[str]
) -> Callable[[Culprit | Creep], tuple[str, str | None] | None]:
    """Return what says whether baselines accept all of a loss in `names`, why, and until when."""

    def find_accepted(known: Culprit | Creep) -> tuple[str, str | None] | None:
        tree = commit_suite.tree_of(options.root, known.base)
        place = line.places[known.base]

        def has_loss(session: RecordedSession) -> bool:
            """Whether a session measured it; a merged or a changed commit may have it as well."""
            measured = line.places.get(session.source.commit)
            # Uncommitted changes on its parent may be the culprit.
            is_early = session.source.dirty and isinstance(known, Culprit)
            return is_early or measured is None or measured > place

        reason, days = "", []
        with commit_suite.baselines_of_tree(tree, options, options.suite) as before:
            for workload, metric in (each for each in known.keys if each[0] in names):
                old, new = (
                    layout.read(file) if file.is_file() else None
                    for root in (before, options.baselines)
                    for file in [layout.path(root, machine, options.suite, workload)]
                )
                session = find_acceptance(old, new, metric, has_loss) if new else None
                if new is None or session is None:
                    return None
                reason = session.reason
                days.append(new.sessions[-1].until.get(metric))
        return reason, min(filter(None, days), default=None)

    return find_accepted


def _find_owner(options: MeasureOptions) -> Callable[[str], str | None]:
    """Return what says who owns a workload, by suite.toml."""
    name, folder = suite.locate(options.suite, Path(options.root, options.workloads))
    return suite.load(folder).suites[name].find_owner


@dataclass(slots=True)
class _Launcher:
    """Launches pairs and searches here, until the budget is spent."""

    sessions: WatchSessions
    options: MeasureOptions
    asked: Mapping[str, Any]
    end: float
    notify: Notify
    listener: Callable[[], Listener]

    def measure_pairs(
        self, commit: str, base: str, names: list[str], *, explains: bool = False, keeps: float = 0
    ) -> PairsAnswer:
        """See CommitLauncher."""
        left_s = self._find_left(keeps)
        pair = f"{commit[:_SHOWN]} beside {base[:_SHOWN]}"
        self.notify(f"{units.duration(left_s)} left: {pair}: {', '.join(names)}")
        explain_s = (self.options.explain_budget_s or 0.0) if explains else 0.0
        return self.sessions.measure(commit, base, names, left_s=left_s, explain_s=explain_s)

    def search(self, good: str, bad: str, key: Key) -> Searched:
        """Bisect, as `ci-perf bisect` does. Raises BudgetSpentError and KeyboardInterrupt."""
        workload, metric = key
        try:
            bisected = hooks.find_function("bisect")(
                good,
                bad,
                workload,
                metric=metric,
                **{**self.asked, "budget_s": self._find_left()},
                notify=self.notify,
                listener=self.listener,
            )
        except OF_MACHINE:
            raise
        except CiPerfError as error:
            return Searched(why=str(error))
        if bisected.ended == "interrupted":
            raise KeyboardInterrupt
        left = bisected.commits[bisected.low + 1 : bisected.high + 1]
        return Searched(
            left=() if bisected.outcome == "not_worse" else tuple(each.commit.id for each in left),
            change=bisected.commits[-1].change,
            is_late=bisected.ended == "budget",
        )

    def _find_left(self, keeps: float = 0.0) -> float:
        left_s = self.end - time.monotonic() - keeps * self.options.budget_s
        if left_s <= 0:
            raise BudgetSpentError
        return left_s

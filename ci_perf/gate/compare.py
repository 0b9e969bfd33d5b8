"""A run against baselines or another run; samples of any harness. Measures and launches nothing."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_perf import hooks, suite
from ci_perf.api_types import Notify
from ci_perf.baselines import layout, summaries
from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.gate import commit_suite, own_gate
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.judging import gate_changes, suite_rules, summarise
from ci_perf.judging.compare import compare as compare_summaries
from ci_perf.judging.compare import find_open_metrics, find_undecided, first_launches
from ci_perf.judging.policy import limits_on
from ci_perf.model import metrics
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.rehearsed import RehearsedSuite
from ci_perf.model.run import Paired, Run, is_same_code
from ci_perf.model.suite import FailOn, Limits, Plan, Tiers
from ci_perf.model.summary import Summary
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.same_program import claims
from ci_perf.system import files, git


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What suite.toml, and the calibration of the machine, say of judging a suite.

    ``expected`` are workloads that must be there, whatever the head's suite lists; ``known`` those
    of the base's own suite, none where not all are known: tests are not collected.
    """

    limits: Limits
    tiers: Tiers
    fail_on: FailOn
    expected: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def of(self, fail_on: FailOn | None) -> "Rules":
        """Return the same rules with what the command line says, if it says something."""
        return dataclasses.replace(self, fail_on=fail_on or self.fail_on)

    def under(self, base: Plan) -> "Rules":
        """Return the rules of a head as far as they loosen none of those of its base."""
        names = tuple(workload.id for workload in base.workloads)
        return Rules(
            limits=suite_rules.stricter(base.limits, self.limits),
            tiers=Tiers(hard=tuple(sorted({*base.tiers.hard, *self.tiers.hard}))),
            fail_on=min(base.fail_on, self.fail_on, key=gate_changes.STRICTEST_FIRST.index),
            expected=names,
            known=() if base.tests else names,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """By what a run is judged: what was measured before, and the rules.

    ``accepted`` names, by workload, the metrics of which the head has accepted a change, ``edits``
    all that it does to baselines. ``rehearsed`` is the last rehearsal. ``base`` has the files of
    the base, where that is known.
    """

    history: Summary
    rules: Rules
    accepted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    edits: tuple[BaselineEdit, ...] = ()
    rehearsed: RehearsedSuite | None = None
    base: Tree | None = None


def basis(
    name: str, machine: Machine, commit: str, folders: RepositoryFolders, *, notify: Notify
) -> Basis:
    """Return by what a head that began at `commit` is judged; "" where none is known.

    The numbers are those of that commit, but for what the head has accepted since; so are the
    rules, but where the head is stricter. Raises InvalidFileError for files of the head.
    """
    baselines = folders.baselines
    own = rules(folders.workloads, name, baselines, machine, notify=notify)
    of_head = Basis(
        history=summaries.baselines(baselines, machine, name),
        rules=own,
        rehearsed=_read_rehearsed(baselines, machine, name, notify),
    )
    if not commit:
        return of_head
    try:
        tree = commit_suite.tree_of(folders.root, commit)
        with commit_suite.baselines_of_tree(tree, folders, name) as before:
            calibrated = layout.read_calibration(before, machine)
            plan = commit_suite.find_plan(
                tree, folders.of_suite(name), name, defaults=limits_on(machine, calibrated)
            )
            accepted: dict[str, tuple[str, ...]] = {}
            if before.is_dir():
                accepted = summaries.find_accepted_since(baselines, before, machine, name)
            return Basis(
                history=summaries.read_base_summary(before, baselines, machine, name, accepted),
                rules=own.under(plan) if plan else own,
                accepted=accepted,
                edits=summaries.edits(before, baselines, name),
                rehearsed=_read_rehearsed(before, machine, name, notify),
                base=tree,
            )
    except CiPerfError as error:
        notify(f"{commit}: the limits and baselines of the base are not known: {error}")
        return of_head


def _read_rehearsed(
    baselines: Path, machine: Machine, name: str, notify: Notify
) -> RehearsedSuite | None:
    """Return the last rehearsal of a suite. No verdict depends on it, so a bad file is told."""
    try:
        rehearsed = layout.read_rehearsed(baselines, machine)
    except InvalidFileError as error:
        notify(f"note: {error}")
        return None
    return rehearsed.suites.get(name) if rehearsed else None


def basis_of(run: Run, folders: RepositoryFolders, *, notify: Notify) -> Basis:
    """Return by what a run is judged. Raises InvalidFileError."""
    commit = run.interleaved.source.commit if run.interleaved else ""
    return basis(run.suite, run.environment.hard, commit, folders, notify=notify)


class BaselineJudge:
    """Judges by baselines and suite.toml as they were when it was first asked. See PairJudge."""

    def __init__(
        self,
        commit: str,
        folders: RepositoryFolders,
        sharing: int = 0,
        *,
        has_history: bool = True,
    ) -> None:
        """`commit` is the base of the head that is checked out; `sharing` as `undecided` has it.

        Beside a base in another environment no baseline counts: then it has no history.
        """
        self._commit = commit
        self._sharing = sharing
        self._has_history = has_history
        self._folders = folders
        self._known: Basis | None = None
        # What was launched, and undecided, when it was last asked.
        self._paired: dict[str, Paired] = {}
        self._undecided: dict[str, float] = {}

    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """See PairJudge."""
        basis = self._read(machine, plan.suite)
        return first_launches(basis.history, plan.workloads, basis.rules.limits)

    def is_blind(self, plan: Plan, machine: Machine) -> bool:
        """See PairJudge."""
        return not self._read(machine, plan.suite).history.subjects

    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """See PairJudge. Without a history, no workload says anything of another one.

        So only those with new pairs are judged: of 200 tests of pytest, one.
        """
        basis = self._read(run.environment.hard, run.suite)
        rules, sharing = basis.rules, self._sharing
        paired = {each.workload: each for each in run.paired}
        suspects = run.interleaved.suspects if run.interleaved else 0
        known: dict[str, float] = {}
        if self._undecided and suspects and not basis.history.subjects:
            sharing = max(sharing, suspects)
            new = {name for name, each in paired.items() if each != self._paired.get(name)}
            old = {each.workload for each in run.measured} - new
            known = {name: pairs for name, pairs in self._undecided.items() if name in old}
            run = msgspec.structs.replace(
                run,
                measured=tuple(each for each in run.measured if each.workload in new),
                paired=tuple(each for each in run.paired if each.workload in new),
            )
        head = summarise.run(run, label="")
        left, counted = find_undecided(
            basis.history, head, limits=rules.limits, tiers=rules.tiers, sharing=sharing
        )
        self._paired, self._undecided = paired, {**known, **left}
        return self._undecided, max(suspects, counted)

    def is_start_open(self, run: Run, workload: str) -> bool:
        """See PairJudge."""
        basis = self._read(run.environment.hard, run.suite)
        limits, tiers = basis.rules.limits, basis.rules.tiers
        head = summarise.run(run, label="")
        is_open = find_open_metrics(basis.history, head, workload, limits=limits, tiers=tiers)
        return any(metric.kind in metrics.OF_START for metric in is_open)

    def verdict(self, run: Run) -> Comparison:
        """See PairJudge."""
        basis = self._read(run.environment.hard, run.suite)
        return _compare_sides(basis.history, summarise.run(run, label=""), basis.rules)

    def accepted(self, suite: str, machine: Machine) -> dict[str, tuple[str, ...]]:
        """See PairJudge."""
        return self._read(machine, suite).accepted

    def _read(self, machine: Machine, suite: str) -> Basis:
        """Read what decides, once; what cannot be read, the judge of the whole run says."""
        if self._known is None:
            silent: list[str] = []
            known = basis(suite, machine, self._commit, self._folders, notify=silent.append)
            if not self._has_history:
                history = msgspec.structs.replace(known.history, subjects=())
                known = dataclasses.replace(known, history=history)
            self._known = known
        return self._known


def against_baselines(run: Run, root: Path, *, label: str, rules: Rules) -> Comparison:
    """Judge `run` against the baselines of its machine and suite below `root`."""
    committed = summaries.baselines(root, run.environment.hard, run.suite)
    return _compare_sides(committed, summarise.run(run, label=label), rules)


def with_baselines(
    run: Run, folders: RepositoryFolders, *, label: str, fail_on: FailOn | None, notify: Notify
) -> Comparison:
    """Judge `run` against the baselines, by the limits of suite.toml: see `basis`."""
    by = basis_of(run, folders, notify=notify)
    comparison = _compare_sides(by.history, summarise.run(run, label=label), by.rules.of(fail_on))
    if by.rehearsed:
        note = by.rehearsed.note({row.workload for row in comparison.rows})
        comparison = msgspec.structs.replace(comparison, rehearsed=note)
    if by.base is None or run.interleaved is None:
        return comparison
    test_files: Collection[str] = own_gate.list_test_files(run)
    if test_files:  # what lies above the project decides, too
        top = git.find_top(folders.root)
        sides = GitTree(top, run.interleaved.source.commit), FolderTree(top)
        inside = folders.root.resolve().relative_to(top)
        test_files = own_gate.find_changed(test_files, *sides, folder=inside)
    return own_gate.note(
        comparison,
        base=by.base,
        head=FolderTree(folders.root),
        folder=folders.of_suite(run.suite),
        edits=by.edits,
        test_files=test_files,
    )


def compare(
    head: Run | Path,
    base: Run | Path | None,
    folders: RepositoryFolders,
    *,
    fail_on: FailOn | None,
    notify: Notify,
) -> Comparison:
    """Judge a run, or the file of one, against another one; without any, against the baselines.

    Pairs count where they were launched against that one. Raises InvalidFileError.
    """
    if base is None:
        run, label = read_run(head)
        if isinstance(head, Path) and run.same:  # what this process has measured is no claim
            run = _with_proven_programs(run, folders, notify)
        return with_baselines(run, folders, label=label, fail_on=fail_on, notify=notify)
    (before, base_label), (after, head_label) = read_run(base), read_run(head)
    how = after.interleaved
    if how is not None and not is_same_code(how.source, before.source):
        notify(
            f"{head_label}: its pairs are left alone: they were launched against "
            f"{how.source.commit}, and {base_label} is of {before.source.commit}"
        )
        after = msgspec.structs.replace(after, interleaved=None, paired=())
    machine = after.environment.hard
    return _compare_sides(
        summarise.run(before, label=base_label),
        summarise.run(after, label=head_label),
        rules(folders.workloads, after.suite, machine=machine, notify=notify).of(fail_on),
    )


def _with_proven_programs(run: Run, folders: RepositoryFolders, notify: Notify) -> Run:
    """Believe of a run file only those same programs that the base's records and git prove."""
    how, folder = run.interleaved, folders.of_suite(run.suite)
    try:
        if how is None or run.source.dirty:
            raise IncomparableError("its two sides are no two commits")
        sides = (how.source.commit, run.source.commit)
        base, head = (commit_suite.tree_of(folders.root, commit) for commit in sides)
        file = "" if folder is None else (folder / "suite.toml").as_posix()
        with commit_suite.baselines_of_tree(base, folders, run.suite, records=True) as baselines:
            return claims.check_claims(run, base, head, file, baselines, notify)
    except CiPerfError as error:
        return claims.reject_claims(run, error, notify)


def read_run(source: Run | Path) -> tuple[Run, str]:
    """Return a run and its label, which begins every message about it. Raises InvalidFileError."""
    if isinstance(source, Run):
        return source, f"run {source.id}"
    return files.read(source, Run), str(source)


def rules(
    folder: Path,
    name: str,
    baselines: Path | None = None,
    machine: Machine | None = None,
    *,
    notify: Notify,
) -> Rules:
    """Return how FOLDER/suite.toml has this suite judged, if it knows it.

    What it leaves out is as the `machine` has it, and its calibration below `baselines`. A run that
    is looked at outside its repository is judged by the defaults.
    """
    calibrated = layout.read_calibration(baselines, machine) if baselines and machine else None
    defaults = limits_on(machine, calibrated)
    by_default = Rules(limits=defaults, tiers=Tiers(), fail_on="proven")
    _, where = suite.locate(name, folder)
    if not suite.exists(where):
        notify(f"{where / 'suite.toml'}: not found; the default limits apply")
        return by_default
    try:
        plan = suite.plan(folder, name, root=folder, defaults=defaults)
    except UsageError:
        notify(f"{folder / 'suite.toml'}: no suite {name!r}; the default limits apply")
        return by_default
    return Rules(limits=plan.limits, tiers=plan.tiers, fail_on=plan.fail_on)


def attach_causes(comparison: Comparison, head: Summary) -> Comparison:
    """Let features explain what has moved, where launches were profiled."""
    for attach in map(hooks.load, hooks.find_targets("after_judging") if head.profiled else ()):
        comparison = attach(comparison, head)
    return comparison


def _compare_sides(base: Summary, head: Summary, rules: Rules) -> Comparison:
    orphans = _find_orphans(base, head, rules)
    left = tuple(each for each in base.subjects if each.workload not in orphans)
    comparison = compare_summaries(
        msgspec.structs.replace(base, subjects=left),
        head,
        limits=rules.limits,
        tiers=rules.tiers,
        fail_on=rules.fail_on,
        expected=rules.expected,
    )
    comparison = attach_causes(comparison, head)
    how = comparison.interleaved
    if not orphans or how is None:
        return comparison
    note = (
        f"no workload of the base's own suite has these baselines any more: {', '.join(orphans)}; "
        "`ci-perf accept` removes their files"
    )
    how = msgspec.structs.replace(how, notes=(*how.notes, note))
    return msgspec.structs.replace(comparison, interleaved=how)


def _find_orphans(base: Summary, head: Summary, rules: Rules) -> list[str]:
    """Return what has a baseline, and neither the base's own suite nor the head knows."""
    if not rules.known:
        return []
    in_head = {each.workload for side in (head.subjects, head.failed) for each in side}
    in_head.update(each.workload for each in head.same)
    return sorted({each.workload for each in base.subjects} - {*rules.known} - in_head)

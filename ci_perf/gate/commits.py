"""Commits of a line, as others than the one that is checked out: their suites, and same programs.

What `bisect` and `history --measure` share. A line follows first parents: of a merge it has the
merge, and not the commits that it brought.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci_perf import session, suite
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import commit_suite
from ci_perf.gate.commit_suite import folder_below
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging.policy import limits_on
from ci_perf.model.environment import Machine
from ci_perf.model.program import SameProgram
from ci_perf.model.suite import Limits, Plan, is_selected
from ci_perf.model.task import MachineDescription
from ci_perf.program.tree_sources import GitTree
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.same_program.records import BaseSide, RecordCache, Records
from ci_perf.system import git, git_log
from ci_perf.system.git_log import LineCommit
from ci_perf.worktree import Checkout, merge_base
from ci_perf.worktree.merge_base import Start

_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """Commits along first parents, oldest first, of the repository whose top is ``start.top``."""

    start: Start
    commits: tuple[LineCommit, ...]

    def id(self, position: int) -> str:
        """Return the whole name of a commit."""
        return self.commits[position].commit.id

    def shown(self, position: int) -> str:
        """Return what people call a commit: the beginning of its name, and its first line."""
        commit = self.commits[position].commit
        return f"{commit.id[:_SHOWN]} {commit.title}".strip()


def between(root: Path, first: str, last: str) -> CommitLine:
    """Return the line from the commit `first` to the commit `last`, both included.

    Raises UsageError where `first` does not lie on the line of `last`, and CiPerfError.
    """
    now = datetime.now(UTC)
    start, end = merge_base.exactly(root, first), merge_base.exactly(root, last)
    if start.commit == end.commit:
        raise UsageError(f"{first} and {last}: expected two commits, found the same one")
    _check_ancestor(root, first, last, start.commit, end.commit)
    after = git_log.first_parents(start.top, start.commit, end.commit, now)
    before = after[0].parents[0] if after and after[0].parents else ""
    if before != start.commit:
        raise UsageError(
            f"{first}: expected a commit on the line of first parents of {last}, found a commit of "
            f"a merged branch; name the commit where that branch began: {before[:_SHOWN]}"
        )
    return CommitLine(start=start, commits=(git_log.commit(start.top, start.commit, now), *after))


def _check_ancestor(root: Path, first: str, last: str, older: str, newer: str) -> None:
    if git.run(root, "merge-base", "--is-ancestor", older, newer).code == 0:
        return
    if git.run(root, "merge-base", "--is-ancestor", newer, older).code == 0:
        raise UsageError(
            f"{first} {last}: expected the older commit first, found that {first} comes after "
            f"{last}; name them the other way round"
        )
    is_shallow = git.run(root, "rev-parse", "--is-shallow-repository").out == "true"
    how = (
        "`git fetch --unshallow` brings what this clone lacks" if is_shallow else "name an ancestor"
    )
    raise UsageError(f"{first}: expected an ancestor of {last}, found another commit; {how}")


def options_of(options: MeasureOptions, checkout: Checkout) -> MeasureOptions:
    """Return the options that measure a checkout of another commit as `options` measure the root.

    Its suite is its own where that lies in the repository; baselines are those of the root.
    """
    folder = folder_below(options.root, options.suite, options.workloads)
    workloads = Path(options.root, options.workloads).absolute()
    return dataclasses.replace(
        options,
        root=checkout.root,
        home=checkout.head_top,
        workloads=workloads if folder is None else checkout.root / folder,
        baselines=Path(options.root, options.baselines).absolute(),
    )


@dataclass(slots=True)
class CommitPrograms:
    """Says which commits of a line run the same program, by records. Nothing is checked out."""

    line: CommitLine
    options: MeasureOptions
    notify: Notify
    _trees: dict[int, Tree] = dataclasses.field(default_factory=dict)
    _plans: dict[tuple[int, bool], Plan] = dataclasses.field(default_factory=dict)

    def plan(self, position: int, defaults: Limits | None = None) -> Plan:
        """Plan the suite as a commit has it. Raises InvalidFileError and UsageError."""
        options = self.options
        folder = folder_below(options.root, options.suite, options.workloads)
        if folder is None:
            where = Path(options.root, options.workloads)
            root = Path(options.root)
            return suite.plan(where, options.suite, root=root, defaults=defaults)
        key = position, defaults is None  # one machine has the same ones
        if key not in self._plans:
            self._plans[key] = commit_suite.plan_of_tree(
                self._tree(position),
                folder,
                options.suite,
                called=self.line.id(position)[:_SHOWN],
                defaults=defaults,
            )
        return self._plans[key]

    def defaults(self, machine: Machine) -> Limits:
        """Return the limits that a suite leaves out on a machine."""
        baselines = Path(self.options.root, self.options.baselines)
        return limits_on(machine, layout.read_calibration(baselines, machine))

    def same(
        self, position: int, others: Sequence[int], workload: str, machine: MachineDescription
    ) -> Iterator[int]:
        """Yield which of `others` run the program of the commit at `position`, which is recorded.

        From the commit outwards, to either side up to the first one that may be another program.
        """
        below = [at for at in sorted(others, reverse=True) if at < position]
        above = [at for at in sorted(others) if at > position]
        for side in (below, above):
            for at in side:
                if not self.is_same(position, at, workload, machine):
                    break
                yield at

    def is_same(
        self, recorded: int, position: int, workload: str, machine: MachineDescription
    ) -> bool:
        """Whether two commits run the same program; `False` where nothing proves it."""
        try:
            plans = self._planned(recorded, machine), self._planned(position, machine)
            trees = self._tree(recorded), self._tree(position)
        except (CiPerfError, IncomparableError):
            return False
        of_head = [each for each in plans[1].workloads if is_selected(each.id, (workload,))]
        records = Records(
            plan=plans[1],
            head=trees[1],
            baselines=Path(self.options.root, self.options.baselines),
            cache=RecordCache(plans[1].suite, self.notify),
            base=BaseSide(tree=trees[0], plan=plans[0]),
        )
        answers = [records.find_answer(each, machine) for each in of_head]
        return bool(answers) and all(isinstance(answer, SameProgram) for answer in answers)

    def _planned(self, position: int, machine: MachineDescription) -> Plan:
        """Plan as a session on this machine does: a record holds for its settings alone."""
        baselines = Path(self.options.root, self.options.baselines)
        return session.complete_plan(self.plan(position), baselines, machine)

    def _tree(self, position: int) -> Tree:
        if position not in self._trees:
            prefix = self.line.start.inside.as_posix().removeprefix(".")
            self._trees[position] = GitTree(
                self.line.start.top, self.line.id(position), prefix=prefix
            )
        return self._trees[position]

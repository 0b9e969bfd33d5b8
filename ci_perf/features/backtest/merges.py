"""The last merges of a branch, and each as a commit that has the suite of today."""

import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.system import git, git_log, processes
from ci_perf.system.git_log import LineCommit

_ANSWER_S = 300.0
# What no program runs, where no record of a workload can say it.
_DOCUMENTS = ("*.md", "*.rst", ".github/**", ".gitignore", "LICENSE*")
# The same suite on the same commit is the same commit.
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ci-perf"), ("EMAIL", "ci-perf@localhost"), ("DATE", "@0 +0000"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeLine:
    """The last commits of a branch along first parents, newest first, each with a parent.

    ``repository`` is the first commit of all. ``notes`` are for the reader.
    """

    top: Path
    ref: str
    repository: str
    merges: tuple[LineCommit, ...]
    notes: tuple[str, ...]


def find_merges(root: Path, ref: str, last: int) -> MergeLine:
    """Return the last merges of a branch. Raises UsageError and CiPerfError.

    Each commit of the line is one: what was squashed or pushed came to the branch all the same.
    """
    branch = git_log.branch(root, ref)
    listed = git_log.last_first_parents(branch.top, branch.commit, last, datetime.now(UTC))
    merges = tuple(each for each in listed if each.parents)
    if branch.is_shallow and len(merges) < last:
        raise UsageError(
            f"--last {last}: expected as many merges of {branch.ref}, found {len(merges)} in this "
            "shallow clone; `git fetch --unshallow` brings the others (`fetch-depth: 0` for "
            "actions/checkout)"
        )
    if not merges:
        raise UsageError(
            f"--ref {ref}: expected a commit that has a parent, found none; commit a change first"
        )
    notes = []
    if len(merges) < last:
        notes.append(f"{last} merges were asked for: {branch.ref} has {len(merges)}")
    if alone := sum(len(each.parents) == 1 for each in merges):
        notes.append(f"{alone} of {len(merges)} are commits with one parent: each counts as one")
    if git.source(root).dirty:
        notes.append("uncommitted changes are not measured; those of the suite are used")
    first = git.run(branch.top, "rev-list", "--max-parents=0", "--first-parent", branch.commit).out
    return MergeLine(
        top=branch.top,
        ref=branch.ref,
        repository=first.splitlines()[-1],
        merges=merges,
        notes=tuple(notes),
    )


def with_suite(root: Path, commit: str, folder: Path | None) -> str:
    """Return a commit like `commit` with the files that `folder` below `root` has today.

    It is in no branch, and `git gc` removes it in time. `commit` itself where nothing differs, or
    where the suite lies elsewhere. Raises CiPerfError.
    """
    if folder is None:
        return commit
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as temporary:
        index = {**git.environment(os.environ), "GIT_INDEX_FILE": f"{temporary}/index", **_NOBODY}

        def ask(*arguments: str) -> str:
            command = git.command(root, *arguments)
            done = processes.capture(command, timeout_s=_ANSWER_S, environment=index)
            if done.code:
                raise CiPerfError(f"{commit[:12]}: `git {arguments[0]}` failed", output=done.err)
            return done.out

        ask("read-tree", commit)
        ask("add", "--all", "--", str(folder))
        tree = ask("write-tree")
        if tree == ask("rev-parse", f"{commit}^{{tree}}"):
            return commit
        return ask("commit-tree", tree, "-p", commit, "-m", "ci-perf: the suite of today")


def describe_likeness(top: Path, before: str, after: str) -> str:
    """Say why two commits are the same program by their files alone; "" where nobody can."""
    if git.run(top, "diff", "--quiet", before, after, "--").code == 0:
        return "no file differs"
    others = [f":(top,exclude,glob){where}{name}" for name in _DOCUMENTS for where in ("", "**/")]
    if git.run(top, "diff", "--quiet", before, after, "--", ":/", *others).code == 0:
        return "only documents differ"
    return ""

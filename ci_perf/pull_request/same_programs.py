"""Believe of a fork's run only that sameness which this job can prove by itself.

The records are those that the base branch has committed; the files are those that GitHub has of the
head. Nothing of the head is run, imported or checked out.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from ci_perf.baselines import programs
from ci_perf.errors import CiPerfError
from ci_perf.gate import Notify
from ci_perf.github.client import Client
from ci_perf.github.pulls import OpenPull
from ci_perf.github.trees import GithubTree
from ci_perf.model.program import SameProgram, blob
from ci_perf.model.run import Run
from ci_perf.program import proof
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.pull_request import baseline_changes


def believed(
    client: Client, pull: OpenPull, run: Run, *, baselines: Path, workloads: Path, notify: Notify
) -> Run:
    """Return the run with every claim of a fork marked that is not proven here.

    Whoever may push to the repository is believed, as for the numbers.
    """
    if not (run.same and pull.is_fork):
        return run
    prefix = baseline_changes.in_repository(Path()).as_posix().removeprefix(".")
    try:
        tree: Tree = GithubTree(client, pull.sha, prefix=prefix)
        is_suite_same = _is_suite_same(tree, workloads)
        if not is_suite_same:
            notify("no workload is proven to be the same program: suite.toml differs")
    except IncomparableError as error:
        notify(f"no workload is proven to be the same program: {error}")
        return _marked(run, lambda _claim: False)
    return _marked(
        run, lambda claim: is_suite_same and _is_proven(claim, run, tree, baselines, notify)
    )


def _marked(run: Run, is_proven: Callable[[SameProgram], bool]) -> Run:
    same = tuple(msgspec.structs.replace(claim, is_proven=is_proven(claim)) for claim in run.same)
    return msgspec.structs.replace(run, same=same)


def _is_proven(claim: SameProgram, run: Run, tree: Tree, baselines: Path, notify: Notify) -> bool:
    """Whether a committed record of what the newest session has measured holds for the head."""
    machine = run.environment.hard
    try:
        program = programs.of_newest_session(baselines, machine, run.suite, claim.workload)
    except CiPerfError as error:
        notify(f"the record of {claim.workload} proves nothing: {error}")
        return False
    if program is None:
        notify(f"{claim.workload}: the base branch has no record of its program")
        return False
    difference = proof.first_difference(program, tree)
    if difference is not None:
        notify(f"{claim.workload} is not proven to be the same program: {difference.detail}")
    return difference is None


def _is_suite_same(tree: Tree, workloads: Path) -> bool:
    """Whether the head has the parameters and settings of the base branch.

    Raises IncomparableError.
    """
    file = workloads / "suite.toml"
    if not file.is_file():
        return True  # a suite that comes with ci-perf
    return tree.blob(file.as_posix()) == blob(file.read_bytes())

"""What a run says of workloads that it has not launched, and what two commits prove of it.

Nothing of either is run, imported or checked out.
"""

from pathlib import Path

import msgspec

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError
from ci_perf.judging import comparability
from ci_perf.model.program import SameProgram
from ci_perf.model.run import Run
from ci_perf.program import dependencies
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.same_program import proof


def check_claims(
    run: Run, base: Tree, head: Tree, suite: str, baselines: Path, notify: Notify
) -> Run:
    """Return the run with every claim marked that these files of two commits do not prove.

    By the records in `baselines`, which are those of the base. `suite` is the path of suite.toml;
    "" for a suite that is no commit's. Raises IncomparableError.
    """
    if suite and base.blob(suite) != head.blob(suite):
        raise IncomparableError("suite.toml differs")
    try:
        path = dependencies.first_difference(base, head)
        other_packages = f"{path} differs" if path else ""
    except IncomparableError as error:
        other_packages = str(error)
    same = []
    for claim in run.same:
        try:
            why = _find_gap(claim, run, base, head, other_packages, baselines)
        except CiPerfError as error:
            why = str(error)
        if why:
            notify(f"{claim.workload} is not proven to be the same program: {why}")
        same.append(msgspec.structs.replace(claim, is_proven=not why))
    return msgspec.structs.replace(run, same=tuple(same))


def reject_claims(run: Run, why: CiPerfError, notify: Notify) -> Run:
    """Return the run with all claims marked."""
    notify(f"no workload is proven to be the same program: {why}")
    same = tuple(msgspec.structs.replace(claim, is_proven=False) for claim in run.same)
    return msgspec.structs.replace(run, same=same)


def _find_gap(
    claim: SameProgram, run: Run, base: Tree, head: Tree, other_packages: str, baselines: Path
) -> str:
    """Say why no committed record of what the newest session has measured holds for the head.

    `other_packages` says how the head asks for other packages than the base, if it does. Raises
    CiPerfError.
    """
    machine = run.environment.hard
    program = layout.program_of_newest_session(baselines, machine, run.suite, claim.workload)
    if program is None:
        return "the base has no record of its program"
    if difference := proof.find_difference(program, head, base):
        return difference
    file = layout.path(baselines, machine, run.suite, claim.workload)
    soft = layout.read(file).sessions[-1].soft
    if other_packages and comparability.have_other_packages(soft, run.environment.soft):
        return f"{other_packages}, and the run had other packages than the baseline"
    return ""

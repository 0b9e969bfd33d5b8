"""What a run says of workloads that it has not launched, and what two commits prove of it.

Nothing of either is run, imported or checked out.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError
from ci_perf.gate import Notify
from ci_perf.judging import comparability
from ci_perf.model.program import SameProgram
from ci_perf.model.run import Run
from ci_perf.program import dependencies, proof
from ci_perf.program.trees import IncomparableError, Tree


def proven(run: Run, base: Tree, head: Tree, suite: str, baselines: Path, notify: Notify) -> Run:
    """Return the run with every claim marked that these files of two commits do not prove.

    By the records in `baselines`, which are those of the base. `suite` is the path of suite.toml;
    "" for a suite that is no commit's. Raises IncomparableError.
    """
    if suite and base.blob(suite) != head.blob(suite):
        raise IncomparableError("suite.toml differs")
    asked = _asked_for(base, head)
    return _marked(run, lambda claim: _is_proven(claim, run, head, asked, baselines, notify))


def unproven(run: Run, why: CiPerfError, notify: Notify) -> Run:
    """Return the run with all claims marked."""
    notify(f"no workload is proven to be the same program: {why}")
    return _marked(run, lambda _claim: False)


def _marked(run: Run, is_proven: Callable[[SameProgram], bool]) -> Run:
    same = tuple(msgspec.structs.replace(claim, is_proven=is_proven(claim)) for claim in run.same)
    return msgspec.structs.replace(run, same=same)


def _is_proven(
    claim: SameProgram, run: Run, tree: Tree, asked: str, baselines: Path, notify: Notify
) -> bool:
    """Whether a committed record of what the newest session has measured holds for the head.

    `asked` says how the head asks for other packages than the base, if it does.
    """
    machine = run.environment.hard
    try:
        program = layout.program_of_newest_session(baselines, machine, run.suite, claim.workload)
    except CiPerfError as error:
        notify(f"the record of {claim.workload} proves nothing: {error}")
        return False
    if program is None:
        notify(f"{claim.workload}: the base has no record of its program")
        return False
    difference = proof.first_difference(program, tree)
    detail = difference.detail if difference else ""
    if asked and not detail and _had_other_packages(claim, run, baselines):
        detail = f"{asked}, and the run had other packages than the baseline"
    if detail:
        notify(f"{claim.workload} is not proven to be the same program: {detail}")
    return not detail


def _asked_for(base: Tree, head: Tree) -> str:
    """Say by which file the head may ask for other packages than the base; "" by none."""
    try:
        path = dependencies.first_difference(base, head)
    except IncomparableError as error:
        return str(error)
    return f"{path} differs" if path else ""


def _had_other_packages(claim: SameProgram, run: Run, baselines: Path) -> bool:
    file = layout.path(baselines, run.environment.hard, run.suite, claim.workload)
    return comparability.have_other_packages(
        layout.read(file).sessions[-1].soft, run.environment.soft
    )

"""Say which workloads a change touches, without launching any of them."""

import tempfile
from pathlib import Path

import msgspec

from ci_perf import session, suite
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.gate import Notify, measure, runners
from ci_perf.gate.measure import MeasureOptions
from ci_perf.gate.programs import (
    BaseSide,
    ProgramCache,
    Prover,
    cache_folder,
    has_suite,
    suite_folder,
)
from ci_perf.model.baseline import Calibration
from ci_perf.model.program import SameProgram, Touched, TouchedWorkloads
from ci_perf.model.suite import Plan
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.program.trees import Tree
from ci_perf.system import signals
from ci_perf.worktree import dependencies, merge_base


def touched(options: MeasureOptions, *, notify: Notify) -> TouchedWorkloads:
    """Compare the checkout, as it is, with the merge base with `options.against`.

    By the records that there are: nothing is launched but the process that describes the machine.
    Raises UsageError, InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    plan = measure.plan(options)
    start = merge_base.find(Path(plan.root), options.against or "HEAD")
    with (
        signals.noted() as ending,
        runners.launcher(
            options.runner,
            plan,
            options.workloads,
            None,
            run=session.new_identity(),
            ending=ending,
            notify=notify,
        ) as launcher,
    ):
        device = plan.device if options.device == "auto" else options.device
        machine = session.describe(plan, launcher, device, ending)
        ending.check()
        prefix = start.inside.as_posix().removeprefix(".")
        base = GitTree(start.top, start.commit, prefix=prefix)
        prover = Prover(
            plan=session.completed(plan, options.baselines, machine),
            head=FolderTree(Path(plan.root)),
            baselines=options.baselines,
            cache=ProgramCache(cache_folder(plan.suite), notify),
            base=BaseSide(
                tree=base,
                plan=_plan_of_base(plan, options, base),
                dependencies=dependencies.changed(start),
            ),
            may_record=False,
        )
        answers = [prover.known(workload, machine) for workload in prover.plan.workloads]
    return TouchedWorkloads(
        suite=plan.suite,
        base=start.commit,
        same=tuple(answer for answer in answers if isinstance(answer, SameProgram)),
        touched=tuple(answer for answer in answers if isinstance(answer, Touched)),
    )


def _plan_of_base(plan: Plan, options: MeasureOptions, base: Tree) -> Plan:
    folder = suite_folder(plan, options.workloads)
    if folder is None:
        return plan
    if not has_suite(base, folder):
        return msgspec.structs.replace(plan, workloads=())
    return plan_of_tree(base, folder, plan.suite, called="the base")


def plan_of_tree(
    tree: Tree, folder: Path, name: str, *, called: str, calibration: Calibration | None = None
) -> Plan:
    """Plan a suite as a commit has it below its root, from copies of its files.

    `called` is what messages call the commit. Raises InvalidFileError and UsageError.
    """
    inside = folder.as_posix()
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as copy:
        there = Path(copy, inside)
        there.mkdir(parents=True, exist_ok=True)
        for file in tree.names(inside) or ():
            if file.endswith((".py", ".toml")):
                (there / file).write_bytes(tree.read(f"{inside}/{file}") or b"")
        try:
            return suite.plan(there, name, root=Path(copy), calibration=calibration)
        except (InvalidFileError, UsageError) as error:
            # Nobody can look at the copies.
            raise type(error)(str(error).replace(f"{copy}/", f"{called}: ")) from None

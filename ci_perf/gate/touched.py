"""Say which workloads a change touches, without launching any of them."""

from pathlib import Path

import msgspec

from ci_perf import session
from ci_perf.api_types import Notify
from ci_perf.gate import commit_suite, lab, measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.model.program import SameProgram, Touched, TouchedWorkloads
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.same_program.records import BaseSide, RecordCache, Records
from ci_perf.system import signals
from ci_perf.worktree import merge_base, sources


def find_touched(options: MeasureOptions, *, notify: Notify) -> TouchedWorkloads:
    """Compare the checkout, as it is, with the merge base with `options.against`.

    By the records that there are: nothing is launched but the process that describes the machine.
    Raises UsageError, InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    plan = measure.plan(options)
    start = merge_base.find(Path(plan.root), options.against or "HEAD")
    with signals.note_signals() as interrupts:
        machine = lab.describe_machine(plan, options, interrupts, notify)
    prefix = start.inside.as_posix().removeprefix(".")
    base = GitTree(start.top, start.commit, prefix=prefix)
    folder = commit_suite.folder_below(Path(plan.root), plan.suite, options.workloads)
    before = plan
    if folder is not None:
        own = commit_suite.find_plan(base, folder, plan.suite)
        before = own or msgspec.structs.replace(plan, workloads=())
    records = Records(
        plan=session.complete_plan(plan, options.baselines, machine),
        head=FolderTree(Path(plan.root)),
        baselines=options.baselines,
        cache=RecordCache(plan.suite, notify),
        base=BaseSide(tree=base, plan=before, dependencies=sources.list_dependencies(start)),
    )
    answers = [records.find_answer(each, machine) for each in records.plan.workloads]
    return TouchedWorkloads(
        suite=plan.suite,
        base=start.commit,
        same=tuple(answer for answer in answers if isinstance(answer, SameProgram)),
        touched=tuple(answer for answer in answers if isinstance(answer, Touched)),
    )

"""What a pull request changes about its own gate: suite.toml of two commits, read and never run."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.gate import commit_suite
from ci_perf.judging import gate_changes
from ci_perf.judging.policy import limits_on
from ci_perf.model.comparison import Code, Comparison
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.program.trees import Tree


def note(
    comparison: Comparison,
    *,
    base: Tree,
    head: Tree,
    folder: Path | None,
    edits: Sequence[BaselineEdit],
) -> Comparison:
    """Return the comparison with what the head changes about the suite in `folder`.

    A new workload of which the head adds the first baseline is accepted. Without a `folder`, the
    suite is no commit's. Raises InvalidFileError: a suite.toml that cannot be
    read; and IncomparableError.
    """
    defaults = limits_on(comparison.head.machine)
    plans = [
        commit_suite.find_plan(tree, folder, comparison.suite, defaults=defaults)
        for tree in (base, head)
    ]
    old, new = (
        {
            each.id: tree.blob(f"{folder}/{Path(each.file).name}")
            for each in (plan.workloads if plan else ())
        }
        for tree, plan in zip((base, head), plans, strict=True)
    )
    own = [name for name in old.keys() & new.keys() if old[name] != new[name]]
    changes = gate_changes.find(*plans, rows=comparison.rows, edits=edits, own_files=own)
    machine = comparison.head.machine
    place = layout.folder(Path(), machine, comparison.suite) if machine else Path()
    added = {edit.path for edit in edits if not edit.before}
    rows = tuple(
        msgspec.structs.replace(row, code=Code.ACCEPTED)
        if row.code is Code.NEW and (place / f"{row.workload}.json").as_posix() in added
        else row
        for row in comparison.rows
    )
    return msgspec.structs.replace(comparison, rows=rows, gate_changes=changes)

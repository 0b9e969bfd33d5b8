"""What a pull request changes about its own gate: suite.toml of two commits, read and never run."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ci_perf import suite
from ci_perf.errors import UsageError
from ci_perf.judging import gate_changes
from ci_perf.model.comparison import Row
from ci_perf.model.gate_change import BaselineEdit, GateChange
from ci_perf.model.suite import Plan
from ci_perf.program.trees import Tree


def find(
    base: Tree,
    head: Tree,
    folder: str,
    name: str,
    *,
    rows: Sequence[Row],
    edits: Sequence[BaselineEdit],
) -> tuple[GateChange, ...]:
    """Return what changes between two commits with the suite `name` below `folder`.

    A suite that ships with ci-perf is no commit's. Raises InvalidFileError: a suite.toml that
    cannot be read; and IncomparableError.
    """
    if name.startswith(suite.BUILTIN):
        return gate_changes.find(None, None, rows=rows, edits=edits)
    plans = [_plan(tree, folder, name) for tree in (base, head)]
    old, new = (
        {each.id: tree.blob(f"{folder}/{Path(each.file).name}") for each in plan.workloads}
        if plan
        else {}
        for tree, plan in zip((base, head), plans, strict=True)
    )
    own = [each for each in old.keys() & new.keys() if old[each] != new[each]]
    return gate_changes.find(*plans, rows=rows, edits=edits, own_files=own)


def _plan(tree: Tree, folder: str, name: str) -> Plan | None:
    """Return the suite as a commit has it, by its table of settings and the names of its files."""
    text = tree.read(f"{folder}/suite.toml")
    if text is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as copied, contextlib.suppress(UsageError):
        root = Path(copied)
        (root / "suite.toml").write_bytes(text)
        for file in tree.names(folder) or ():
            if file.endswith(".py"):
                (root / file).touch()
        return suite.plan(root, name, root=root)
    return None

"""What a pull request changes about its own gate: suite.toml of two commits, read and never run."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.judging import gate_changes
from ci_perf.model.comparison import Comparison
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.suite import Plan
from ci_perf.program.trees import Tree


def note(
    comparison: Comparison, *, base: Tree, head: Tree, folder: str, edits: Sequence[BaselineEdit]
) -> Comparison:
    """Return the comparison with what the head changes about the suite in `folder` of the base.

    A suite that ships with ci-perf is no commit's. Raises InvalidFileError: a suite.toml that
    cannot be read; and IncomparableError.
    """
    plans: list[Plan | None] = [None, None]
    blobs: list[dict[str, str | None]] = [{}, {}]
    if not comparison.suite.startswith(suite.BUILTIN):
        plans = [_plan(tree, folder, comparison.suite) for tree in (base, head)]
    for known, tree, plan in zip(blobs, (base, head), plans, strict=True):
        for each in plan.workloads if plan else ():
            known[each.id] = tree.blob(f"{folder}/{Path(each.file).name}")
    old, new = blobs
    own = [name for name in old.keys() & new.keys() if old[name] != new[name]]
    changes = gate_changes.find(*plans, rows=comparison.rows, edits=edits, own_files=own)
    return msgspec.structs.replace(comparison, gate_changes=changes)


def _plan(tree: Tree, folder: str, name: str) -> Plan | None:
    """Return the suite as a commit has it: from suite.toml, and the names of the other files."""
    if (text := tree.read(f"{folder}/suite.toml")) is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as copied:
        root = Path(copied)
        (root / "suite.toml").write_bytes(text)
        for file in tree.names(folder) or ():
            (root / file).touch()
        try:
            return suite.plan(root, name, root=root)
        except UsageError:
            return None
        except InvalidFileError as error:
            raise InvalidFileError(str(error).replace(copied, folder)) from None

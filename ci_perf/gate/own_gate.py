"""What a pull request changes about its own gate: suite.toml of two commits, read and never run."""

import contextlib
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from ci_perf.baselines import layout
from ci_perf.gate import commit_suite
from ci_perf.judging import gate_changes, rules
from ci_perf.judging.policy import limits_on
from ci_perf.model.comparison import Comparison
from ci_perf.model.gate_change import BaselineEdit
from ci_perf.model.run import Run
from ci_perf.model.suite import find_node
from ci_perf.program.trees import IncomparableError, Tree

# No test lies deeper; the path of one that a stranger has invented may be endless.
_MOST_FOLDERS = 50
_UNKNOWN = "unknown"
# What decides how pytest runs the tests below its folder, and nothing else.
_OF_PYTEST = ("conftest.py", "pytest.ini")
# In and below such a folder, a module helps tests; elsewhere it is the code that they measure.
_OF_TESTS = frozenset({"test", "tests", "testing", "bench", "benchmark", "benchmarks"})


def note(
    comparison: Comparison,
    *,
    base: Tree,
    head: Tree,
    folder: Path | None,
    edits: Sequence[BaselineEdit],
    test_files: Collection[str] = (),
) -> Comparison:
    """Return the comparison with what the head changes about the suite in `folder`.

    A new workload of which the head adds the first baseline is accepted. Without a `folder`, the
    suite is no commit's. `test_files` are what tests have of their own, and differ. Raises
    InvalidFileError: a suite.toml that cannot be read; and IncomparableError.
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
    how = comparison.interleaved
    changes = gate_changes.find(
        *plans,
        rows=comparison.rows,
        edits=edits,
        own_files=own,
        test_files=test_files,
        unmeasured=how.unmeasured if how else {},
    )
    machine = comparison.head.machine
    place = layout.folder(Path(), machine, comparison.suite) if machine else Path()
    added = {edit.path for edit in edits if not edit.before}
    rows = rules.accept_new(
        comparison.rows, lambda workload: (place / f"{workload}.json").as_posix() in added
    )
    return msgspec.structs.replace(comparison, rows=rows, gate_changes=changes)


def list_test_files(run: Run) -> set[str]:
    """Return the files of the tests of a run."""
    measured = [find_node(each.launch, each.parameters) for each in run.measured]
    failed = [find_node(each.launch, each.parameters) for each in run.failed]
    return {node.partition("::")[0] for node in (*measured, *failed) if node}


def find_changed(
    test_files: Iterable[str], base: Tree, head: Tree, *, folder: Path = Path()
) -> list[str]:
    """Return which files of tests differ, the modules beside them, and settings of pytest above.

    A file that the base lacks has new tests alone. What is in a submodule always differs. `folder`
    is that of the project below the root of both, from which names are spelled.
    """
    blobs = {file: _find_blob(base, str(folder / file)) for file in test_files}
    known = [file for file, blob in blobs.items() if blob is not None]
    above = {each for file in known for each in PurePosixPath(file).parents[-_MOST_FOLDERS:]}
    of_project = {PurePosixPath(*[".."] * (1 + n)) for n, _ in enumerate(folder.parts) if known}
    settings = {str(each / name) for each in above | of_project for name in _OF_PYTEST}
    of_tests = {each for each in above if not _OF_TESTS.isdisjoint(each.parts)}
    modules = {
        str(each / name)
        for each in of_tests
        for tree in (base, head)
        for name in _list_names(tree, str(folder / each))
        if name.endswith(".py") and not name.startswith("test_") and not name.endswith("_test.py")
    }
    return sorted(
        name for name in {*known, *settings, *modules} if _differs(folder / name, base, head)
    )


def _list_names(tree: Tree, folder: str) -> Sequence[str]:
    with contextlib.suppress(IncomparableError):
        return tree.names(folder) or ()
    return ()


def _differs(file: Path, base: Tree, head: Tree) -> bool:
    path = os.path.normpath(file)
    before = _find_blob(base, path)
    return before == _UNKNOWN or before != _find_blob(head, path)


def _find_blob(tree: Tree, path: str) -> str | None:
    try:
        return tree.blob(path)
    except IncomparableError:
        return _UNKNOWN

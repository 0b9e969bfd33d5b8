"""Suites of the benchmarks that pytest finds: tables of suite.toml, and `check --pytest PATH`."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ci_perf.errors import UsageError
from ci_perf.features.pytest_benchmarks.collected import CollectedTest, collect_tests, name_tests
from ci_perf.features.pytest_benchmarks.words import drop_missing_paths, list_paths
from ci_perf.gate.collecting import Collected, NothingMeasuredError
from ci_perf.gate.outside_suite import open_outside_suite, quote
from ci_perf.launch import Interrupted
from ci_perf.model.base import Scalar
from ci_perf.model.suite import Plan, PlannedWorkload, find_node

SUITE = "builtin:pytest"
_NEEDED = ("pytest", "greenlet")
_WORKLOAD = Path(__file__).parent / "workload.py"
# Without baselines, launches of the head alone decide nothing, nor do canaries: pairs do.
_SUITE = """
[suites.pytest]
canaries = false
protocol = {{ processes = 1 }}
[[suites.pytest.pytest]]
paths = {paths}
"""
_LEFT_OUT = {"skipped": "skipped by pytest", "unused": "without a benchmark"}
# Named in a message; of more, the number is told.
_MOST_NAMED = 5


@contextlib.contextmanager
def open_tests(
    root: Path,
    paths: str | Sequence[str],
    options: Mapping[str, Any],
    *,
    setup: str,
    notify: Callable[[str], object],
) -> Iterator[Mapping[str, Any]]:
    """Provide options of a measurement with the benchmarks of pytest in the place of a suite.

    Raises UsageError: a path is outside of the root.
    """
    del notify
    inside = [_spell_below(root, path) for path in ([paths] if isinstance(paths, str) else paths)]
    text = _SUITE.format(paths=quote(inside))
    with open_outside_suite(SUITE, text, options, root=root, setup=setup) as prepared:
        yield prepared


def plan_tests(
    tests: PlannedWorkload,
    plan: Plan,
    root: Path,
    *,
    runs: bool,
    notify: Callable[[str], object],
    interrupted: Interrupted,
    is_parallel: bool,
) -> Collected:
    """Return a workload for each benchmark that `tests` collects in the checkout at `root`.

    Each is run up to its benchmark before where it `runs`; `notify` is then told which are left
    out. Raises NothingMeasuredError, and UsageError: a library is missing, or a path is outside of
    the root.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"pytest: expected {' and '.join(_NEEDED)}, found no {missing[0]}; next: pip install "
            "'ci-perf[pytest]'"
        )
    words = tests.collects if runs else drop_missing_paths(tests.collects, root)
    paths = [_spell_below(root, path) for path in list_paths(words)]
    how: dict[str, Any] = {"interrupted": interrupted, "runs": runs, "is_parallel": is_parallel}
    collected = collect_tests(root, plan.python_path, words, **how)
    benchmarks = [test for test in collected if test.outcome not in _LEFT_OUT]
    if not benchmarks:
        raise NothingMeasuredError(
            f"pytest: expected a test with the fixture or the marker `benchmark` in "
            f"{' '.join(words)}, found {'; '.join(_list_left_out(collected))}"
        )
    for line in _list_left_out(collected) if runs else ():
        notify(f"note: {line}")
    names = name_tests([test.node for test in benchmarks], paths)
    left = (test for test in collected if runs and test.outcome in _LEFT_OUT)
    return Collected(
        workloads=tuple(_plan_test(tests, test, names[test.node]) for test in benchmarks),
        left_out={test.node: test.reason or _LEFT_OUT[test.outcome] for test in left},
    )


def find_failure(
    workload: PlannedWorkload, root: Path, python_path: Sequence[str], interrupted: Interrupted
) -> str:
    """Say why a test fails as it is written, in a process of its own; "" if it does not.

    What its launches call a thousand times may fail for that alone.
    """
    node = find_node(workload.launch, workload.parameters)
    if not node:
        return ""
    try:
        tests = collect_tests(root, python_path, [node], interrupted=interrupted, whole=True)
    except UsageError as error:
        return f"{node}: {error}"
    reasons = [test.reason for test in tests if test.outcome == "failed"]
    return f"{node}: {reasons[0]}" if reasons else ""


def _plan_test(tests: PlannedWorkload, test: CollectedTest, name: str) -> PlannedWorkload:
    fails: dict[str, Scalar] = {"fails": test.reason} if test.outcome == "failed" else {}
    return msgspec.structs.replace(
        tests,
        id=name,
        file=str(_WORKLOAD),
        description="a test of pytest",
        parameters={"node": test.node, **fails},
        has_threads=test.has_threads,
    )


def _spell_below(root: Path, path: str) -> str:
    """Return a path, or a node id, relative to the root. Raises UsageError."""
    file, separator, node = path.partition("::")
    whole = (root / file).resolve()
    if not whole.exists() or not whole.is_relative_to(root.resolve()):
        raise UsageError(f"pytest: expected a path below {root}, found {path!r}")
    return f"{whole.relative_to(root.resolve()).as_posix()}{separator}{node}"


def _list_left_out(tests: Sequence[CollectedTest]) -> Iterator[str]:
    for outcome, what in _LEFT_OUT.items():
        nodes = [
            f"{test.node} ({test.reason})" if test.reason else test.node
            for test in tests
            if test.outcome == outcome
        ]
        if nodes:
            more = [f"{len(nodes) - _MOST_NAMED} more"] * (len(nodes) > _MOST_NAMED)
            shown = ", ".join([*nodes[:_MOST_NAMED], *more])
            yield f"{len(nodes)} {what}: {shown}"

"""A suite of the benchmarks that pytest finds: for `ci-perf check --against main --pytest PATH`."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf.errors import UsageError
from ci_perf.features.pytest_benchmarks.collected import CollectedTest, collect_tests, name_tests
from ci_perf.gate.outside_suite import find_python_path, open_outside_suite, quote

SUITE = "builtin:pytest"
_NEEDED = ("pytest", "greenlet")
_WORKLOAD = '''"""Run a benchmark of pytest."""
from ci_perf.features.pytest_benchmarks.workload import build
'''
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

    Each test below `paths` is run once before, in the head; `notify` is told which are left out.
    Raises UsageError: a library is
    missing, a path is outside of the root, or there is no benchmark.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"--pytest: expected {' and '.join(_NEEDED)}, found no {missing[0]}; next: pip install "
            "'ci-perf[pytest]'"
        )
    inside = [_spell_below(root, path) for path in ([paths] if isinstance(paths, str) else paths)]
    tests = collect_tests(root, find_python_path(root), inside)
    benchmarks = [test for test in tests if test.outcome not in _LEFT_OUT]
    if not benchmarks:
        raise UsageError(
            f"--pytest: expected a test with the fixture or the marker `benchmark` in "
            f"{', '.join(inside)}, found {'; '.join(_list_left_out(tests))}"
        )
    for line in _list_left_out(tests):
        notify(f"note: {line}")
    text = _spell_suite(benchmarks, name_tests([t.node for t in benchmarks], inside))
    files = {"test.py": _WORKLOAD}
    with open_outside_suite(SUITE, text, options, root=root, setup=setup, files=files) as prepared:
        yield prepared


def _spell_below(root: Path, path: str) -> str:
    """Return a path, or a node id, relative to the root. Raises UsageError."""
    file, separator, node = path.partition("::")
    whole = (root / file).resolve()
    if not whole.exists() or not whole.is_relative_to(root.resolve()):
        raise UsageError(f"--pytest: expected a path below {root}, found {path!r}")
    return f"{whole.relative_to(root.resolve()).as_posix()}{separator}{node}"


def _spell_suite(tests: Sequence[CollectedTest], names: Mapping[str, str]) -> str:
    """Return the suite of these tests as TOML."""
    # Without baselines, launches of the head alone decide nothing: pairs do.
    lines = ["[suites.pytest]", "[suites.pytest.protocol]", "processes = 1"]
    for test in tests:
        fails = f", fails = {quote(test.reason)}" if test.outcome == "failed" else ""
        lines += [
            "[[suites.pytest.workloads]]",
            'workload = "test"',
            f"name = {quote(names[test.node])}",
            f"parameters = {{ node = {quote(test.node)}{fails} }}",
        ]
    return "\n".join(lines) + "\n"


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

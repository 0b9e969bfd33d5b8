"""Run each test of a checkout up to its benchmark, and tell how it went; a process of its own.

Run as `python -P -m ci_perf.features.pytest_benchmarks.collector FILE whole|"" PATH …`, in the root
of the checkout. It writes a line of JSON as soon as something is known of a test: what comes after
a crash is known by its name alone. What a test measures may compile for a minute: its launches run
it, and the rest of the test. One that may still be skipped, or is expected to fail, is run to its
end.
"""

import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import msgspec
import pytest

from ci_perf.features.pytest_benchmarks.collected import CollectedTest
from ci_perf.features.pytest_benchmarks.plugin import (
    MeasuredCall,
    is_benchmark,
    run_pytest,
    shorten_error,
)

# A call in a function, whose outcome only a whole run tells.
_MAY_SKIP = re.compile(r"^[ \t].*\b(?:skip|importorskip|xfail)\(", re.MULTILINE)


class _ReachedError(BaseException):
    """A test has come to what it measures; no `except Exception` keeps it."""


class Collector:
    """A plugin of pytest that tells of each test, by ``tell``, what it is and how it went."""

    def __init__(self, tell: Callable[[CollectedTest], object], *, whole: bool) -> None:
        self._tell, self._whole = tell, whole
        self._has_measured = self._may_stop = self._is_stopped = self._has_threads = False

    def measure(self, measured: MeasuredCall) -> object:
        """End a test at what it measures, or run that as it is written."""
        self._has_measured = True
        if self._may_stop:
            self._is_stopped = True
            raise _ReachedError
        return measured.as_written()

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Generator[None, object, object]:
        """Pass a test that has come to what it measures."""
        try:
            return (yield)
        except _ReachedError:
            return True

    @pytest.hookimpl(trylast=True)  # others may have left some out
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run only what may be a benchmark."""
        self._has_threads = len([*Path("/proc/self/task").iterdir()]) > 1
        for item in items:
            outcome = "skipped" if _is_skipped(item) else "found"
            outcome = outcome if is_benchmark(item) else "unused"
            self._tell_of(item.nodeid, outcome)
        items[:] = filter(is_benchmark, items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be collected, or is skipped."""
        if report.outcome != "passed":
            self._tell_of(report.nodeid, report.outcome, report.longrepr)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Forget the test before."""
        self._has_measured = self._is_stopped = False
        self._may_stop = not self._whole and _has_known_outcome(item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a phase of a test went; the last one that is told counts."""
        if hasattr(report, "wasxfail"):
            self._tell_of(report.nodeid, "skipped", f"xfail: {report.wasxfail}")
        elif self._is_stopped and report.outcome == "failed":  # for want of the rest
            self._tell_of(report.nodeid, "passed")
        elif report.outcome != "passed":
            self._tell_of(report.nodeid, report.outcome, report.longrepr)
        elif report.when == "call":
            self._tell_of(report.nodeid, "passed" if self._has_measured else "unused")

    def _tell_of(self, node: str, outcome: str, shown: object = "") -> None:
        reason, has_threads = shorten_error(shown), self._has_threads
        test = CollectedTest(node=node, outcome=outcome, reason=reason, has_threads=has_threads)
        self._tell(test)


def _is_skipped(item: pytest.Item) -> bool:
    """Whether a marker leaves a test out: skip, or another one whose condition is known to hold."""
    marks = [*item.iter_markers("skipif"), *item.iter_markers("xfail")]
    conditions = [mark.args or (mark.kwargs.get("condition", True),) for mark in marks]
    holds = any(each and not isinstance(each, str) for every in conditions for each in every)
    return holds or item.get_closest_marker("skip") is not None


def _has_known_outcome(item: pytest.Item) -> bool:
    """Whether a test that comes to its benchmark passes, or its launches say why it does not."""
    is_whole = "benchmark" not in getattr(item, "fixturenames", ())
    if is_whole or item.get_closest_marker("xfail") is not None:
        return False
    try:
        return not _MAY_SKIP.search(item.path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def main(file: Path, paths: list[str], *, whole: bool) -> int:
    """Collect and run what `paths` name; return the exit code of pytest."""
    with file.open("wb", buffering=0) as written:

        def tell(test: CollectedTest) -> None:
            written.write(msgspec.json.encode(test) + b"\n")

        collector = Collector(tell, whole=whole)
        return run_pytest(paths, str(file.parent / "cache"), collector.measure, collector)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[3:], whole=sys.argv[2] == "whole"))

"""One benchmark of pytest.

pytest runs in a greenlet of this thread: it stands still where the test measures something, while
the launch times that, and goes on with the result in the end. So fixtures live, and what belongs to
a thread (torch's grad mode, a connection to sqlite) holds.
"""

import contextvars
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import greenlet
import pytest

from ci_perf.features.pytest_benchmarks.plugin import MeasuredCall, run_pytest, shorten_error
from ci_perf.features.pytest_benchmarks.words import drop_missing_paths
from ci_perf.model.metrics import find_own
from ci_perf.workload import Context, Workload

# Tests that this process, or the one from which it was forked, has collected.
_PREPARED: "list[_RunningTest]" = []


class TestFailedError(Exception):
    """A test fails, or comes to its end without measuring anything."""

    __test__ = False


def prepare(words: Sequence[str]) -> None:
    """Collect the tests of all launches that are forked, or of one. Raises TestFailedError."""
    _PREPARED.append(_RunningTest(drop_missing_paths(words, Path())))


def build(context: Context) -> Workload:
    """Run a test up to what it measures. Raises TestFailedError.

    `context.parameters` has the node id of the test (``node``), relative to the current folder, and
    why it ``fails`` where it did when it was run once.
    """
    node = str(context.parameters["node"])
    fails = str(context.parameters.get("fails", ""))
    if fails and "::" not in node:  # the file cannot be imported, so it has no test
        raise TestFailedError(f"{node}: {fails}")
    running = _PREPARED[0] if _PREPARED else _RunningTest([node])
    measured = running.begin(node)
    if fails:
        running.end(measured.call())
        raise TestFailedError(f"{node}: {fails}")
    call, run = measured.call, running.context.run
    latest: list[object] = [None]

    def step() -> None:
        latest[0] = run(call)

    def finish() -> None:
        if (code := running.end(latest[0])) != pytest.ExitCode.OK:
            why = running.failure or f"expected pytest's exit code 0, found {code}"
            raise TestFailedError(f"{node}: {why}")

    return Workload(
        step=step,
        item_unit="call",
        output=lambda: _find_tensor(latest[0]),
        teardown=finish,
        reported_s=measured.reported_s,
        metrics=lambda: {
            metric.name: measured.extra_info[metric.name]
            for metric in find_own(measured.extra_info)
        },
    )


def _find_tensor(result: object) -> object | None:
    """Return a result that is a tensor, `None` for any other."""
    torch = sys.modules.get("torch")
    return result if torch is not None and isinstance(result, torch.Tensor) else None


class _RunningTest:
    """Tests that pytest has collected, in a greenlet of its own, and the one of them that it runs.

    ``context`` has the context variables of the test, ``failure`` why it failed.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Collect. Raises TestFailedError: pytest ends before."""
        self._here = greenlet.getcurrent()
        self._has_measured = False
        self.failure = ""
        self._cache = tempfile.TemporaryDirectory(prefix="ci-perf-pytest-")
        self._owner = os.getpid()
        self._pytest = greenlet.greenlet(run_pytest)
        self.context = contextvars.copy_context()
        held = self._pytest.switch(paths, self._cache.name, self._measure, self)
        if not isinstance(held, pytest.Session):
            self._clean()
            is_missing = held == pytest.ExitCode.USAGE_ERROR
            code = "no such test" if is_missing else f"pytest's exit code {int(held)}"
            raise TestFailedError(f"{' '.join(paths)}: expected a test, found {code}")
        self._session = held

    def begin(self, node: str) -> MeasuredCall:
        """Run a test until it measures something. Raises TestFailedError: it does not."""
        held = self._pytest.switch(node)
        if not isinstance(held, MeasuredCall):
            self._clean()
            code = f"pytest's exit code {int(held)}" if self._session.items else "no such test"
            raise TestFailedError(
                f"{node}: expected a test that measures something, found {code}; its output says "
                "why"
            )
        return held

    def end(self, result: object) -> int:
        """Let it go on with the result of what it measured; return pytest's exit code."""
        code = int(self._pytest.switch(result))
        self._clean()
        return code

    def _clean(self) -> None:
        if os.getpid() == self._owner:  # this process was not forked
            self._cache.cleanup()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Wait for the name of a test, and run only that; one that passes ends here."""
        node = self._here.switch(session)
        session.items[:] = [item for item in session.items if item.nodeid == node]
        for item in session.items:
            session.testsfailed = 0  # other files that cannot be collected
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if not session.testsfailed and self._has_measured:
                self._here.switch(pytest.ExitCode.OK)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first error of the test."""
        if report.failed and not self.failure:
            self.failure = shorten_error(report.longrepr)

    def _measure(self, measured: MeasuredCall) -> object:
        self._has_measured = True
        self.context = contextvars.copy_context()
        return self._here.switch(measured)

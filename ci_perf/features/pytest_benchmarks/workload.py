"""One benchmark of pytest.

pytest runs in a greenlet of this thread: it stands still where the test measures something, while
the launch times that, and goes on with the result in the end. So fixtures live, and what belongs to
a thread (torch's grad mode, a connection to sqlite) holds.
"""

import contextvars
import sys

import greenlet
import pytest

from ci_perf.features.pytest_benchmarks.plugin import MeasuredCall, run_pytest
from ci_perf.model.metrics import find_own
from ci_perf.workload import Context, Workload


class TestFailedError(Exception):
    """A test fails, or comes to its end without measuring anything."""

    __test__ = False


def build(context: Context) -> Workload:
    """Run a test up to what it measures. Raises TestFailedError.

    `context.parameters` has the node id of the test (``node``), relative to the current folder, and
    why it ``fails`` where it did when it was run once.
    """
    node = str(context.parameters["node"])
    running = _RunningTest(node)
    measured = running.begin()
    if fails := str(context.parameters.get("fails", "")):
        running.end(measured.call())
        raise TestFailedError(f"{node}: {fails}")
    call, run = measured.call, running.context.run
    latest: list[object] = [None]

    def step() -> None:
        latest[0] = run(call)

    def finish() -> None:
        if (code := running.end(latest[0])) != pytest.ExitCode.OK:
            raise TestFailedError(f"{node}: expected pytest's exit code 0, found {code}")

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
    """A test that pytest runs in a greenlet; ``context`` has its context variables."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._here = greenlet.getcurrent()
        self._pytest = greenlet.greenlet(self._run)
        self.context = contextvars.copy_context()

    def begin(self) -> MeasuredCall:
        """Run it until it measures something. Raises TestFailedError: it does not."""
        held = self._pytest.switch()
        if held == pytest.ExitCode.USAGE_ERROR:
            raise TestFailedError(f"{self._node}: there is no such test")
        if not isinstance(held, MeasuredCall):
            raise TestFailedError(
                f"{self._node}: expected a test that measures something, found pytest's exit code "
                f"{int(held)}; its output says why"
            )
        return held

    def end(self, result: object) -> int:
        """Let it go on with the result of what it measured; return pytest's exit code."""
        return int(self._pytest.switch(result))

    def _measure(self, measured: MeasuredCall) -> object:
        self.context = contextvars.copy_context()
        return self._here.switch(measured)

    def _run(self) -> int:
        return run_pytest([self._node], self._measure)

"""What a person sees while a run goes on: one moving line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ci_perf.cli import output
from ci_perf.model.run import Failed
from ci_perf.session import Listener


@contextmanager
def listener() -> Iterator[Listener]:
    """Provide the listener that suits stderr."""
    if sys.stderr.isatty():
        with _on_terminal() as found:
            yield found
    else:
        yield PlainListener()


class PlainListener:
    """One line per process, for logs."""

    def __init__(self) -> None:
        self._total = 0
        self._done = 0

    def waiting(self, device: str, owner: str) -> None:
        """See Listener."""
        output.say(f"waiting for {device}: held by {owner}")

    def planned(self, workloads: int, processes: int) -> None:
        """See Listener."""
        self._total = processes
        output.say(f"measuring {workloads} workloads in {processes} processes")

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener: a log needs only what has happened."""

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        self._done += 1
        output.say(f"[{self._done}/{self._total}] {workload}: {seconds:.1f} s")

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        self._done += 1 + skipped
        output.say(f"[{self._done}/{self._total}] {describe(failed)}")


class TerminalListener:
    """A bar with the time left, by the speed so far."""

    def __init__(self, progress: Any) -> None:  # noqa: ANN401  rich is imported late
        self._progress = progress
        self._task = progress.add_task("starting", total=None)

    def waiting(self, device: str, owner: str) -> None:
        """See Listener."""
        self._progress.update(self._task, description=f"waiting for {device}: {owner}")

    def planned(self, workloads: int, processes: int) -> None:
        """See Listener."""
        del workloads
        self._progress.update(self._task, total=processes)

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener."""
        self._progress.update(self._task, description=f"{workload} {process}/{of}")

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        del workload, seconds
        self._progress.advance(self._task)

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        self._progress.advance(self._task, 1 + skipped)
        self._progress.console.print(describe(failed), markup=False, highlight=False)


def describe(failed: Failed) -> str:
    """Say what failed, with its last lines."""
    head = f"{failed.workload}: failed in phase {failed.phase.value}"
    return "\n".join([head, *output.fenced(failed.reason), *output.fenced(failed.output)])


@contextmanager
def _on_terminal() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield TerminalListener(progress)

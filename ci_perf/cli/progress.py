"""What a person sees while a run goes on: one moving line on a terminal, few lines in a log."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from ci_perf.cli import output, pace
from ci_perf.cli.pace import Pace
from ci_perf.model.run import Failed
from ci_perf.session import Listener

# A log that says nothing for longer looks like a job that hangs.
_SILENCE_S = 60.0

# More names than this nobody reads.
_NAMED = 5

# Drawing takes time from what is measured.
_REDRAWN_PER_S = 2


@contextmanager
def listener() -> Iterator[Listener]:
    """Provide the listener that suits stderr."""
    if sys.stderr.isatty():
        with _on_terminal() as found:
            yield found
    elif os.environ.get("GITHUB_ACTIONS") == "true":
        grouped = GroupedListener()
        try:
            yield grouped
        finally:
            grouped.close()
    else:
        yield PlainListener()


class PlainListener:
    """A line per workload and round, for logs; and one when there was none for a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pace = Pace(clock)
        self._last_said = self._round_began = clock()
        self._due: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._workloads = 0
        self._pair = ("", 0, 0)

    def waiting(self, device: str, owner: str) -> None:
        """See Listener."""
        self._say(f"waiting for {device}: held by {owner}")

    def planned(self, processes: Mapping[str, int], canaries: int) -> None:
        """See Listener."""
        self._due = dict(processes)
        self._workloads = len(processes)
        self._round_began = self._clock()
        _expect(self._pace, processes, canaries)
        self._announce(_announced(processes))

    def canary_started(self) -> None:
        """See Listener."""
        self._pace.begin(pace.CANARIES)

    def canary_finished(self, left: int) -> None:
        """See Listener."""
        self._pace.end()
        self._pace.expect(pace.CANARIES, left)

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener: a log needs only what has happened."""
        del process, of
        self._pace.begin(workload)

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        self._pace.end()
        self._took.setdefault(workload, []).append(seconds)
        self._due[workload] -= 1
        if not self._due[workload]:
            del self._due[workload]
            took = self._took[workload]
            count = _number(len(took), "process", "processes")
            self._say_done(f"{workload}: {count} in {pace.in_words(sum(took))}")
        elif self._clock() - self._last_said >= _SILENCE_S:
            self._say_done(f"{workload}: process {len(self._took[workload])} done")

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        del skipped
        self._pace.give_up()
        self._due.pop(failed.workload, None)
        self._say_failed(failed)

    def round_finished(self, number: int, of: int) -> None:
        """See Listener: after the last one comes the end of the run, which has its own words."""
        took, self._round_began = self._clock() - self._round_began, self._clock()
        if number < of:
            self._say(f"round {number} of {of} done in {pace.in_words(took)}{_left(self._pace)}")

    def interleaving(self, workloads: Sequence[str], budget_s: float) -> None:
        """See Listener."""
        self._say(_interleaving(workloads, budget_s))

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """See Listener: a log needs only what has happened."""
        self._pair = (workload, number, left)

    def pair_finished(self, workload: str, spent_s: float) -> None:
        """See Listener."""
        del workload
        if self._clock() - self._last_said >= _SILENCE_S:
            name, number, left = self._pair
            self._say(
                f"{name}: pair {number} done, {_number(left, 'suspect', 'suspects')} left, "
                f"{pace.in_words(spent_s)} of the budget spent"
            )

    def base_failed(self, workload: str, reason: str) -> None:
        """See Listener."""
        self._say(_base_failed(workload, reason))

    def _say_done(self, text: str) -> None:
        self._say(f"{self._counted()} {text}{_left(self._pace)}")

    def _say(self, text: str) -> None:
        self._last_said = self._clock()
        output.say(text)

    def _announce(self, text: str) -> None:
        self._say(text)

    def _counted(self) -> str:
        return f"[{self._workloads - len(self._due)}/{self._workloads}]"

    def _say_failed(self, failed: Failed) -> None:
        self._say(f"{self._counted()} {describe(failed)}")


class GroupedListener(PlainListener):
    """The same for GitHub, which folds a group once it is closed: what failed is told below it.

    The runner reads commands from stderr as from stdout, which holds the result.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._is_open = False
        self._failures: list[Failed] = []

    def close(self) -> None:
        """Close the group, however measuring ended, and tell what failed."""
        if self._is_open:
            click.echo("::endgroup::", err=True)
        self._is_open = False
        for failed in self._failures:
            output.say(describe(failed))
        self._failures = []

    def _announce(self, text: str) -> None:
        click.echo(f"::group::{text}", err=True)
        self._is_open = True

    def _say_failed(self, failed: Failed) -> None:
        self._failures.append(failed)
        self._say(f"{self._counted()} {_headline(failed)}")


class TerminalListener:
    """A bar, what runs now, and the time left by the pace so far."""

    def __init__(self, progress: Any, known: Pace) -> None:  # noqa: ANN401  rich is imported late
        self._progress = progress
        self._pace = known
        self._task = progress.add_task("starting", total=None)

    def waiting(self, device: str, owner: str) -> None:
        """See Listener."""
        self._progress.update(self._task, description=f"waiting for {device}: {owner}")

    def planned(self, processes: Mapping[str, int], canaries: int) -> None:
        """See Listener."""
        _expect(self._pace, processes, canaries)
        self._progress.update(self._task, total=sum(processes.values()))

    def canary_started(self) -> None:
        """See Listener."""
        self._pace.begin(pace.CANARIES)
        self._progress.update(self._task, description="canaries")

    def canary_finished(self, left: int) -> None:
        """See Listener."""
        self._pace.end()
        self._pace.expect(pace.CANARIES, left)

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener."""
        self._pace.begin(workload)
        # At once: a short process would be gone before the next redrawing.
        self._progress.update(self._task, description=f"{workload} {process}/{of}", refresh=True)

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        del workload, seconds
        self._pace.end()
        self._progress.advance(self._task)

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        self._pace.give_up()
        self._progress.advance(self._task, 1 + skipped)
        self._progress.console.print(describe(failed), markup=False, highlight=False)

    def round_finished(self, number: int, of: int) -> None:
        """See Listener: the bar says as much."""

    def interleaving(self, workloads: Sequence[str], budget_s: float) -> None:
        """See Listener: from here on the bar is the budget."""
        self._progress.console.print(_interleaving(workloads, budget_s), markup=False)
        self._progress.update(self._task, total=math.ceil(budget_s), completed=0)

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """See Listener."""
        suspects = _number(left, "suspect", "suspects")
        text = f"{workload} pair {number}, {suspects} left"
        self._progress.update(self._task, description=text, refresh=True)

    def pair_finished(self, workload: str, spent_s: float) -> None:
        """See Listener."""
        del workload
        self._progress.update(self._task, completed=math.floor(spent_s))

    def base_failed(self, workload: str, reason: str) -> None:
        """See Listener."""
        text = _base_failed(workload, reason)
        self._progress.console.print(text, markup=False, highlight=False)


def describe(failed: Failed) -> str:
    """Say what failed, with its last lines."""
    lines = [*output.fenced(failed.reason), *output.fenced(failed.output)]
    return "\n".join([_headline(failed), *lines])


def _interleaving(workloads: Sequence[str], budget_s: float) -> str:
    named = ", ".join(workloads[:_NAMED])
    more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
    return (
        f"launching base and head in turns, for at most {pace.in_words(budget_s)}: the baselines "
        f"do not clear {named}{more}"
    )


def _base_failed(workload: str, reason: str) -> str:
    return output.harmless(f"{workload}: the base cannot be launched: {reason}")


def _headline(failed: Failed) -> str:
    return f"{failed.workload}: failed in phase {failed.phase.value}"


def _announced(processes: Mapping[str, int]) -> str:
    workloads = _number(len(processes), "workload", "workloads")
    return f"measuring {workloads} in {_number(sum(processes.values()), 'process', 'processes')}"


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _expect(known: Pace, processes: Mapping[str, int], canaries: int) -> None:
    known.expect(pace.CANARIES, canaries)
    for workload, count in processes.items():
        known.expect(workload, count)


def _left(known: Pace) -> str:
    seconds = known.left_s()
    return f"; about {pace.in_words(seconds)} left" if seconds else ""


@contextmanager
def _on_terminal() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task
    from rich.progress import TextColumn as Words
    from rich.text import Text

    known = Pace()

    class Left(ProgressColumn):
        """The time left, also while nothing ends."""

        def render(self, task: Task) -> Text:
            del task
            return Text(_left(known).removeprefix("; "))

    columns = (Words("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), Left())
    with Progress(
        *columns,
        console=Console(stderr=True),
        refresh_per_second=_REDRAWN_PER_S,
        transient=True,
    ) as progress:
        yield TerminalListener(progress, known)

"""What a terminal shows while a run goes on: what runs, how much is done, and the time left."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from ci_perf.model.comparison import Change
from ci_perf.model.run import Failed
from ci_perf.progress import sentences
from ci_perf.progress.sentences import SpeakingListener, TimeEstimate
from ci_perf.report.units import duration, render_count
from ci_perf.session import Forecast, Listener

# Drawing takes time from what is measured.
_REDRAWN_PER_S = 2
_BAR_WIDTH = 30


class Meter:
    """What the bar counts: processes of the rounds, then seconds of the budget for pairs.

    It is read at each redrawing, so that the time moves while nothing ends.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.eta = TimeEstimate(clock)
        self._clock = clock
        self._processes = self._done = 0
        self._budget_s: float | None = None
        self._start, self._end_s = 0.0, math.inf
        self._waiting = ""

    def wait(self, waited_s: float, most_s: float) -> None:
        """Show a waiting time, until anything else is to be shown."""
        self._waiting = sentences.render_waited(waited_s, most_s)

    def plan(self, processes: int) -> None:
        """Count this many processes."""
        self._processes, self._waiting = processes, ""

    def advance(self, processes: int = 1) -> None:
        """Note that so many of them have ended, or never will begin."""
        self._done += processes

    def begin_budget(self, budget_s: float) -> None:
        """Count seconds from now on."""
        self._budget_s, self._start = budget_s, self._clock()

    def limit(self, most_s: float) -> None:
        """Note that the pairs that there can still be take at most so long."""
        self._end_s = self._spent_s() + most_s

    def share(self) -> float:
        """Return how much of it is done, from 0 to 1."""
        done, whole = self._done, self._processes
        if self._budget_s is None:
            return done / whole if whole else 0.0
        return min(1.0, self._spent_s() / self._budget_s) if self._budget_s else 1.0

    def counted(self) -> str:
        """Say what is counted, with its unit."""
        if self._budget_s is not None:
            return sentences.spent_text(min(self._spent_s(), self._budget_s), self._budget_s)
        if self._waiting:
            return self._waiting
        return f"{self._done}/{self._processes} processes" if self._processes else ""

    def left(self) -> str:
        """Say how long it will take; empty while nobody can know."""
        if self._budget_s is None:
            return sentences.time_left_text(self.eta)
        left_s = min(self._budget_s, self._end_s) - self._spent_s()
        return f"at most {duration(left_s)} left" if left_s > 0 else "the last pair ends"

    def _spent_s(self) -> float:
        return self._clock() - self._start


class TerminalListener(SpeakingListener):
    """Shows what runs now; how much is done, and the time left, are the meter's."""

    def __init__(self, bar: Any, meter: Meter) -> None:  # noqa: ANN401  rich is imported late
        self._bar = bar
        self._meter = meter
        self._task = bar.add_task("starting", total=1)
        self._awaited = self._so_far = ""
        self._pair = 0

    def began(self) -> None:
        """See Listener: draw from here on."""
        self._bar.start()

    def ended(self) -> None:
        """See Listener: leave the terminal as it was."""
        self._bar.stop()

    def planned(self, processes: Mapping[str, int], pairs_s: float = 0.0) -> None:
        """See Listener."""
        if pairs_s:
            self._say(f"pairs with the base may follow, for at most {duration(pairs_s)}")
        self._meter.eta.expect(processes)
        self._meter.plan(sum(processes.values()))

    def canary_started(self) -> None:
        """See Listener."""
        self._show("canaries")

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener."""
        self._meter.eta.begin(workload)
        self._show(f"{workload} {process}/{of}")

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        del workload, seconds
        self._meter.eta.end()
        self._meter.advance()

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        self._meter.eta.give_up()
        self._meter.advance(1 + skipped)
        self._say(sentences.describe(failed))

    def interleaving(self, workloads: Sequence[str], budget_s: float, forecast: Forecast) -> None:
        """See Listener: from here on the bar is the budget."""
        super().interleaving(workloads, budget_s, forecast)
        self._meter.begin_budget(budget_s)

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """See Listener."""
        self._pair = number
        self._show(
            f"{workload} pair {number}, {render_count(left, 'workload')} undecided{self._so_far}"
        )

    def pair_finished(self, workload: str, row: Change | None, most_s: float) -> None:
        """See Listener: the numbers stay beside the next pair."""
        self._meter.limit(most_s)
        self._so_far = f"; {workload} {sentences.describe_pair(self._pair, row, 0.0)}"

    def _wait(self, what: str, text: str, waited_s: float, most_s: float) -> None:
        if self._awaited != what:
            self._awaited = what
            self._say(text)
            self._show(what)
        self._meter.wait(waited_s, most_s)

    def _show(self, text: str) -> None:
        # At once: a short process would be gone before the next redrawing.
        self._bar.update(self._task, description=text, refresh=True)

    def _say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


def listener(stream: TextIO) -> Listener:
    """Return a listener that draws on a terminal while a session lasts."""
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TextColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    meter = Meter()

    class Bar(ProgressColumn):
        """How much the meter counts as done, as it is now."""

        def render(self, task: Task) -> ProgressBar:
            del task
            return ProgressBar(total=1.0, completed=meter.share(), width=_BAR_WIDTH)

    class MeterText(ProgressColumn):
        """A text of the meter, as it is now."""

        def __init__(self, read: Callable[[], str]) -> None:
            super().__init__()
            self._read = read

        def render(self, task: Task) -> Text:
            del task
            return Text(self._read())

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        Bar(),
        MeterText(meter.counted),
        MeterText(meter.left),
        console=Console(file=stream),
        refresh_per_second=_REDRAWN_PER_S,
        transient=True,
    )
    return TerminalListener(bar, meter)

"""What a person sees while a run goes on: one moving line on a terminal, few lines in a log."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from ci_perf.model.comparison import Change
from ci_perf.model.run import Failed
from ci_perf.progress import sentences
from ci_perf.progress.sentences import SpeakingListener, TimeEstimate
from ci_perf.report.units import duration, render_count
from ci_perf.session import Listener

# A log that says nothing for half a minute looks like a job that hangs. A launch takes 10 s of it.
_SILENCE_S = 20.0
_LONGEST_SILENCE_S = 29.0

_Say = Callable[[str], None]


def listener(stream: TextIO, *, say: _Say) -> Listener:
    """Return the listener that suits a stream; `say` shows a text to whoever reads a log."""
    if stream.isatty():
        from ci_perf.progress import bar

        return bar.listener(stream)
    return PlainListener(say)


class PlainListener(SpeakingListener):
    """A line per workload and round, for logs; and one each half minute."""

    def __init__(self, say: _Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._speak, self._clock = say, clock
        self._eta = TimeEstimate(clock)
        self._last_said = self._round_began = clock()
        self._due: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._workloads = 0
        self._pair = 0
        self._awaited = ""
        # What is launched now, and since when.
        self._running, self._since = "", 0.0
        self._ended = threading.Event()

    def began(self) -> None:
        """See Listener: from here on it also speaks while nothing ends."""
        threading.Thread(target=self._watch, daemon=True).start()

    def ended(self) -> None:
        """See Listener."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.break_silence()

    def break_silence(self) -> None:
        """Say what runs, and for how long, where nothing was said for long."""
        running, now = self._running, self._clock()
        if running and now - self._last_said >= _LONGEST_SILENCE_S:
            self._say(f"{running}, for {duration(now - self._since)} so far")

    def _begin(self, what: str) -> None:
        self._running, self._since = what, self._clock()

    def planned(self, processes: Mapping[str, int], pairs_s: float = 0.0) -> None:
        """See Listener."""
        self._due, self._took = dict(processes), {}
        self._workloads, self._running = len(processes), ""
        self._round_began = self._clock()
        self._eta.expect(processes)
        workloads = render_count(len(processes), "workload")
        launches = render_count(sum(processes.values()), "process", "processes")
        pairs = f", then pairs with the base for at most {duration(pairs_s)}" if pairs_s else ""
        self._say(f"measuring {workloads} in {launches}{pairs}")

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener: a log needs only what has happened, or lasts."""
        self._begin(f"{workload}: process {process} of {of} runs")
        self._eta.begin(workload)

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        self._running = ""
        self._eta.end()
        self._took.setdefault(workload, []).append(seconds)
        self._due[workload] -= 1
        if not self._due[workload]:
            del self._due[workload]
            took = self._took[workload]
            count = render_count(len(took), "process", "processes")
            self._say_done(f"{workload}: {count} in {duration(sum(took))}")
        elif self._clock() - self._last_said >= _SILENCE_S:
            self._say_done(f"{workload}: process {len(self._took[workload])} done")

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        del skipped
        self._running = ""
        self._eta.give_up()
        self._due.pop(failed.workload, None)
        self._say(f"{self._counted()} {sentences.describe(failed)}")

    def round_finished(self, number: int, of: int) -> None:
        """See Listener: after the last one comes the end of the run, which has its own words."""
        took, self._round_began = self._clock() - self._round_began, self._clock()
        if number < of:
            self._say(f"round {number} of {of} done in {duration(took)}{self._left()}")

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """See Listener: a log needs only what has happened, or lasts."""
        del left
        self._pair = number
        self._begin(f"{workload}: pair {number} runs")

    def pair_finished(self, workload: str, row: Change | None, most_s: float) -> None:
        """See Listener."""
        self._running = ""
        if self._clock() - self._last_said >= _SILENCE_S:
            self._say(f"{workload}: {sentences.describe_pair(self._pair, row, most_s)}")

    def _wait(self, what: str, text: str, waited_s: float, most_s: float) -> None:
        """Say it at once, and again after some silence."""
        if self._awaited != what or self._clock() - self._last_said >= _SILENCE_S:
            self._awaited = what
            self._say(f"{text} ({sentences.render_waited(waited_s, most_s)})")

    def _say_done(self, text: str) -> None:
        self._say(f"{self._counted()} {text}{self._left()}")

    def _left(self) -> str:
        known = sentences.time_left_text(self._eta)
        return f"; {known}" if known else ""

    def _say(self, text: str) -> None:
        self._last_said = self._clock()
        self._speak(text)

    def _show(self, text: str) -> None:
        if text != self._running:
            self._say(text)
            self._begin(text)

    def _counted(self) -> str:
        return f"[{self._workloads - len(self._due)}/{self._workloads}]"

"""What is said while a run goes on, the time left included, by what has ended so far."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from ci_perf.judging.policy import MOST_PAIRS
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Failed
from ci_perf.report import escape, phrases
from ci_perf.report import headline as headlines
from ci_perf.report.sentences import write
from ci_perf.report.units import render_count
from ci_perf.session import Forecast
from ci_perf.session.schedule import PAIRS_FOR_ALARM

# More names than this nobody reads.
_NAMED = 5


class TimeEstimate:
    """Processes that are expected, one after the other, each known by what it is a process of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._running: str | None = None
        self._since = 0.0

    def expect(self, name: str, count: int) -> None:
        """Expect so many more of this name, however many were expected before."""
        self._waiting[name] = count

    def expect_rounds(self, processes: Mapping[str, int]) -> None:
        """Expect what is planned."""
        for workload, count in processes.items():
            self.expect(workload, count)

    def begin(self, name: str) -> None:
        """Note that one has begun: it is expected no longer, and is not yet over."""
        self._waiting[name] = max(0, self._waiting.get(name, 0) - 1)
        self._running, self._since = name, self._clock()

    def end(self) -> None:
        """Note that it is over."""
        if self._running is not None:
            self._took.setdefault(self._running, []).append(self._clock() - self._since)
        self._running = None

    def give_up(self) -> None:
        """Note that it failed: none of its name will follow, and its time says nothing."""
        if self._running is not None:
            self._waiting[self._running] = 0
        self._running = None

    def left_s(self) -> float | None:
        """Return the seconds until all are over; `None` while nobody can know.

        One of a name that has been seen takes as long as those on average; another one as long as
        the average workload. The one that runs counts for no longer than it was thought to take.
        """
        left = 0.0
        for name, count in self._waiting.items():
            usual_s = self._usual_s(name)
            if count and usual_s is None:
                return None
            left += count * (usual_s or 0.0)
        if self._running is not None:
            usual_s = self._usual_s(self._running)
            if usual_s is None:
                return None
            left += max(0.0, usual_s - (self._clock() - self._since))
        return left

    def _usual_s(self, name: str) -> float | None:
        if own := self._took.get(name):
            return statistics.fmean(own)
        others = [statistics.fmean(took) for took in self._took.values()]
        return statistics.fmean(others) if others else None


def describe(failed: Failed) -> str:
    """Say what failed, with its last lines, and what helps where memory ran out."""
    lines = [
        headline(failed),
        *escape.quote_lines(failed.reason),
        *escape.quote_lines(failed.output),
    ]
    if failed.exhausted:
        lines.append(f"next: {write('out_of_memory', kind=failed.exhausted.kind)}")
    return "\n".join(lines)


def render_waited(waited_s: float, most_s: float) -> str:
    """Say how long somebody has waited, and will wait at most."""
    most = f"at most {in_words(most_s)}"
    return f"{in_words(waited_s)} of {most}" if waited_s >= 1 else most


def lock_text(device: str, owner: str) -> str:
    """Say who holds a device, and how not to wait."""
    return (
        f"waiting for {device}, which {owner} holds. If the two runs cannot disturb each other, "
        "give one its own folder of locks by CI_PERF_LOCK_DIR. --wait sets the time"
    )


def quiet_text(why: str) -> str:
    """Say why nothing is measured yet."""
    return f"waiting for a quiet machine (--wait 0s does not wait): {why}"


def quiet_ended_text(why: str, waited_s: float) -> str:
    """Say how waiting for a quiet machine has ended."""
    took = in_words(waited_s)
    if not why:
        return f"the machine is quiet after {took}"
    return f"the machine is not quiet after {took}, and is measured all the same: {why}"


def render_interleaving(workloads: Sequence[str], budget_s: float, forecast: Forecast) -> str:
    """Say whose base is launched, for how long, and for how many that is enough."""
    named = ", ".join(workloads[:_NAMED])
    more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
    return (
        f"launching base and head in turns, for at most {in_words(budget_s)}: the baselines "
        f"do not clear {named}{more}\n{_affordable(forecast)}"
    )


def _affordable(forecast: Forecast) -> str:
    """Say what the budget allows, and how much more would be enough."""
    workloads = render_count(forecast.suspects, "workload")
    pairs = f"about {render_count(forecast.pairs, 'pair')}" if forecast.pairs else "no pair"
    if forecast.pairs == MOST_PAIRS * forecast.suspects:
        pairs = f"as many pairs as there can be, {forecast.pairs}"
    allowed = f"the budget allows {pairs}"
    each = " of each" * (forecast.suspects > 1)
    needed = f"proving a regression takes at least {PAIRS_FOR_ALARM} pairs{each}"
    if forecast.answerable == forecast.suspects:
        return f"{allowed} for {workloads}; {needed}"
    enough = (
        f"enough for {forecast.answerable} of {workloads}, the soonest decided first"
        if forecast.answerable
        else f"too few to decide {'any of ' * (forecast.suspects > 1)}{workloads}"
    )
    return (
        f"{allowed}, {enough}: {needed}; next: --budget {math.ceil(forecast.enough_s / 60)}m, "
        "which is enough for all"
    )


def spent_text(spent_s: float, budget_s: float) -> str:
    """Say how much of the budget for pairs is spent."""
    return f"{in_words(spent_s)} of the budget of {in_words(budget_s)}"


def verdict_text(verdict: Comparison, explaining_s: float) -> str:
    """Say the verdict, and what may follow without changing it."""
    said = f"verdict: {phrases.plain(headlines.summarise(verdict))}"
    if not explaining_s:
        return said
    what = f"explaining it for at most {in_words(explaining_s)}"
    return f"{said}\n{what}; Ctrl-C keeps the verdict"


def render_recording(workload: str) -> str:
    """Say what a launch of the base is for, before anything is measured."""
    return f"{workload}: recording which files the base uses"


def render_profiling(workload: str) -> str:
    """Say that launches follow of which no verdict depends, and what for."""
    return f"{workload}: profiling a step"


def base_failed_text(workload: str, reason: str) -> str:
    """Say that a base cannot be launched."""
    return escape.visible(f"{workload}: the base cannot be launched: {reason}")


def headline(failed: Failed) -> str:
    """Say what failed, in a line."""
    return f"{failed.workload}: failed in phase {failed.phase.value}"


def render_announcement(processes: Mapping[str, int]) -> str:
    """Say how much is measured."""
    workloads = render_count(len(processes), "workload")
    return (
        f"measuring {workloads} in {render_count(sum(processes.values()), 'process', 'processes')}"
    )


def time_left_text(known: TimeEstimate) -> str:
    """Say how long the rounds still take, by those so far; empty while nobody can know."""
    seconds = known.left_s()
    return f"the rounds end in about {in_words(seconds)}" if seconds else ""


def in_words(seconds: float) -> str:
    """45 s, 2 min 10 s, 1 h 5 min."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min"

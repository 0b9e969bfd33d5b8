"""What every listener says while a run goes on, and the time left by what has ended so far."""

import math
import statistics
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from ci_perf.judging.policy import EARLY_PAIRS, MOST_PAIRS
from ci_perf.model.comparison import Change, Comparison, Verdict, severity_of
from ci_perf.model.run import Failed
from ci_perf.report import cells, escape, phrases, units
from ci_perf.report import headline as headlines
from ci_perf.report.sentences import write
from ci_perf.report.units import duration, render_count
from ci_perf.session import Forecast, Listener
from ci_perf.session.schedule import PAIRS_FOR_ALARM

# What more pairs may decide.
OPEN = frozenset({Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER})
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

    def expect(self, processes: Mapping[str, int]) -> None:
        """Expect so many more of each name, however many were expected before."""
        self._waiting |= processes

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


class SpeakingListener(Listener):
    """Says in words what a person should know; a subclass has a place for them."""

    @abstractmethod
    def _say(self, text: str) -> None:
        """Tell something that stays."""

    @abstractmethod
    def _show(self, text: str) -> None:
        """Tell what is launched now."""

    def machine_awaited(self, why: str, waited_s: float) -> None:
        """See Listener."""
        is_quiet = f"the machine is quiet after {duration(waited_s)}"
        is_busy = (
            f"the machine is not quiet after {duration(waited_s)}, and is measured all the same"
        )
        self._say(f"{is_busy}: {why}" if why else is_quiet)

    def interleaving(self, workloads: Sequence[str], budget_s: float, forecast: Forecast) -> None:
        """See Listener."""
        del budget_s
        named = ", ".join(workloads[:_NAMED])
        more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
        self._say(
            "launching base and head alternately, for at most "
            f"{duration(math.ceil(forecast.most_s))}: the baselines "
            f"do not clear {named}{more}\n{_affordable(forecast)}"
        )

    def base_failed(self, workload: str, reason: str) -> None:
        """See Listener."""
        self._say(escape.visible(f"{workload}: the base cannot be launched: {reason}"))

    def decided(self, verdict: Comparison, explaining_s: float) -> None:
        """See Listener."""
        said = f"verdict: {headlines.render(verdict)}"
        if explaining_s:
            what = f"explaining it for at most {duration(explaining_s)}"
            said += f"\n{what}; Ctrl-C keeps the verdict"
        self._say(said)

    def recording(self, workload: str) -> None:
        """See Listener."""
        self._show(f"{workload}: recording which files the base uses")

    def profiling(self, workload: str) -> None:
        """See Listener."""
        self._show(f"{workload}: profiling a step")

    def waiting(self, device: str, owner: str, waited_s: float, most_s: float) -> None:
        """See Listener."""
        text = (
            f"waiting for {device}, which {owner} holds. If the two runs cannot disturb each "
            "other, give one its own folder of locks by CI_PERF_LOCK_DIR. --wait sets the time"
        )
        self._wait(f"waiting for {device}", text, waited_s, most_s)

    def machine_busy(self, why: str, waited_s: float, most_s: float) -> None:
        """See Listener."""
        text = f"waiting for a quiet machine (--wait 0s does not wait): {why}"
        self._wait("waiting for a quiet machine", text, waited_s, most_s)

    @abstractmethod
    def _wait(self, what: str, text: str, waited_s: float, most_s: float) -> None:
        """Tell why nothing is launched, again and again."""


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
    most = f"at most {duration(most_s)}"
    return f"{duration(waited_s)} of {most}" if waited_s >= 1 else most


def _affordable(forecast: Forecast) -> str:
    """Say what the budget allows, and how much more would be enough."""
    workloads = render_count(forecast.suspects, "workload")
    pairs = f"about {render_count(forecast.pairs, 'pair')}" if forecast.pairs else "no pair"
    if forecast.pairs == MOST_PAIRS * forecast.suspects:
        pairs = f"as many pairs as there can be, {forecast.pairs}"
    allowed = f"the budget allows {pairs}"
    each = " of each" * (forecast.suspects > 1)
    needed = (
        f"proving a regression takes at least {PAIRS_FOR_ALARM} pairs{each}, an obvious one "
        f"{EARLY_PAIRS}"
    )
    if forecast.answerable == forecast.suspects:
        return f"{allowed} for {workloads}; {needed}"
    enough = (
        f"enough for {forecast.answerable} of {workloads}, the worst first"
        if forecast.answerable
        else f"too few to decide {'any of ' * (forecast.suspects > 1)}{workloads}"
    )
    return (
        f"{allowed}, {enough}: {needed}; next: --budget {math.ceil(forecast.enough_s / 60)}m, "
        "which is enough for all"
    )


def describe_pair(number: int, row: Change | None, most_s: float) -> str:
    """Say what a pair showed, what decides, and how long it can still take."""
    said = f"pair {number}"
    if row is not None:
        metric = "" if row.metric == phrases.STEP_TIME else f"{phrases.metric_title(row.metric)} "
        # A word of the verdict where there is one: what is open has only numbers.
        word = phrases.name_severity(severity_of(row), row.metric)
        said += (
            f", so far {metric}{cells.show_change(row)}, decides at {units.limit(row.limit)}"
            if row.verdict in OPEN
            else f" decides: {metric}{cells.show_change(row)}, {word}"
        )
    return said + (f", at most {duration(math.ceil(most_s))} more" if most_s else "")


def spent_text(spent_s: float, budget_s: float) -> str:
    """Say how much of the budget for pairs is spent."""
    return f"{duration(spent_s)} of the budget of {duration(budget_s)}"


def headline(failed: Failed) -> str:
    """Say what failed, in a line."""
    return f"{failed.workload}: failed in phase {failed.phase.value}"


def time_left_text(known: TimeEstimate) -> str:
    """Say how long the rounds still take, by those so far; empty while nobody can know."""
    seconds = known.left_s()
    return f"the rounds end in about {duration(seconds)}" if seconds else ""

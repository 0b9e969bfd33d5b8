"""What a person sees while a run goes on: one moving line on a terminal, few lines in a log."""

import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import click

from ci_perf.cli import console
from ci_perf.model.run import Failed
from ci_perf.session import Forecast, Listener
from ci_perf.session.schedule import PAIRS_FOR_ALARM

# A log that says nothing for longer looks like a job that hangs.
_SILENCE_S = 60.0

# More names than this nobody reads.
_NAMED = 5

# They are expected like processes; no workload is called so, and no workload takes as long.
CANARIES = ""


def listener() -> Listener:
    """Return the listener that suits stderr."""
    if sys.stderr.isatty():
        from ci_perf.cli import progress_bar

        return progress_bar.listener()
    is_on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    return GroupedListener() if is_on_github else PlainListener()


class PlainListener(Listener):
    """A line per workload and round, for logs; and one when there was none for a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._eta = TimeEstimate(clock)
        self._last_said = self._round_began = clock()
        self._due: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._workloads = 0
        self._pair = ("", 0, 0)
        self._awaited = ""
        self._budget_s = 0.0

    def waiting(self, device: str, owner: str, waited_s: float, most_s: float) -> None:
        """See Listener."""
        self._say_waiting(device, lock_text(device, owner), waited_s, most_s)

    def machine_busy(self, why: str, waited_s: float, most_s: float) -> None:
        """See Listener."""
        self._say_waiting("quiet", quiet_text(why), waited_s, most_s)

    def machine_awaited(self, why: str, waited_s: float) -> None:
        """See Listener."""
        self._say(quiet_ended_text(why, waited_s))

    def planned(self, processes: Mapping[str, int], canaries: int) -> None:
        """See Listener."""
        self._due = dict(processes)
        self._workloads = len(processes)
        self._round_began = self._clock()
        expect_rounds(self._eta, processes, canaries)
        self._announce(_announced(processes))

    def canary_started(self) -> None:
        """See Listener."""
        self._eta.begin(CANARIES)

    def canary_finished(self, left: int) -> None:
        """See Listener."""
        self._eta.end()
        self._eta.expect(CANARIES, left)

    def started(self, workload: str, process: int, of: int) -> None:
        """See Listener: a log needs only what has happened."""
        del process, of
        self._eta.begin(workload)

    def finished(self, workload: str, seconds: float) -> None:
        """See Listener."""
        self._eta.end()
        self._took.setdefault(workload, []).append(seconds)
        self._due[workload] -= 1
        if not self._due[workload]:
            del self._due[workload]
            took = self._took[workload]
            count = numbered(len(took), "process", "processes")
            self._say_done(f"{workload}: {count} in {in_words(sum(took))}")
        elif self._clock() - self._last_said >= _SILENCE_S:
            self._say_done(f"{workload}: process {len(self._took[workload])} done")

    def failed(self, failed: Failed, skipped: int) -> None:
        """See Listener."""
        del skipped
        self._eta.give_up()
        self._due.pop(failed.workload, None)
        self._say_failed(failed)

    def round_finished(self, number: int, of: int) -> None:
        """See Listener: after the last one comes the end of the run, which has its own words."""
        took, self._round_began = self._clock() - self._round_began, self._clock()
        if number < of:
            self._say(f"round {number} of {of} done in {in_words(took)}{self._left()}")

    def interleaving(self, workloads: Sequence[str], budget_s: float, forecast: Forecast) -> None:
        """See Listener."""
        self._budget_s = budget_s
        self._say(interleaving_text(workloads, budget_s, forecast))

    def pair_started(self, workload: str, number: int, left: int) -> None:
        """See Listener: a log needs only what has happened."""
        self._pair = (workload, number, left)

    def pair_finished(self, workload: str, spent_s: float) -> None:
        """See Listener."""
        del workload
        if self._clock() - self._last_said >= _SILENCE_S:
            name, number, left = self._pair
            self._say(
                f"{name}: pair {number} done, {numbered(left, 'suspect', 'suspects')} left, "
                f"{in_words(spent_s)} of the budget of {in_words(self._budget_s)} spent"
            )

    def base_failed(self, workload: str, reason: str) -> None:
        """See Listener."""
        self._say(base_failed_text(workload, reason))

    def recording(self, workload: str) -> None:
        """See Listener."""
        self._say(recording_text(workload))

    def profiling(self, workload: str) -> None:
        """See Listener."""
        self._say(profiling_text(workload))

    def _say_waiting(self, what: str, text: str, waited_s: float, most_s: float) -> None:
        """Say it at once, and again after a minute without any other line."""
        if self._awaited != what or self._clock() - self._last_said >= _SILENCE_S:
            self._awaited = what
            self._say(f"{text} ({waited_text(waited_s, most_s)})")

    def _say_done(self, text: str) -> None:
        self._say(f"{self._counted()} {text}{self._left()}")

    def _left(self) -> str:
        known = time_left_text(self._eta)
        return f"; {known}" if known else ""

    def _say(self, text: str) -> None:
        self._last_said = self._clock()
        console.say(text)

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

    def ended(self) -> None:
        """See Listener: close the group, and tell what failed."""
        if self._is_open:
            click.echo("::endgroup::", err=True)
        self._is_open = False
        for failed in self._failures:
            console.say(describe(failed))
        self._failures = []

    def _announce(self, text: str) -> None:
        click.echo(f"::group::{text}", err=True)
        self._is_open = True

    def _say_failed(self, failed: Failed) -> None:
        self._failures.append(failed)
        self._say(f"{self._counted()} {_headline(failed)}")


def describe(failed: Failed) -> str:
    """Say what failed, with its last lines."""
    lines = [*console.fenced(failed.reason), *console.fenced(failed.output)]
    return "\n".join([_headline(failed), *lines])


def waited_text(waited_s: float, most_s: float) -> str:
    """Say how long somebody has waited, and will wait at most."""
    most = f"at most {in_words(most_s)}"
    return f"{in_words(waited_s)} of {most}" if waited_s >= 1 else most


def lock_text(device: str, owner: str) -> str:
    """Say who holds a device, and how not to wait."""
    return (
        f"waiting for {device}: held by {owner}; --lock-timeout says for how long, and "
        "CI_PERF_LOCK_DIR names another folder of locks, for runs that cannot disturb each other"
    )


def quiet_text(why: str) -> str:
    """Say why nothing is measured yet."""
    return f"waiting for a quiet machine, as --wait says: {why}"


def quiet_ended_text(why: str, waited_s: float) -> str:
    """Say how waiting for a quiet machine has ended."""
    took = in_words(waited_s)
    if not why:
        return f"the machine is quiet after {took}"
    return f"the machine is not quiet after {took}, and is measured all the same: {why}"


def interleaving_text(workloads: Sequence[str], budget_s: float, forecast: Forecast) -> str:
    """Say whose base is launched, for how long, and for how many that is enough."""
    named = ", ".join(workloads[:_NAMED])
    more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
    return (
        f"launching base and head in turns, for at most {in_words(budget_s)}: the baselines "
        f"do not clear {named}{more}\n{_affordable(forecast)}"
    )


def _affordable(forecast: Forecast) -> str:
    """Say what the budget allows, and how much more would be enough."""
    pairs = numbered(forecast.pairs, "pair", "pairs")
    allowed = f"the budget allows {f'about {pairs}' if forecast.pairs else 'no pair'}"
    workloads = numbered(forecast.suspects, "workload", "workloads")
    needed = f"proving a regression takes at least {PAIRS_FOR_ALARM} pairs"
    if forecast.answerable == forecast.suspects:
        return f"{allowed} for {workloads}; {needed}"
    return (
        f"{allowed}, enough for {forecast.answerable} of {workloads}, the soonest decided first: "
        f"{needed}; --budget {math.ceil(forecast.enough_s / 60)}m would be enough for all"
    )


def recording_text(workload: str) -> str:
    """Say that a launch is not timed, and what for."""
    return f"{workload}: recording what it takes from the repository (not timed)"


def profiling_text(workload: str) -> str:
    """Say that launches follow of which no verdict depends, and what for."""
    return f"{workload}: profiling a step"


def base_failed_text(workload: str, reason: str) -> str:
    """Say that a base cannot be launched."""
    return console.harmless(f"{workload}: the base cannot be launched: {reason}")


def _headline(failed: Failed) -> str:
    return f"{failed.workload}: failed in phase {failed.phase.value}"


def _announced(processes: Mapping[str, int]) -> str:
    workloads = numbered(len(processes), "workload", "workloads")
    return f"measuring {workloads} in {numbered(sum(processes.values()), 'process', 'processes')}"


def numbered(count: int, singular: str, plural: str) -> str:
    """1 pair, 2 pairs."""
    return f"{count} {singular if count == 1 else plural}"


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
        others = [statistics.fmean(took) for other, took in self._took.items() if other != CANARIES]
        return statistics.fmean(others) if others else None


def expect_rounds(known: TimeEstimate, processes: Mapping[str, int], canaries: int) -> None:
    """Have an estimate expect what is planned."""
    known.expect(CANARIES, canaries)
    for workload, count in processes.items():
        known.expect(workload, count)


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

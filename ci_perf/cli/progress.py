"""What a person sees while a run goes on: one moving line on a terminal, few lines in a log."""

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import click

from ci_perf.cli import console, eta
from ci_perf.cli.eta import TimeEstimate
from ci_perf.model.run import Failed
from ci_perf.session import Forecast, Listener
from ci_perf.session.schedule import PAIRS_FOR_ALARM

# A log that says nothing for longer looks like a job that hangs.
_SILENCE_S = 60.0

# More names than this nobody reads.
_NAMED = 5


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
        self._eta.begin(eta.CANARIES)

    def canary_finished(self, left: int) -> None:
        """See Listener."""
        self._eta.end()
        self._eta.expect(eta.CANARIES, left)

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
            self._say_done(f"{workload}: {count} in {eta.in_words(sum(took))}")
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
            self._say(f"round {number} of {of} done in {eta.in_words(took)}{self._left()}")

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
                f"{eta.in_words(spent_s)} of the budget of {eta.in_words(self._budget_s)} spent"
            )

    def base_failed(self, workload: str, reason: str) -> None:
        """See Listener."""
        self._say(base_failed_text(workload, reason))

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
    most = f"at most {eta.in_words(most_s)}"
    return f"{eta.in_words(waited_s)} of {most}" if waited_s >= 1 else most


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
    took = eta.in_words(waited_s)
    if not why:
        return f"the machine is quiet after {took}"
    return f"the machine is not quiet after {took}, and is measured all the same: {why}"


def interleaving_text(workloads: Sequence[str], budget_s: float, forecast: Forecast) -> str:
    """Say whose base is launched, for how long, and for how many that is enough."""
    named = ", ".join(workloads[:_NAMED])
    more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
    return (
        f"launching base and head in turns, for at most {eta.in_words(budget_s)}: the baselines "
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
        f"{allowed}, enough for {forecast.answerable} of {workloads}, the worst first: {needed}; "
        f"--budget {math.ceil(forecast.enough_s / 60)}m would be enough for all"
    )


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


def expect_rounds(known: TimeEstimate, processes: Mapping[str, int], canaries: int) -> None:
    """Have an estimate expect what is planned."""
    known.expect(eta.CANARIES, canaries)
    for workload, count in processes.items():
        known.expect(workload, count)


def time_left_text(known: TimeEstimate) -> str:
    """Say how long the rounds still take, by those so far; empty while nobody can know."""
    seconds = known.left_s()
    return f"the rounds end in about {eta.in_words(seconds)}" if seconds else ""

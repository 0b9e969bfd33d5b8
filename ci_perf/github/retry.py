"""When to ask again: never for what may have been done already, and never for long."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ci_perf.github import failures
from ci_perf.github.failures import GithubError, Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often to ask, and how long to wait at most: a GPU runner may be waiting with us.

    GitHub asks for a minute after a secondary limit that names no time, so that is the most.
    """

    attempts: int = 4
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds)  # noqa: PLW0108  looked up when it is called
    now: Callable[[], float] = time.time


def call(ask: Callable[[], T], *, what: str, is_repeatable: bool, patience: Patience) -> T:
    """Ask, and ask again where that cannot do the same thing twice. Raises GithubError.

    A request that GitHub refused for being one too many has done nothing, whatever it was.
    """
    for attempt in itertools.count():
        try:
            return ask()
        except Exception as error:
            failure = failures.of(error, what, now=patience.now())
            if failure is None:
                raise
        wait_s = _wait_s(failure, attempt, patience, is_repeatable=is_repeatable)
        if wait_s is None:
            raise failure
        patience.sleep(wait_s)
    raise AssertionError("it returns or raises")


def _wait_s(
    failure: GithubError, attempt: int, patience: Patience, *, is_repeatable: bool
) -> float | None:
    """Return how long to wait before asking again; `None` where that is out of the question."""
    may_repeat = failure.kind is Kind.LIMITED or (failure.kind is Kind.UNANSWERED and is_repeatable)
    if not may_repeat or attempt + 1 == patience.attempts:
        return None
    wait_s = patience.first_wait_s * 2**attempt
    if failure.kind is Kind.LIMITED:
        wait_s = max(wait_s, patience.longest_wait_s if failure.wait_s is None else failure.wait_s)
    return wait_s if wait_s <= patience.longest_wait_s else None

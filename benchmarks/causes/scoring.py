"""Whether an explanation is right: the planted function first, and its kind."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.causes.planted import Planted
from ci_perf.features.explain import causes
from ci_perf.model.explanation import (
    Cause,
    Explanation,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one set of pairs."""

    is_first: bool
    is_kind: bool
    first: str


def explained(pairs: Iterable[ProfiledPair], *, is_gain: bool) -> Explanation:
    """Explain a row that has moved by these pairs."""
    return causes.explain(ProfiledPairs(workload="model", pairs=tuple(pairs)), is_gain=is_gain)


def answers(
    planted: Planted, pairs: Sequence[ProfiledPair], size: int, *, is_gain: bool
) -> Iterator[Answer]:
    """Explain a row by every subset of so many pairs."""
    for subset in itertools.combinations(pairs, size):
        explanation = explained(subset, is_gain=is_gain)
        first = explanation.causes[0] if explanation.causes else None
        is_first = first is not None and _function(first) in planted.functions
        yield Answer(
            is_first=is_first,
            is_kind=is_first and first is not None and first.kind in planted.kinds,
            first=_said(first) if first else explanation.trouble or "nothing",
        )


def same(launches: Sequence[StepProfile], size: int) -> Iterator[tuple[int, int]]:
    """Compare bases with themselves: how many exact and measured lines each comparison has.

    Launches of one model meet in turns: each is in several comparisons, no two of which have the
    same pairs. The row is slower and faster in turns.
    """
    gains = itertools.cycle((False, True))
    for shift in range(1, len(launches), 2):
        places = range(0, len(launches) - shift, 2)
        made = [ProfiledPair(base=launches[at], head=launches[at + shift]) for at in places]
        for start in range(0, len(made) - size + 1, size):
            every = explained(made[start : start + size], is_gain=next(gains))
            shown = (*every.causes, *every.others)
            exact = sum(cause.evidence == "exact" for cause in shown) + every.further
            yield exact, len(shown) + every.further - exact


def _function(cause: Cause) -> str:
    return cause.place.function if cause.place else ""


def _said(cause: Cause) -> str:
    operator = cause.operators[0].operator if cause.operators else ""
    return f"{cause.kind} {operator} in {_function(cause) or '?'}".replace("  ", " ")

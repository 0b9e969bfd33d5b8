"""Counts of right and wrong calls of one rule, and how sure such a count is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.verdicts.observed import INCONCLUSIVE, SILENT, Judged

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """So many of so many."""

    count: int = 0
    of: int = 0

    @property
    def share(self) -> float:
        """The share, NaN where there was nothing."""
        return self.count / self.of if self.of else float("nan")

    @property
    def bounds(self) -> tuple[float, float]:
        """Clopper and Pearson's exact interval (1934) for independent cases."""
        tail = (1 - CONFIDENCE) / 2
        low = stats.beta.ppf(tail, self.count, self.of - self.count + 1) if self.count else 0.0
        if self.count == self.of:
            return float(low), 1.0
        return float(low), float(stats.beta.ppf(1 - tail, self.count + 1, self.of - self.count))

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.count + other.count, self.of + other.of)


@dataclass
class Shares:
    """What was said of a change that is there."""

    right: Rate = Rate()
    wrong_sign: Rate = Rate()
    # It was called unchanged; of most tools: nothing was said, and the job is green.
    green: Rate = Rate()


@dataclass
class Score:
    """All calls of one rule on one set of data, counted."""

    name: str
    alarms: Rate = Rate()
    alarmed_pull_requests: Rate = Rate()
    inconclusive: Rate = Rate()
    launches: float = 0.0
    by_effect: dict[float, Shares] = field(default_factory=dict)

    def add(self, effect: float, judged: Judged, suite: int) -> None:
        """Count the calls; where `effect` is 0, each `suite` of them is one pull request."""
        if effect:
            self._add_changed(effect, judged)
        else:
            self._add_unchanged(judged, suite)

    @property
    def launches_per_workload(self) -> float:
        """Launches of the head's job that an unchanged workload took, in the mean."""
        return self.launches / self.alarms.of

    def together(self, size: float) -> Shares:
        """Return what was said of changes of this size in either direction."""
        return _sum(
            [self.by_effect[effect] for effect in (size, -size) if effect in self.by_effect]
        )

    def all_sizes(self) -> Shares:
        """Return what was said of all changes."""
        return _sum(list(self.by_effect.values()))

    def _add_unchanged(self, judged: Judged, suite: int) -> None:
        is_alarm = np.abs(judged.calls) == 1
        per_pull_request = is_alarm.reshape(-1, suite).any(axis=1)
        self.alarms += _rate(is_alarm)
        self.alarmed_pull_requests += _rate(per_pull_request)
        self.inconclusive += _rate(judged.calls == INCONCLUSIVE)
        self.launches += float(judged.launches.sum())

    def _add_changed(self, effect: float, judged: Judged) -> None:
        shares = self.by_effect.setdefault(effect, Shares())
        shares.right += _rate(judged.calls == np.sign(effect))
        shares.wrong_sign += _rate(judged.calls == -np.sign(effect))
        shares.green += _rate(judged.calls == SILENT)


def _sum(several: Sequence[Shares]) -> Shares:
    return Shares(
        right=sum((shares.right for shares in several), Rate()),
        wrong_sign=sum((shares.wrong_sign for shares in several), Rate()),
        green=sum((shares.green for shares in several), Rate()),
    )


def _rate(hits: NDArray[np.bool_]) -> Rate:
    return Rate(int(hits.sum()), hits.size)

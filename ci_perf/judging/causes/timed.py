"""The times of one profiled launch: of its operators, and of its functions without them."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ci_perf.judging.causes.launches import Key, Place, ProfiledLaunch

# `loss.backward()` makes the first gradient of ones, in the function that calls it.
_BEGINS_BACKWARD: Final = "aten::ones_like"


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """One launch; all seconds are per step, `None` where they were not measured.

    ``within`` are the operators that run in a function itself. ``behind`` are those that autograd
    runs: their time passes in ``calls_backward``, whosever their forward operators are.
    """

    launch: ProfiledLaunch
    within: Mapping[Place | None, float]
    behind: float
    calls_backward: Place | None

    @classmethod
    def of(cls, launch: ProfiledLaunch, recomputed: Collection[Key]) -> "LaunchTimes":
        """Sum up operators; those that are `recomputed` run in their own function."""
        within: dict[Place | None, float] = defaultdict(float)
        behind = 0.0
        has_backward = False
        for key, uses in launch.uses.items():
            seconds = math.fsum(use.calls * (use.call_s or 0.0) for use in uses)
            if key[2] and key not in recomputed:
                behind, has_backward = behind + seconds, True
            else:
                within[key[0]] += seconds
        caller = _calls_backward(launch, within) if has_backward else None
        return cls(launch, within, behind, caller)

    @property
    def operators_s(self) -> float:
        """Return what all operators take that were timed."""
        return math.fsum(self.within.values()) + self.behind

    @property
    def step_s(self) -> float:
        """Return how long a step takes; what is timed of it where nobody knows."""
        if self.launch.step_s:
            return self.launch.step_s
        working = (self.working_s(place) or 0.0 for place in self.launch.functions)
        return max(math.fsum(working), self.operators_s)

    def operator_s(self, key: Key, signatures: Collection[str] | None = None) -> float | None:
        """Return what an operator takes: with these forms of arguments, or with all."""
        total = 0.0
        for use in self.launch.uses.get(key, ()):
            if signatures is None or use.signature in signatures:
                if use.call_s is None:
                    return None
                total += use.calls * use.call_s
        return total

    def working_s(self, place: Place) -> float | None:
        """Return the CPU time of a function, operators within included."""
        return _sum([use.working_s for use in self.launch.functions.get(place, ())])

    def waiting_s(self, place: Place) -> float | None:
        """Return how long a function waits."""
        return _sum([use.waiting_s for use in self.launch.functions.get(place, ())])

    def waits_in(self, place: Place) -> str:
        """Return the built-in function in which a function waits longest; empty if unknown."""
        uses = [use for use in self.launch.functions.get(place, ()) if use.waits_in]
        longest = max(uses, key=lambda use: use.waiting_s or 0.0, default=None)
        return longest.waits_in if longest else ""

    def own_s(self, place: Place) -> float | None:
        """Return a function's own Python: its CPU time less that of the operators within."""
        working, within = self.working_s(place), self.within.get(place, 0.0)
        is_missing = within > 0 and place not in self.launch.functions
        if working is None or is_missing:
            return None
        return working - within - (self.behind if place == self.calls_backward else 0.0)


def _sum(times: list[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return math.fsum(known) if len(known) == len(times) else None


def _calls_backward(launch: ProfiledLaunch, within: Mapping[Place | None, float]) -> Place | None:
    """Find the function whose own time is largest beside its operators, of those that may be it."""
    begin = {key[0] for key in launch.uses if key[3] == _BEGINS_BACKWARD and not key[2]}
    own = {
        place: math.fsum(use.working_s or 0.0 for use in uses) - within.get(place, 0.0)
        for place, uses in launch.functions.items()
    }
    among = [place for place in own if place in begin] or list(own)
    return max(among, key=own.__getitem__, default=None)

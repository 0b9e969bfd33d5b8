"""A noisy metric as it is judged, and what is decided of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judging.metric_values import History, Sessions
from ci_perf.judging.policy import Policy, PolicyKind
from ci_perf.judging.remedies import Needs
from ci_perf.model.comparison import Verdict

Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMetric:
    """One noisy metric: logarithms, one per launch, of a quantity of which less is better.

    ``policy`` holds its own floor and margin. ``history`` is ``None`` where there is none that
    compares; ``clears`` says whether it may clear the head (not when the machine has moved).
    ``cycles`` are the pairs in clock cycles, where these are known. ``tick`` is what all numbers
    were rounded to, relative to them. ``trimmed``: the mean of pairs leaves out the outermost ones.
    ``earlier`` counts the pairs of each earlier run of the same commits, which come first; ``said``
    is what these runs have said by their pairs.
    """

    kind: PolicyKind
    policy: Policy
    history: History | None
    head: Sequence[float]
    pairs: Pairs = ()
    cycles: Pairs = ()
    gate: bool = True
    clears: bool = True
    tick: float = 0.0
    trimmed: bool = False
    earlier: tuple[int, ...] = ()
    said: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is said of a noisy metric; sizes are logarithms, above zero the head is worse.

    ``base`` and ``head`` are the launches that decided: committed sessions and the head's own, or
    the two sides of ``pairs`` pairs. ``level`` is the base that ``estimate`` is the distance from.
    ``drift`` is how far the head's own launches lie from the history, ``None`` without one.
    ``is_open``: one more pair may still decide, and ``expected_pairs`` more are expected to.
    """

    verdict: Verdict
    code: str
    base: Sessions
    head: Sequence[float]
    level: float
    estimate: float
    interval: tuple[float, float] | None
    smallest_detectable: float | None
    pairs: int = 0
    drift: float | None = None
    tick: float = 0.0
    needs: Needs | None = None
    is_suspect: bool
    is_open: bool = False
    expected_pairs: float = 0.0

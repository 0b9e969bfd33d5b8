"""What `ci-perf explain` answers: why workloads moved, or what limits them."""

from ci_perf.features.explain.model import Explanation, StepLimits, StepProfile
from ci_perf.model.base import Count, Finite, Name, Seconds, Struct, Text
from ci_perf.model.comparison import Change, Interval


class StepChange(Struct, frozen=True, kw_only=True):
    """How steps of profiled launches that nothing watches compare: medians over the pairs.

    ``ratio`` is head over base, the mean over the pairs, and ``interval`` has its bounds of 95 %.
    """

    base_s: Seconds
    head_s: Seconds
    ratio: Finite
    interval: Interval
    pairs: Count

    @property
    def is_resolved(self) -> bool:
        """Whether the bounds exclude no change."""
        return not self.interval.low <= 1 <= self.interval.high


class ExplainedWorkload(Struct, frozen=True, kw_only=True):
    """One workload. ``rows`` are those of a run that have an explanation.

    ``explanation`` compares profiles that were taken for the question, and knows no verdict; `None`
    without a base. ``step`` is the change that its shares are of, `None` where fewer than three
    pairs have timed it. ``profile`` is that of the head, ``limits`` what keeps its step from being
    faster. ``trouble`` says why there is none of it.
    """

    workload: Name
    rows: tuple[Change, ...] = ()
    explanation: Explanation | None = None
    step: StepChange | None = None
    profile: StepProfile | None = None
    limits: StepLimits | None = None
    trouble: Text = ""


class ExplainedWorkloads(Struct, frozen=True, kw_only=True):
    """The workloads of one suite that somebody asked for, in their order.

    ``base`` is the commit of the other side, empty where there is none.
    """

    suite: Text
    base: Text = ""
    workloads: tuple[ExplainedWorkload, ...]

"""What `ci-perf explain` answers: how both sides of workloads differ, or what limits them."""

from ci_perf.model.base import Name, Struct, Text
from ci_perf.model.explanation import Explanation, StepLimits, StepProfile


class ExplainedWorkload(Struct, frozen=True, kw_only=True):
    """One workload, profiled for the question: no verdict is known.

    ``explanation`` compares both sides, `None` without a base. ``profile`` is that of the head,
    ``limits`` what keeps its step from being faster. ``trouble`` says why there is none of it.
    """

    workload: Name
    explanation: Explanation | None = None
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

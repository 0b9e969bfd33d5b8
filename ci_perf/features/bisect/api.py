"""`ci_perf.bisect`: the commit that made a workload worse."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.bisect.bisection import Bisection
    from ci_perf.gate.runners import Runner
    from ci_perf.session import Listener


def bisect(
    good: str,
    bad: str,
    workload: str,
    *,
    suite: str = "",
    metric: str = "",
    at_once: int = 7,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    wait_s: float | None = None,
    budget_s: float = 7200.0,
    explain_s: float = 0.0,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
) -> "Bisection":
    """Find the commit after `good`, up to `bad`, that made a workload worse; see `ci-perf bisect`.

    The result's `outcome` is "found", and the commit `commits[high]`, or it says what is left. Each
    session has a `listener` of its own.
    """
    from ci_perf.features.bisect import bisect
    from ci_perf.gate import arguments
    from ci_perf.session import Listener

    options = bisect.BisectOptions(
        measuring=arguments.measure_options(
            root=root,
            select=workload,
            suite=suite,
            workloads=workloads,
            baselines=baselines,
            device=device,
            wait_s=wait_s,
            budget_s=budget_s,
            explain_s=explain_s,
            runner=runner,
        ),
        good=good,
        bad=bad,
        at_once=at_once,
        metric=metric,
    )
    return bisect.bisect(options, notify=notify or say_nothing, listener=listener or Listener)

"""`ci_perf.bisect`: the commit that made a workload worse."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.bisect.bisection import Bisection
    from ci_perf.session import Listener


def bisect(
    good: str,
    bad: str,
    workload: str,
    *,
    metric: str = "",
    at_once: int = 7,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
    **options: Any,  # noqa: ANN401  as `ci_perf.measure`
) -> "Bisection":
    """Find the commit after `good`, up to `bad`, that made a workload worse; see `ci-perf bisect`.

    The result's `outcome` is "found", and the commit `commits[high]`, or it says what is left. Each
    session has a `listener` of its own. The other `options` are those of `ci_perf.measure`.
    """
    from ci_perf.features.bisect import bisect
    from ci_perf.gate import arguments
    from ci_perf.session import Listener

    keywords = {"budget_s": 7200.0, "explain_s": 0.0, **options}
    bisecting = bisect.BisectOptions(
        measuring=arguments.measure_options(root, keywords, select=workload),
        good=good,
        bad=bad,
        at_once=at_once,
        metric=metric,
    )
    return bisect.bisect(bisecting, notify=notify or say_nothing, listener=listener or Listener)

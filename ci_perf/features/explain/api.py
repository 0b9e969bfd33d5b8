"""`ci_perf.explain`: how both sides of workloads differ, or what limits them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.explain.answer import ExplainedWorkloads
    from ci_perf.session import Listener


def explain(
    select: str | Iterable[str] = (),
    *,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
    **options: Any,  # noqa: ANN401  as `measure`
) -> "ExplainedWorkloads":
    """Profile workloads now, and say how they differ or what limits them; see `ci-perf explain`.

    With `against` (a branch, tag or commit), profiles its merge base, too. All of it takes
    `budget_s` at most; the folder `traces` gets the traces. The other
    `options` are those of `measure`.
    """
    from ci_perf.features.explain import explain
    from ci_perf.gate import arguments
    from ci_perf.session import Listener

    measuring = arguments.measure_options(
        root, {"budget_s": 300.0, **options}, select=arguments.names_of(select)
    )
    return explain.explain_now(
        measuring, notify=notify or say_nothing, listener=listener or Listener()
    )

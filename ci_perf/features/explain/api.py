"""`ci_perf.explain`: why workloads moved, or what limits them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import UsageError

if TYPE_CHECKING:
    from ci_perf.features.explain.answer import ExplainedWorkloads
    from ci_perf.model.run import Run
    from ci_perf.session import Listener


def explain(
    select: str | Iterable[str] = (),
    *,
    run: "Run | Location | None" = None,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
    **options: Any,  # noqa: ANN401  as `measure`
) -> "ExplainedWorkloads":
    """Say why workloads moved, or what limits them; see `ci-perf explain`.

    With `run`, explains what that run has measured, and launches nothing. Else profiles workloads
    now, with `against` (a branch, tag or commit) its merge base, too, for `budget_s`; the folder
    `traces` gets their traces, taken as `tracing` says, `snapshot` what CUDA's memory holds. The
    other `options` are those of `measure`.
    """
    from ci_perf.features.explain import explain
    from ci_perf.gate import arguments
    from ci_perf.model.task import Tracing

    if run is None:
        from ci_perf.session import Listener

        measuring = arguments.measure_options(
            root, {"budget_s": 300.0, **options}, select=arguments.names_of(select)
        )
        return explain.explain_now(
            measuring, notify=notify or say_nothing, listener=listener or Listener()
        )
    if options.get("against") is not None:
        raise UsageError("against: expected none with a run, which has its own base")
    has_tracing = options.get("tracing") not in {None, Tracing()}
    if options.get("traces") or options.get("snapshot") or has_tracing:
        said = "--traces, --snapshot, --steps, --stacks, --activities"
        raise UsageError(f"{said}: expected none with a run, which launches nothing")
    return explain.explain_run(
        arguments.run_of(root, run),
        arguments.names_of(select),
        arguments.folders_of(
            root, options.get("workloads", "workloads"), options.get("baselines", "baselines")
        ),
        notify=notify or say_nothing,
    )

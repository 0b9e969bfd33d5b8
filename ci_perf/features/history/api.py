"""`ci_perf.history` and `ci_perf.backfill`: the past of a branch."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.history.backfilled import Backfill
    from ci_perf.features.history.branch_history import BranchHistory
    from ci_perf.report.frame import DataFrame
    from ci_perf.session import Listener


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """The history of a branch; ``document`` is the whole of it."""

    document: "BranchHistory"

    def to_frame(self) -> "DataFrame":
        """Return a row per session and metric: its centre, and its lowest and highest launch."""
        from ci_perf.features.history import history_frame

        return history_frame.from_history(self.document)


def history(
    *select: str,
    ref: str = "HEAD",
    root: Location | None = None,
    baselines: Location = "baselines",
    workloads: Location = "workloads",
    machines: str | Iterable[str] = (),
    repository_url: str = "",
    notify: Notify | None = None,
) -> "LoadedHistory":
    """Read every session that a branch has committed, from git alone; see `ci-perf history`.

    The result has `.document`, the history, and `.to_frame()`, a row per session and metric.
    `select` names workloads, `machines` folders of `baselines`.
    """
    from ci_perf.features.history import history
    from ci_perf.gate import arguments

    options = history.HistoryOptions(
        root=arguments.root_of(root),
        baselines=arguments.below(root, baselines),
        workloads=arguments.below(root, workloads),
        names=select,
        machines=arguments.names_of(machines),
        ref=ref,
        repository_url=repository_url,
    )
    return LoadedHistory(history.read(options, notify=notify or say_nothing))


def backfill(
    commits: str,
    select: str | Iterable[str] = (),
    *,
    every: int = 1,
    force: bool = False,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
    **options: Any,  # noqa: ANN401  as `ci_perf.measure`
) -> "Backfill":
    """Measure the `commits` ("FROM..TO") that have no session in the baselines, oldest first.

    Writes the files, which you then commit; see `ci-perf history --measure`. Each session has a
    `listener` of its own. The other `options` are those of `ci_perf.measure`.
    """
    from ci_perf.features.history import backfill
    from ci_perf.gate import arguments
    from ci_perf.session import Listener

    filling = backfill.BackfillOptions(
        measuring=arguments.measure_options(root, options, select=select),
        commits=commits,
        every=every,
        force=force,
    )
    return backfill.backfill(filling, notify=notify or say_nothing, listener=listener or Listener)

"""`ci_perf.history` and `ci_perf.backfill`: the past of a branch."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.history.backfilled import Backfill
    from ci_perf.features.history.branch_history import BranchHistory
    from ci_perf.gate.runners import Runner
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
    suite: str = "",
    every: int = 1,
    force: bool = False,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    wait_s: float | None = None,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
) -> "Backfill":
    """Measure the `commits` ("FROM..TO") that have no session in the baselines, oldest first.

    Writes the files, which you then commit; see `ci-perf history --measure`. Each session has a
    `listener` of its own.
    """
    from ci_perf.features.history import backfill
    from ci_perf.gate import arguments
    from ci_perf.session import Listener

    options = backfill.BackfillOptions(
        measuring=arguments.measure_options(
            root=root,
            select=select,
            suite=suite,
            workloads=workloads,
            baselines=baselines,
            device=device,
            processes=processes,
            wait_s=wait_s,
            runner=runner,
        ),
        commits=commits,
        every=every,
        force=force,
    )
    return backfill.backfill(options, notify=notify or say_nothing, listener=listener or Listener)

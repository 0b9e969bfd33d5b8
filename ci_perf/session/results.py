"""From what came of the launches of one workload to what the run says of it."""

from dataclasses import dataclass, field

from ci_perf.model import run as runs
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import TaskFailure


@dataclass
class Progress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[WorkerResult] = field(default_factory=list)
    launches_s: list[float] = field(default_factory=list)
    failed: runs.Failed | None = None

    def is_due(self, index: int) -> bool:
        """Whether process `index` (from 0) is to be launched."""
        return self.failed is None and index < self.workload.protocol.processes


def measured(one: Progress) -> runs.Measured:
    """Return a workload with its numbers; it has at least one result."""
    first = one.results[0]
    return runs.Measured(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        launch=one.workload.launch,
        world_size=one.workload.world_size,
        protocol=one.workload.protocol,
        items_per_step=first.items_per_step,
        item_unit=first.item_unit,
        items_per_epoch=first.items_per_epoch,
        precision=first.precision,
        knobs=first.knobs,
        processes=tuple(result.process for result in one.results),
    )


def failed(one: Progress, trouble: TaskFailure) -> runs.Failed:
    """Return a workload without numbers, and why it has none."""
    return runs.Failed(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        launch=one.workload.launch,
        world_size=one.workload.world_size,
        protocol=one.workload.protocol,
        phase=trouble.phase,
        reason=trouble.reason,
        output=trouble.output,
        exhausted=trouble.exhausted,
        processes=tuple(result.process for result in one.results),
    )


def never_started(one: Progress) -> runs.Failed:
    """Return a workload whose turn never came."""
    trouble = TaskFailure(phase=Phase.LAUNCH, reason="interrupted before it was measured")
    return failed(one, trouble)

"""What is known of one workload while a session launches it, and what the run says of it."""

from dataclasses import dataclass, field

from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.run import Failed, Measured
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import TaskFailure


@dataclass
class WorkloadProgress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[WorkerResult] = field(default_factory=list)
    launches_s: list[float] = field(default_factory=list)
    failed: Failed | None = None

    def left(self, index: int) -> int:
        """Return how many processes are to be launched, from number `index` (from 0) on."""
        return 0 if self.failed else max(self.workload.protocol.processes - index, 0)

    def measured(self) -> Measured:
        """Return the workload with its numbers; it has at least one result."""
        first = self.results[0]
        return Measured(
            workload=self.workload.id,
            description=self.workload.description,
            parameters=self.workload.parameters,
            launch=self.workload.launch,
            world_size=self.workload.world_size,
            protocol=self.workload.protocol,
            items_per_step=first.items_per_step,
            item_unit=first.item_unit,
            items_per_epoch=first.items_per_epoch,
            precision=first.precision,
            knobs=first.knobs,
            processes=tuple(result.process for result in self.results),
        )

    def failed_by(self, failure: TaskFailure) -> Failed:
        """Return the workload without numbers, and why it has none."""
        return Failed(
            workload=self.workload.id,
            description=self.workload.description,
            parameters=self.workload.parameters,
            launch=self.workload.launch,
            world_size=self.workload.world_size,
            protocol=self.workload.protocol,
            phase=failure.phase,
            reason=failure.reason,
            output=failure.output,
            exhausted=failure.exhausted,
            processes=tuple(result.process for result in self.results),
        )

    def never_started(self, reason: str) -> Failed:
        """Return the workload as one that the session did not come to."""
        return self.failed_by(TaskFailure(phase=Phase.LAUNCH, reason=reason))

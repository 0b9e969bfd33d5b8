"""Whether a machine was so busy with other things that its numbers must not become a baseline."""

import statistics
from collections.abc import Iterator

from ci_perf.errors import RefusedError
from ci_perf.model.evidence import HostEvidence
from ci_perf.model.run import Run

# What speaks for a process is one of its blocks, mostly the middle one. Where tasks waited for more
# than half of the timed region, so was the middle block disturbed, and the number says how busy the
# machine was.
HEAVY = 0.5


def refuse(run: Run) -> None:
    """Raise RefusedError where the middle one of all processes met heavy pressure.

    The middle one: a single workload may keep all CPUs busy by itself.
    """
    shares = [f"{what} {share:.0%} of the timed region" for what, share in _shares(run)]
    if shares:
        raise RefusedError(
            f"run {run.id}: expected numbers of a machine without other work, found that "
            f"{' and '.join(shares)} (median of its processes, expected at most {HEAVY:.0%}); "
            "measure again when the machine is quiet (`ci-perf run --wait 10m`), or accept them "
            "all the same with `ci-perf accept --force`"
        )


def _shares(run: Run) -> Iterator[tuple[str, float]]:
    """Yield what took a heavy share of the timed region, and the share."""
    hosts = list(_hosts(run))
    # Ranks that end a step together wait for a CPU without anybody else's fault.
    alone = list(_hosts(run, world_size=1))
    seen = {
        "tasks waited for a CPU": [host.cpu_pressure for host in alone],
        "tasks waited for memory": [host.memory_pressure for host in hosts],
        "the CPU quota took": [_throttled(host) for host in hosts],
    }
    for what, shares in seen.items():
        known = [share for share in shares if share is not None]
        if known and statistics.median(known) > HEAVY:
            yield what, statistics.median(known)


def _hosts(run: Run, *, world_size: int | None = None) -> Iterator[HostEvidence]:
    for workload in run.measured:
        if world_size in {None, workload.world_size}:
            for process in workload.processes:
                if process.evidence is not None:
                    yield process.evidence.host


def _throttled(host: HostEvidence) -> float | None:
    if host.throttled_s is None or not host.wall_s:
        return None
    return host.throttled_s / host.wall_s

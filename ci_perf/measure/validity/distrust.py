"""Every reason to distrust the machine: its code and how much weight it has.

docs/machine.md explains each with its cause and its cure; a test compares the two lists.
"""

from ci_perf.model.validity import Reason, Status

STATUS = {
    "interrupted": Status.INVALID,
    "canary_failed": Status.DEGRADED,
    "low_disk": Status.INVALID,
    "host_pressure": Status.DEGRADED,
    "memory_pressure": Status.DEGRADED,
    "cgroup_throttled": Status.DEGRADED,
    "gpu_lost": Status.INVALID,
    "gpu_busy": Status.INVALID,
    "foreign_memory": Status.INVALID,
    "second_process": Status.INVALID,
    "ecc_errors": Status.INVALID,
    "thermal_throttling": Status.INVALID,
    "hardware_slowdown": Status.INVALID,
    "clocks_held": Status.DEGRADED,
    "power_limited": Status.DEGRADED,
    "pcie_link": Status.DEGRADED,
    "mig_mode": Status.DEGRADED,
    "unwatched": Status.DEGRADED,
    "unpinned_image": Status.DEGRADED,
    "incomplete": Status.DEGRADED,
}

# A sentence with figures.
_DETAIL_CHARS = 1000


def reason(code: str, detail: str, workload: str = "") -> Reason:
    """Make a reason; `workload` is the one during which it was seen."""
    return Reason(code=code, status=STATUS[code], detail=detail[:_DETAIL_CHARS], workload=workload)

"""Sources of workloads that need no torch, and a protocol by which they take no time."""

import msgspec

from ci_perf.model.suite import Protocol
from ci_perf.model.task import Task, TaskFailure
from tests.plans import a_planned

HEAD = "from ci_perf.workload import Workload\n"
BUILD = "def build(context):\n    return Workload(step=step)\n"
PASS = "def step():\n    pass\n"
GOOD = HEAD + PASS + BUILD
QUICK = Protocol(
    timeout_s=20,
    warmup_min_s=0.01,
    warmup_max_s=0.05,
    timed_min_blocks=3,
    timed_min_s=0.02,
    timed_max_s=0.1,
    block_min_s=0.002,
)


def a_task(file, *, root=None, protocol=(), workload=(), **more):
    """A launch of this file by QUICK, with these fields of protocol, workload and task."""
    root = str(root or file.parent)
    settings = msgspec.structs.replace(QUICK, **dict(protocol))
    planned = a_planned("it", file=str(file), protocol=settings, **dict(workload))
    plain = Task(workload=planned, index=0, device="cpu", root=root, data_dir=root)
    return msgspec.structs.replace(plain, **more)


def result_of(outcome):
    """Return the result; failure would be a surprise."""
    assert not isinstance(outcome, TaskFailure), f"{outcome.reason}: {outcome.output}"
    return outcome


def failure_of(outcome):
    """Return the failure; a result would be a surprise."""
    assert isinstance(outcome, TaskFailure)
    return outcome

"""How the ranks of one workload agree on a number, and how far apart they arrive.

torch is imported by `join`, not by importing this file.
"""

import datetime as dt
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

from ci_perf.measuring.device import Step
from ci_perf.model.process import Ranks

# Set by torchrun: how often it has started these ranks again.
_RESTARTS = "TORCHELASTIC_RESTART_COUNT"

# The parent ends a process that hangs. This ends a rank whose parent does not.
_TIMEOUT_S = 1800.0


class Synchronised(Protocol):
    """The one thing that the skew needs from a device."""

    def synchronize(self) -> None:
        """Wait until the device has finished what it was asked for."""


class Group:
    """All ranks of a workload, seen from one of them: here the only one, which always agrees.

    What ranks agree on goes over the host, by connections of our own: nothing is queued on a GPU,
    and nothing mixes with what the workload sends.
    """

    rank: int = 0
    world_size: int = 1

    def maximum(self, value: float) -> float:
        """Return the largest `value` of all ranks, the same in each of them."""
        return max(self.gather(value))

    def gather(self, value: float) -> tuple[float, ...]:
        """Return the `value` of every rank, in their order."""
        return (value,)

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def describe(self, skew: float | None) -> Ranks | None:
        """Say what the ranks found; `skew` is that of `arrival_skew`. `None` for one process."""
        del skew
        return None

    def leave(self) -> None:
        """End the connections to the other ranks."""


class _Joined(Group):
    """One of the ranks that torchrun started."""

    def __init__(self, distributed: Any, agreeing: Any, backend: str) -> None:  # noqa: ANN401  untyped
        self._distributed = distributed
        self._agreeing = agreeing
        self._backend = backend
        self.rank = distributed.get_rank()
        self.world_size = distributed.get_world_size()

    def gather(self, value: float) -> tuple[float, ...]:
        import torch

        mine = torch.tensor([value], dtype=torch.float64)
        all_of_them = [torch.empty_like(mine) for _ in range(self.world_size)]
        self._distributed.all_gather(all_of_them, mine, group=self._agreeing)
        return tuple(float(element) for element in all_of_them)

    def barrier(self) -> None:
        self._distributed.barrier(group=self._agreeing)

    def describe(self, skew: float | None) -> Ranks:
        return Ranks(
            world_size=self.world_size,
            restarts=int(os.environ.get(_RESTARTS, "0")),
            backend=self._backend,
            arrival_skew_s=skew,
        )

    def leave(self) -> None:
        if self._distributed.is_initialized():  # the workload may have tidied up itself
            self._distributed.destroy_process_group()


def join(device: str, *, timeout_s: float = _TIMEOUT_S) -> Group:
    """Meet the other ranks that torchrun started; to be called once by each of them.

    The default group, which the workload uses, is made by nccl for a CUDA `device` and by gloo for
    "cpu". Who does not come within `timeout_s`, or does not answer so long, is an exception.
    """
    from torch import distributed

    limit = dt.timedelta(seconds=timeout_s)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    # Bound to no device: nccl would then connect, and split into subgroups, in other ways than it
    # does for most programs.
    distributed.init_process_group(backend, timeout=limit)
    agreeing = distributed.new_group(backend="gloo", timeout=limit)
    return _Joined(distributed, agreeing, backend)


def local_rank() -> int:
    """Return the number of this rank among those of this host, which torchrun has given it."""
    return int(os.environ["LOCAL_RANK"])


def device_of_rank(device: str, local_rank: int) -> str:
    """Name the device of a rank: GPUs are dealt out in order, from `device` on."""
    kind, _, first = device.partition(":")
    return f"cuda:{int(first or 0) + local_rank}" if kind == "cuda" else device


def arrival_skew(
    group: Group,
    device: Synchronised,
    local_step: Step | None,
    steps: int,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> float | None:
    """Return how many seconds the first rank is ahead of the last one, the median of `steps` steps.

    All ranks start together and do one step without communication. `clock` must be the same for all
    of them: the monotonic one counts from the start of the host. `None` where nobody waits.
    """
    if local_step is None or group.world_size == 1:
        return None
    arrivals = [_arrivals(group, device, local_step, clock) for _ in range(steps + 1)]
    # The first step that leaves out the communication is a first one in many ways.
    return statistics.median(max(times) - min(times) for times in arrivals[1:])


def _arrivals(
    group: Group, device: Synchronised, local_step: Step, clock: Callable[[], float]
) -> tuple[float, ...]:
    device.synchronize()
    group.barrier()
    local_step()
    device.synchronize()
    return group.gather(clock())

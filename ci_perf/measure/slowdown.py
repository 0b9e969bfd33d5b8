"""A step that takes a known share longer, so that a runner can show what it would notice."""

import time
from collections.abc import Callable

from ci_perf.measure.device import CudaDevice, Device, Step

Clock = Callable[[], float]
# Keeps the device busy for about this many of its cycles.
Sleep = Callable[[int], object]

# At 2 GHz half a millisecond: long against an event, short enough not to be noticed.
_TRIAL_CYCLES = 1_000_000
_TRIALS = 5


def of(step: Step, share: float, device: Device, *, step_s: float) -> Step:
    """Return `step` when `share` is 0, else one that takes this share longer.

    `step_s` is how long it takes as it is. On a GPU both the device and the host get more to do,
    so that a step takes longer whichever of the two it is bound by.
    """
    if not share:
        return step
    if not isinstance(device, CudaDevice):
        return slowed(step, share)
    import torch

    sleep: Sleep = torch.cuda._sleep  # noqa: SLF001  torch's own tests keep a GPU busy by it
    return slowed(step, share, occupy=occupying(device, share * step_s, sleep))


def slowed(
    step: Step,
    share: float,
    *,
    occupy: Callable[[], object] = lambda: None,
    clock: Clock = time.perf_counter,
) -> Step:
    """Return a step after which the host is busy for `share` of the time that it just took.

    `occupy` queues work for the device; how long that takes is part of the host's share.
    """

    def slower() -> object:
        begin = clock()
        result = step()
        end = clock()
        occupy()
        until = end + share * (end - begin)
        while clock() < until:
            pass
        return result

    return slower


def occupying(device: Device, seconds: float, sleep: Sleep) -> Callable[[], object]:
    """Return a call that queues work which keeps `device` busy for `seconds`."""
    device.time_block(lambda: sleep(_TRIAL_CYCLES), 1)  # the first launch of a kernel loads it
    trial = device.time_block(lambda: sleep(_TRIAL_CYCLES), _TRIALS)
    cycles = round(_TRIAL_CYCLES * seconds / (trial.device_s or trial.step_s))
    return lambda: sleep(cycles)

"""The peaks of memory, of the host and of every card, in a pass of their own."""

from collections.abc import Iterator

import msgspec

from ci_perf.measure import device
from ci_perf.measure.device import Device, Step
from ci_perf.measure.distributed import Group
from ci_perf.model.process import DeviceMemory, Memory
from ci_perf.system import host


def take(here: Device, step: Step, steps: int, group: Group) -> Memory:
    """Read the peaks over `steps` steps; of several ranks, each peak is the highest of any."""
    here.reset_peaks()
    here.time_block(step, steps)
    cards = [card for memory in here.memory() for card in _of_every_rank(memory, group)]
    return msgspec.structs.replace(
        of_host(group),
        device=device.highest(cards),
        cards=tuple(cards) if len(cards) > 1 else (),
    )


def of_host(group: Group) -> Memory:
    """Read how much of the host's memory was in use at the peak so far, without any step."""
    return Memory(host_rss_peak_bytes=round(group.maximum(host.rss_peak_bytes())), device=None)


def _of_every_rank(memory: DeviceMemory, group: Group) -> Iterator[DeviceMemory]:
    """Yield the memory of each rank's card. They tell each other numbers only: -1 is `None`."""
    fields = msgspec.structs.asdict(memory)
    told = [group.gather(-1 if value is None else value) for value in fields.values()]
    for values in zip(*told, strict=True):
        known = (None if value < 0 else round(value) for value in values)
        yield DeviceMemory(**dict(zip(fields, known, strict=True)))

"""Memory of the host and of every card: its peaks, and whether an error means that it ran out."""

import contextlib
import errno
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from ci_perf.measuring.device import Device, Step, has_children, highest
from ci_perf.measuring.distributed import Group
from ci_perf.model.process import DeviceMemory, Exhausted, Memory
from ci_perf.system import linux

# The table of torch's allocator has some 40 lines; a record of a thousand failures stays readable.
_MAX_SUMMARY_CHARS = 6_000

# Where torch has no class of its own for it: what its CUDA libraries say through a RuntimeError.
_DEVICE_WORDS = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    # NCCL, whose last warning torch repeats: with the number of the error since 2.18.
    "Cuda failure 'out of memory'",
    "Cuda failure 2 'out of memory'",
    "Failed to CUDA calloc",
)
# What says nothing of memory when there is none left to map a library, or to make an error in.
_MISLED = (ImportError, OSError, SystemError)
# So close to its limit a process cannot load the next library.
_NEARLY = 0.8
# The same for memory of the host: torch's allocator, and C++ itself.
_HOST_WORDS = ("DefaultCPUAllocator: can't allocate memory", "std::bad_alloc")


def read_peaks(here: Device, step: Step, steps: int, group: Group) -> Memory:
    """Read the peaks over `steps` steps; of several ranks, each peak is the highest of any."""
    here.reset_peaks()
    here.time_block(step, steps)
    cards = [card for memory in here.memory() for card in _read_every_rank(memory, group)]
    return msgspec.structs.replace(host_peak(group), device=highest(cards))


def host_peak(group: Group) -> Memory:
    """Read how much of the host's memory was in use at the peak so far, without any step."""
    return Memory(host_rss_peak_bytes=round(group.maximum(linux.rss_peak_bytes())), device=None)


@contextlib.contextmanager
def note_children(group: Group) -> Iterator[Callable[[], bool]]:
    """Within, note whether processes run below any rank; ask afterwards."""
    before = _faults_of_children()
    yield lambda: bool(group.maximum(has_children() or _faults_of_children() > before))


def _faults_of_children() -> int:
    """Count the page faults of the children that have ended; each has had some."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def _read_every_rank(memory: DeviceMemory, group: Group) -> Iterator[DeviceMemory]:
    """Yield the memory of each rank's card. They tell each other numbers only: -1 is `None`."""
    fields = msgspec.structs.asdict(memory)
    by_field = [group.gather(-1 if value is None else value) for value in fields.values()]
    for values in zip(*by_field, strict=True):
        known = (None if value < 0 else round(value) for value in values)
        yield DeviceMemory(**dict(zip(fields, known, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressSpace:
    """The limit of this process, and the largest use so far; `None` is no limit, or unknown."""

    limit_bytes: int | None
    peak_bytes: int | None

    def is_nearly_full(self) -> bool:
        """Whether it came so near its limit that no further library can be loaded."""
        return self.limit_bytes is not None and (self.peak_bytes or 0) >= _NEARLY * self.limit_bytes


def address_space() -> AddressSpace:
    """Read that of this process."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return AddressSpace(
        limit_bytes=None if limit == resource.RLIM_INFINITY else limit,
        peak_bytes=linux.address_space_peak_bytes(),
    )


def find_exhausted(
    error: BaseException, device: Device | None, space: AddressSpace | None = None
) -> Exhausted | None:
    """Return what is known of it when `error`, or what caused it, says that memory ran out.

    `device` is `None` when none had been opened yet; `space` is that of this process unless given.
    Never raises.
    """
    space = space or address_space()
    for cause in _chain(error):
        if kind := _kind(cause, space):
            return Exhausted(
                kind=kind,
                host_rss_peak_bytes=linux.rss_peak_bytes(),
                device=_peaks(device),
                allocator=_summary() if kind == "device" else "",
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything that led to it; compilers and loaders wrap what they catch."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        link = waiting.pop(0)
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__cause__, link.__context__]
            waiting += getattr(link, "exceptions", ())  # of a group


def _kind(error: BaseException, space: AddressSpace) -> Literal["device", "host", "limit"] | None:
    text = str(error) if isinstance(error, RuntimeError) else ""
    if _is_of_torch(error) or any(words in text for words in _DEVICE_WORDS):
        return "device"
    if isinstance(error, _MISLED) and space.is_nearly_full():
        return "limit"
    if (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in text for words in _HOST_WORDS)
    ):
        return "host" if space.limit_bytes is None else "limit"
    return None


def _is_of_torch(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    kind = getattr(torch, "OutOfMemoryError", None)
    return isinstance(kind, type) and isinstance(error, kind)


def _peaks(device: Device | None) -> DeviceMemory | None:
    """Ask the device, which may be in no state to answer."""
    if device is not None:
        with contextlib.suppress(Exception):
            return highest(device.memory())
    return None


def _summary() -> str:
    """Ask torch's allocator for its table; a context that an error has broken gives none."""
    torch = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            text = str(torch.cuda.memory_summary(abbreviated=True))
            return text[:_MAX_SUMMARY_CHARS]
    return ""

"""Whether an error means that memory ran out: whose memory, and how much was in use by then."""

import contextlib
import errno
import resource
import sys
from collections.abc import Iterator
from typing import Literal

from ci_perf.measure.device import Device, highest
from ci_perf.model.process import DeviceMemory, Exhausted
from ci_perf.system import host

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


def of(error: BaseException, device: Device | None) -> Exhausted | None:
    """Return what is known of it when `error`, or what caused it, says that memory ran out.

    `device` is `None` when none had been opened yet. Never raises.
    """
    for one in _chain(error):
        if kind := _kind(one):
            return Exhausted(
                kind=kind,
                host_rss_peak_bytes=host.rss_peak_bytes(),
                device=_peaks(device),
                allocator=_summary() if kind == "device" else "",
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything that led to it; compilers and loaders wrap what they catch."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]
            waiting += getattr(one, "exceptions", ())  # of a group


def _kind(error: BaseException) -> Literal["device", "host", "limit"] | None:
    text = str(error) if isinstance(error, RuntimeError) else ""
    if _is_of_torch(error) or any(words in text for words in _DEVICE_WORDS):
        return "device"
    if isinstance(error, _MISLED) and _is_at_its_limit():
        return "limit"
    if (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in text for words in _HOST_WORDS)
    ):
        return "limit" if _is_limited() else "host"
    return None


def _is_of_torch(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    kind = getattr(torch, "OutOfMemoryError", None)
    return isinstance(kind, type) and isinstance(error, kind)


def _is_at_its_limit() -> bool:
    """Whether the largest address space so far comes near the limit of this process."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    return (host.address_space_peak_bytes() or 0) >= _NEARLY * limit


def _is_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


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

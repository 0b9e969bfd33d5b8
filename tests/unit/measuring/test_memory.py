"""Whose peaks of memory are read, and which errors say that memory ran out."""

import errno
import resource
import sys
import types

import pytest

from ci_perf.measuring import memory
from ci_perf.measuring.device import CudaDevice, Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.memory import AddressSpace
from ci_perf.model.process import DeviceMemory
from tests.fakes.stream import Stream

KIB = 1024


class Ranks(Group):
    """This rank and others, each of which has used more than the one before it."""

    def __init__(self, *more_bytes):
        self.more_bytes = more_bytes

    def gather(self, value):
        return (value, *(value if value < 0 else value + more for more in self.more_bytes))

    def maximum(self, value):
        return max(self.gather(value))


def taken(group, *, cards=1, allocator="native"):
    """Return the memory of a step that uses 1 KiB."""
    stream = Stream(allocator=allocator)
    cuda = CudaDevice(stream, 0, stream.clock, cards=cards)

    def step():
        give_back = stream.allocate(KIB)
        give_back()

    return memory.read_peaks(cuda, step, 3, group)


@pytest.mark.parametrize("cards", [1, 4])
def test_the_highest_peak_of_all_cards_and_ranks_counts(cards):
    assert taken(Group(), cards=cards).device.peak_allocated_bytes == KIB
    assert taken(Ranks(500, 100), cards=cards).device.peak_allocated_bytes == KIB + 500


def test_what_no_rank_counts_is_absent():
    assert taken(Ranks(500), allocator="cudaMallocAsync").device.out_of_memory is None


@pytest.mark.parametrize("group", [Group(), Ranks(100)])
def test_a_cpu_has_no_cards(group):
    peaks = memory.read_peaks(Device(), lambda: None, 1, group)

    assert peaks.device is None
    assert peaks.host_rss_peak_bytes > KIB


PEAKS = DeviceMemory(
    peak_allocated_bytes=3,
    peak_reserved_bytes=4,
    peak_active_bytes=3,
    alloc_retries=1,
    out_of_memory=1,
)


class OutOfMemoryError(RuntimeError):
    """Stands for torch's own class, which these tests have no time to import."""


class Answering:
    """Answers as a device does."""

    def memory(self):
        return (PEAKS,)


class BrokenDevice:
    """Fails as a device whose context is broken."""

    def memory(self):
        raise RuntimeError("CUDA error")


UNLIMITED = AddressSpace(limit_bytes=None, peak_bytes=2**40)


def known(error, device=None, space=UNLIMITED):
    """Return what is known of memory that did run out."""
    exhausted = memory.find_exhausted(error, device, space)
    assert exhausted is not None
    return exhausted


@pytest.fixture
def torch(monkeypatch):
    """A torch that has used a GPU."""
    table = "|===|" * 5000
    cuda = types.SimpleNamespace(is_initialized=lambda: True, memory_summary=lambda **_: table)
    module = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_gpu_that_ran_out_is_recorded_with_peaks_and_the_allocators_table(torch):
    exhausted = known(torch.OutOfMemoryError("CUDA out of memory."), Answering())

    assert (exhausted.kind, exhausted.device) == ("device", PEAKS)
    assert exhausted.allocator.startswith("|===|")
    assert len(exhausted.allocator) < 10_000
    assert exhausted.host_rss_peak_bytes
    assert exhausted.host_rss_peak_bytes > 2**20


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "NCCL error: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'",
        "NCCL error: unhandled cuda error\nLast error:\nCuda failure 'out of memory'",
        "NCCL error: unhandled cuda error\nLast error:\nFailed to CUDA calloc async 608 bytes",
    ],
)
def test_a_library_of_cuda_that_found_no_memory_counts_too(words):
    assert known(RuntimeError(words)).kind == "device"


def test_a_broken_device_does_not_hide_the_reason(torch):
    def broken(*, abbreviated):
        raise RuntimeError(f"CUDA error {abbreviated}")

    torch.cuda.memory_summary = broken

    exhausted = known(torch.OutOfMemoryError(), BrokenDevice())

    assert (exhausted.kind, exhausted.device, exhausted.allocator) == ("device", None, "")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=str,
)
def test_the_hosts_memory_is_told_from_the_limit_of_the_process(error):
    limited = AddressSpace(limit_bytes=2**33, peak_bytes=0)

    assert known(error).kind == "host"
    assert known(error, space=limited).kind == "limit"


def test_what_led_to_an_error_is_looked_at_too():
    caused, followed = RuntimeError("the compiler gave up"), RuntimeError("and teardown failed")
    caused.__cause__ = MemoryError()
    followed.__context__ = caused
    group = ExceptionGroup("loaders", [ValueError(), MemoryError()])

    for error in (caused, followed, group):
        assert known(error).kind == "host"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError("NCCL error\nLast error:\nCuda failure 1 'invalid argument'"),
        ValueError("expected no CUDA out of memory in the log"),
        FileNotFoundError(errno.ENOENT, "No such file"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_other_errors_are_not_about_memory_and_those_that_name_each_other_end(error):
    assert memory.find_exhausted(error, None) is None
    error.__cause__ = other = KeyError()
    other.__cause__ = error
    assert memory.find_exhausted(error, None) is None


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
    ],
)
@pytest.mark.parametrize(("used", "kind"), [(0.9, "limit"), (0.5, None)])
def test_an_error_near_the_limit_is_one_of_memory(error, used, kind):
    space = AddressSpace(limit_bytes=1000, peak_bytes=round(1000 * used))

    exhausted = memory.find_exhausted(error, None, space)

    assert (exhausted.kind if exhausted else None) == kind


def test_the_limit_of_this_process_is_read():
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]

    assert memory.address_space().limit_bytes == (
        None if limit == resource.RLIM_INFINITY else limit
    )

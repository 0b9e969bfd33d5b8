import errno
import resource
import sys
import types

import pytest

from ci_perf.measure import exhaustion
from ci_perf.model.process import DeviceMemory

PEAKS = DeviceMemory(
    peak_allocated_bytes=3,
    peak_reserved_bytes=4,
    peak_active_bytes=3,
    alloc_retries=1,
    out_of_memory=1,
)


class OutOfMemoryError(RuntimeError):
    """Stands for torch's own class, which these tests have no time to import."""


class Device:
    """Answers as a device does, or fails as one whose context is broken."""

    def __init__(self, answer):
        self._answer = answer

    def memory(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return (self._answer,)


def known(error, device=None):
    """Return what is known of memory that did run out."""
    found = exhaustion.of(error, device)
    assert found is not None
    return found


@pytest.fixture
def torch(monkeypatch):
    """A torch that has used a GPU."""
    table = "|===|" * 5000
    cuda = types.SimpleNamespace(is_initialized=lambda: True, memory_summary=lambda **_: table)
    module = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def unlimited(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)


def test_a_gpu_that_ran_out_is_recorded_with_peaks_and_the_allocators_table(torch):
    found = known(torch.OutOfMemoryError("CUDA out of memory."), Device(PEAKS))

    assert (found.kind, found.device) == ("device", PEAKS)
    assert found.allocator.startswith("|===|")
    assert len(found.allocator) < 10_000
    assert found.host_rss_peak_bytes
    assert found.host_rss_peak_bytes > 2**20


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

    found = known(torch.OutOfMemoryError(), Device(RuntimeError("CUDA error")))

    assert (found.kind, found.device, found.allocator) == ("device", None, "")


@pytest.mark.usefixtures("unlimited")
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
def test_the_hosts_memory_is_told_from_the_limit_of_the_process(monkeypatch, error):
    assert known(error).kind == "host"

    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**33, 2**34))
    assert known(error).kind == "limit"


@pytest.mark.usefixtures("unlimited")
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
def test_other_errors_are_not_about_memory(error):
    assert exhaustion.of(error, None) is None


def test_errors_that_name_each_other_end():
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first

    assert exhaustion.of(first, None) is None


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        SystemError("error return without exception set"),
    ],
)
@pytest.mark.parametrize(("used", "kind"), [(0.9, "limit"), (0.5, None)])
def test_an_error_near_the_limit_is_one_of_memory(monkeypatch, error, used, kind):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, resource.RLIM_INFINITY))
    monkeypatch.setattr("ci_perf.system.host.address_space_peak_bytes", lambda: 1000 * used)

    found = exhaustion.of(error, None)

    assert (found.kind if found else None) == kind

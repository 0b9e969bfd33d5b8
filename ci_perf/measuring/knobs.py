"""Fix seeds, threads, CPUs and precision before measuring, and record them after timing.

The imports and the end of a child process are here, too. The parent fixes what must be in the
environment before Python starts; see launch/local.py.
"""

import contextlib
import functools
import gc
import operator
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ci_perf.model.base import Scalar
from ci_perf.model.suite import OWN, Protocol

# Variables that decide how many threads there are, or which kernels run.
_VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "KMP_AFFINITY",
    "LD_PRELOAD",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "PYTHONHASHSEED",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
_VALUE_CHARS = 500

# Below torch.backends since torch 2.9: the default of all, and who may differ from it.
_FP32_PRECISION = (
    "fp32_precision",
    "cuda.matmul.fp32_precision",
    "cudnn.fp32_precision",
    "cudnn.conv.fp32_precision",
    "cudnn.rnn.fp32_precision",
    "mkldnn.fp32_precision",
    "mkldnn.conv.fp32_precision",
    "mkldnn.matmul.fp32_precision",
    "mkldnn.rnn.fp32_precision",
)
# Objects of the youngest generation: more than an import makes. Nobody else sets this number.
_NEVER_COLLECT = 2**31 - 1


@contextlib.contextmanager
def pause_collector() -> Iterator[None]:
    """Import without the garbage collector, which would look for garbage in what stays.

    What has been imported is left out of later collections, in a launch until the timed region
    ends. A file that disables the collector, or sets other thresholds, keeps it so.
    """
    before = gc.get_threshold()
    never = (_NEVER_COLLECT, *before[1:])
    gc.set_threshold(*never)
    try:
        yield
    finally:
        if gc.get_threshold() == never:
            gc.set_threshold(*before)
        gc.freeze()


def fix_process(protocol: Protocol) -> None:
    """Limit CPUs and address space, before torch is imported and starts its threads.

    Raises OSError or ValueError where the machine does not have what was asked for.
    """
    if protocol.cpus:
        wanted = _cpus(protocol.cpus)
        allowed = os.sched_getaffinity(0)
        if not wanted <= allowed:
            raise ValueError(
                f"cpus = {protocol.cpus!r}: expected CPUs among {_spell_cpus(allowed)}, "
                f"found {_spell_cpus(wanted - allowed)}; change `cpus` in suite.toml"
            )
        os.sched_setaffinity(0, wanted)
    if protocol.memory_limit_bytes:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (protocol.memory_limit_bytes, hard))


def fix_libraries(protocol: Protocol) -> None:
    """Seed every generator that is loaded, and leave torch nothing to choose from run to run."""
    random.seed(protocol.seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(protocol.seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(protocol.seed)
        if protocol.threads != OWN:
            torch.set_num_threads(protocol.threads)
        # It tries kernels out and may take another one in the next process.
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        # "highest" is also no TF32 in matrix products; a workload that wants it says so in build.
        torch.set_float32_matmul_precision("highest")


def read_knobs() -> dict[str, Scalar]:
    """Say which knobs held, as the process found them: the workload may have turned some.

    A knob that cannot be read is absent. Never raises.
    """
    values: dict[str, Scalar] = {
        name: value[:_VALUE_CHARS]
        for name in (*_VARIABLES, *(each for each in os.environ if each.startswith("NCCL_")))
        if (value := os.environ.get(name))
    }
    values["cpus"] = _spell_cpus(os.sched_getaffinity(0))
    values["gc_thresholds"] = ",".join(map(str, gc.get_threshold()))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        values["memory_limit_bytes"] = limit
    if torch := sys.modules.get("torch"):
        values |= _read_torch_knobs(torch)
    return dict(sorted(values.items()))


def _read_torch_knobs(torch: Any) -> dict[str, Scalar]:  # noqa: ANN401  the module
    read: dict[str, Callable[[], object]] = {
        "torch_threads": torch.get_num_threads,
        "torch_interop_threads": torch.get_num_interop_threads,
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
        "cudnn_deterministic": lambda: torch.backends.cudnn.deterministic,
        "cudnn_allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    }
    for place in _FP32_PRECISION:
        getter = operator.attrgetter(place)
        read[place.replace(".", "_")] = functools.partial(getter, torch.backends)
    values = {name: _read(reader) for name, reader in read.items()}
    return {name: value for name, value in values.items() if value is not None}


def _read(reader: Callable[[], object]) -> Scalar | None:
    """Return what a knob says; `None` where this torch does not have it, or cannot tell.

    The older names raise once a workload has used `fp32_precision`, which then says it.
    """
    try:
        value = reader()
    except Exception:  # noqa: BLE001  no knob is worth the numbers that were measured under it
        return None
    return value if isinstance(value, (bool, int, float)) else str(value)[:_VALUE_CHARS]


def _cpus(text: str) -> set[int]:
    """Read "0-3,8", as taskset spells it."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        among = range(int(first), int(last or first) + 1)
        if not among:
            raise ValueError(
                f"cpus = {text!r}: expected ranges that go up, found {part!r}; change `cpus` in "
                "suite.toml"
            )
        cpus |= set(among)
    return cpus


def _spell_cpus(cpus: set[int]) -> str:
    """Write {0, 1, 2, 3, 8} as "0-3,8"."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][-1] + 1:
            ranges[-1][1:] = [cpu]
        else:
            ranges.append([cpu])
    return ",".join("-".join(map(str, bounds)) for bounds in ranges)


def end_process(code: int) -> NoReturn:
    """End this process at once, with what it has printed.

    An interpreter that has imported torch takes 0.4 s to take itself apart. What else would be done
    at its end, by exit handlers and threads that go on, is not done.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # whoever had it may have closed or removed it
            stream.flush()
    os._exit(code)

"""What could change a number from machine to machine is fixed here, and written down after timing.

The parent fixes what must be in the environment before Python starts; see launch/local.py.
"""

import gc
import os
import random
import resource
import sys
from typing import Any

from ci_perf.model.base import Scalar
from ci_perf.model.suite import Protocol

# Variables that decide how many threads there are, or which kernels run.
_VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "KMP_AFFINITY",
    "LD_PRELOAD",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "PYTHONHASHSEED",
    "PYTORCH_CUDA_ALLOC_CONF",
)
_VALUE_CHARS = 500


def fix_process(protocol: Protocol) -> None:
    """Limit CPUs and address space, before torch is imported and starts its threads.

    Raises OSError or ValueError where the machine does not have what was asked for.
    """
    if protocol.cpus:
        wanted = _cpus(protocol.cpus)
        allowed = os.sched_getaffinity(0)
        if not wanted <= allowed:
            raise ValueError(
                f"cpus = {protocol.cpus!r}: expected CPUs among {_spelled(allowed)}, "
                f"found {_spelled(wanted - allowed)}; change `cpus` in suite.toml"
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
        torch.set_num_threads(protocol.threads)
        # It tries kernels out and may take another one in the next process.
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        # "highest" is also no TF32 in matrix products; a workload that wants it says so in build.
        torch.set_float32_matmul_precision("highest")


def held() -> dict[str, Scalar]:
    """Say which knobs held, as the process found them: the workload may have turned some."""
    found: dict[str, Scalar] = {
        name: value[:_VALUE_CHARS] for name in _VARIABLES if (value := os.environ.get(name))
    }
    found["cpus"] = _spelled(os.sched_getaffinity(0))
    found["gc_thresholds"] = ",".join(map(str, gc.get_threshold()))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        found["memory_limit_bytes"] = limit
    if torch := sys.modules.get("torch"):
        found |= _of_torch(torch)
    return dict(sorted(found.items()))


def _of_torch(torch: Any) -> dict[str, Scalar]:  # noqa: ANN401  the module
    return {
        "torch_threads": torch.get_num_threads(),
        "torch_interop_threads": torch.get_num_interop_threads(),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_allow_tf32": torch.backends.cudnn.allow_tf32,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def _cpus(text: str) -> set[int]:
    """Read "0-3,8", as taskset spells it."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        among = range(int(first), int(last or first) + 1)
        if not among:
            raise ValueError(
                f"cpus = {text!r}: expected ranges that go up, found {part!r}; change `cpus` in "
                "suite.toml"
            )
        found |= set(among)
    return found


def _spelled(cpus: set[int]) -> str:
    """Write {0, 1, 2, 3, 8} as "0-3,8"."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][-1] + 1:
            ranges[-1][1:] = [cpu]
        else:
            ranges.append([cpu])
    return ",".join("-".join(map(str, one)) for one in ranges)

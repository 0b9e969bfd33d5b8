"""Whether the clocks of a process are those with which it began: its author may replace them.

Our own timing keeps the functions that it has imported. What a program reports of itself may not.
"""

import sys
import time
from pathlib import Path
from types import FunctionType

from ci_perf.measuring.device import CudaDevice, Device

_OF_TIME = {
    name: getattr(time, name)
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
}
_OURS = {kind: kind.time_block for kind in (Device, CudaDevice)}
_OF_TORCH = (("Event", "record"), ("Event", "elapsed_time"), ("Event", "synchronize"))


def find_replaced() -> tuple[str, ...]:
    """Name the functions of `time`, of ours and of torch that the author's code has replaced."""
    replaced = [
        f"time.{name}" for name, own in _OF_TIME.items() if getattr(time, name, None) is not own
    ]
    replaced += [
        f"{kind.__name__}.time_block" for kind, own in _OURS.items() if kind.time_block != own
    ]
    if (cuda := sys.modules.get("torch.cuda")) is not None:
        replaced += [
            ".".join(("torch.cuda", *names))
            for names in (*_OF_TORCH, ("synchronize",))
            if not _is_of_torch(cuda, names)
        ]
    return tuple(replaced)


def _is_of_torch(cuda: object, names: tuple[str, ...]) -> bool:
    """Whether a function comes from a file of torch, or from its C code."""
    function = cuda
    for name in names:
        function = getattr(function, name, None)
    if not isinstance(function, FunctionType):
        return type(function).__module__ == "builtins" and callable(function)
    folder = Path(str(sys.modules["torch"].__file__)).parent
    return Path(function.__code__.co_filename).is_relative_to(folder)

"""Try what a measurement relies on: each check in a child of its own, while the device is ours."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.features.doctor.findings import cuda_works
from ci_perf.launch.local import LocalLauncher
from ci_perf.measuring import library_probe
from ci_perf.model.facts import DeepCheck, DeepOutcome, Torch
from ci_perf.model.task import DEEP_CHECKS, TaskFailure
from ci_perf.system import lock

_TIMEOUT_S = 120.0
_UPDATE = "Update the driver and torch; until it passes, do not trust "
# By check, what to do where it fails; those that begin with "cpu" need no GPU.
_NEXT_STEPS = {
    "cpu_time": "Look for other programs (`top`) and a CPU quota; try again on a quiet machine.",
    "cpu_neighbour": "Busy neighbours go unnoticed here: let one CI job at a time run.",
    "known_kernel": f"{_UPDATE}times and clocks of this GPU.",
    "one_wait": "Unset CUDA_LAUNCH_BLOCKING, and end other profilers: blocks wait too often.",
    "nvml_identity": f"{_UPDATE}clocks, power and memory in reports: NVML reads another GPU.",
    "allocator": f"{_UPDATE}peaks of memory.",
    "gpu_neighbour": "Other programs on this GPU go unnoticed: let one CI job at a time use it.",
}
_DECODER = msgspec.json.Decoder(DeepCheck)


def check_machine(
    torch: Torch,
    root: Path,
    *,
    lock_timeout_s: float,
    waiting: Callable[[str, str, float, float], None],
) -> tuple[DeepCheck, ...]:
    """Try every check. Raises BusyError, and CiPerfError: the machine cannot be described."""
    device, uuid, locks = "", "", ["cpu"]
    if cuda_works(torch):
        machine = LocalLauncher(root).describe("cuda", 1, 1)
        if isinstance(machine, TaskFailure):
            raise CiPerfError(machine.reason, output=machine.output)
        device, uuid = machine.device, "".join(machine.gpus)
        locks += machine.locks
    owner = f"ci-perf doctor, process {os.getpid()}"
    where = lock.folder_of_devices()
    with lock.hold_devices(locks, owner, where=where, timeout_s=lock_timeout_s, waiting=waiting):
        return tuple(
            _check(name, "cpu" if name.startswith("cpu") else device, uuid) for name in _NEXT_STEPS
        )


def _check(name: str, device: str, uuid: str) -> DeepCheck:
    """Try one check; one that crashes or hangs has failed, as a measurement would."""
    if not device:
        why = "It needs a GPU that torch can use."
        return DeepCheck(name=name, outcome=DeepOutcome.SKIPPED, what=why)
    arguments = [name, device, uuid]
    try:
        tried = library_probe.ask(DEEP_CHECKS, arguments, _DECODER, timeout_s=_TIMEOUT_S)
    except library_probe.NoAnswerError as error:
        tried = DeepCheck(name=name, outcome=DeepOutcome.FAILED, what=f"The check {error}")
    if tried.outcome is not DeepOutcome.FAILED:
        return tried
    return msgspec.structs.replace(tried, next_step=_NEXT_STEPS[name])

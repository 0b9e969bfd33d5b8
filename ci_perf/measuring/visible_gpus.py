"""The GPUs that a command may use, as the driver names them. None of them is used here."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# NVML's word for a GPU that is divided into MIG instances.
_MIG_ENABLED = 1


@dataclass(frozen=True, slots=True)
class VisibleGpu:
    """A GPU, or an instance of one: its model, its UUID, and that of the whole GPU."""

    model: str
    uuid: str
    whole: str


def list_gpus(library: Any) -> list[list[VisibleGpu]]:  # noqa: ANN401  pynvml
    """Return every GPU, as its instances if it is divided. Raises NVMLError."""
    library.nvmlInit()
    try:
        handles = map(library.nvmlDeviceGetHandleByIndex, range(library.nvmlDeviceGetCount()))
        return [_list_parts(library, handle) for handle in handles]
    finally:
        library.nvmlShutdown()


def choose(
    gpus: Sequence[Sequence[VisibleGpu]], environment: Mapping[str, str]
) -> list[VisibleGpu]:
    """Return those that CUDA shows to a process with this environment.

    Raises ValueError: a number may name another GPU to CUDA than to the driver.
    """
    names = environment.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return [part for parts in gpus for part in parts]
    if environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        _check_order(gpus, names)
    chosen: dict[VisibleGpu, None] = {}
    for name in map(str.strip, names.split(",")):
        if not (parts := _find(gpus, name)):
            break  # CUDA ignores what follows a name that it does not know
        chosen.update(dict.fromkeys(parts))
    return list(chosen)


def is_divided(library: Any, whole: Any) -> bool:  # noqa: ANN401
    """Whether CUDA computes in instances of this GPU, and never in the whole."""
    try:
        return bool(library.nvmlDeviceGetMigMode(whole)[0] == _MIG_ENABLED)
    except library.NVMLError_NotSupported:
        return False


def list_instances(library: Any, whole: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the instances that this process may see."""
    for index in range(library.nvmlDeviceGetMaxMigDeviceCount(whole)):
        with contextlib.suppress(library.NVMLError_NotFound):
            yield library.nvmlDeviceGetMigDeviceHandleByIndex(whole, index)


def _list_parts(library: Any, whole: Any) -> list[VisibleGpu]:  # noqa: ANN401
    parts = list_instances(library, whole) if is_divided(library, whole) else [whole]
    uuid = str(library.nvmlDeviceGetUUID(whole))
    return [
        VisibleGpu(
            model=str(library.nvmlDeviceGetName(part)),
            uuid=str(library.nvmlDeviceGetUUID(part)),
            whole=uuid,
        )
        for part in parts
    ]


def _check_order(gpus: Sequence[Sequence[VisibleGpu]], names: str) -> None:
    """Raise ValueError: GPUs are named by numbers, which CUDA gives to the fastest first."""
    models = sorted({part.model for parts in gpus for part in parts})
    if len(models) > 1 and any(name.strip().isdecimal() for name in names.split(",")):
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES={names}: expected UUIDs, or CUDA_DEVICE_ORDER=PCI_BUS_ID, "
            f"found numbers: of {' and '.join(models)}, CUDA counts the fastest first"
        )


def _find(gpus: Sequence[Sequence[VisibleGpu]], name: str) -> Sequence[VisibleGpu]:
    """Return the GPU of this number, or those whose UUID begins so."""
    if name.isdecimal():
        return gpus[int(name)] if int(name) < len(gpus) else ()
    every = [part for parts in gpus for part in parts] if name else []
    return [gpu for gpu in every if gpu.uuid.startswith(name) or gpu.whole.startswith(name)]

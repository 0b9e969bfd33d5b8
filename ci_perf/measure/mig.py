"""Which GPU torch has, as NVML names it: of a part (MIG), torch may give the UUID of the whole."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

_ENABLED = 1


def identify(uuid: str, model: str) -> tuple[bool, str]:
    """Return whether a GPU is a MIG instance, and its UUID with the prefix that NVML asks for.

    `uuid` is torch's, without a prefix. Where NVML cannot be asked, the name of the model decides.
    """
    with contextlib.suppress(Exception):  # whatever a driver or its Python module fails by
        import pynvml

        pynvml.nvmlInit()
        try:
            return _ask(pynvml, uuid)
        finally:
            pynvml.nvmlShutdown()
    is_instance = "MIG" in model
    return is_instance, f"{'MIG' if is_instance else 'GPU'}-{uuid}"


def _ask(library: Any, uuid: str) -> tuple[bool, str]:  # noqa: ANN401  the module
    """Ask NVML. Raises NVMLError where it knows neither an instance nor a GPU of this UUID."""
    with contextlib.suppress(library.NVMLError_NotFound, library.NVMLError_InvalidArgument):
        library.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")
        return True, f"MIG-{uuid}"
    whole = library.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    if not _is_divided(library, whole):
        return False, f"GPU-{uuid}"
    # CUDA computes in an instance of a GPU that is divided, and never in the whole.
    instances = list(_instances(library, whole))
    names = tuple(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")))
    named = [instance for instance in instances if instance.startswith(names)]
    likely = named or instances
    return True, likely[0] if len(likely) == 1 else f"GPU-{uuid}"


def _is_divided(library: Any, whole: Any) -> bool:  # noqa: ANN401
    try:
        return bool(library.nvmlDeviceGetMigMode(whole)[0] == _ENABLED)
    except library.NVMLError_NotSupported:
        return False


def _instances(library: Any, whole: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the UUIDs of the instances that this process may see."""
    for index in range(library.nvmlDeviceGetMaxMigDeviceCount(whole)):
        with contextlib.suppress(library.NVMLError_NotFound):
            instance = library.nvmlDeviceGetMigDeviceHandleByIndex(whole, index)
            yield str(library.nvmlDeviceGetUUID(instance))

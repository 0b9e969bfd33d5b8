"""An NVIDIA driver's library for tests: compiled from fakes/nvml.c, told what the GPU is like."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

UUID = "GPU-00000000-0000-0000-0000-000000000000"

# nvmlReturn_t of nvml.h.
NOT_SUPPORTED = 3
DRIVER_NOT_LOADED = 9
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15

_SOURCE = Path(__file__).parent / "fakes/nvml.c"


def build(folder, *flags):
    """Compile the stand-in for NVML into `folder`; returns it, for LD_LIBRARY_PATH."""
    if not shutil.which("gcc"):
        if os.environ.get("CI"):
            pytest.fail("a CI must have gcc: NVML would go untested unseen")
        pytest.skip("gcc is needed to build the stand-in for NVML")
    strict = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", *strict, *flags, _SOURCE, "-o", library], check=True)
    return str(folder)


class Driver:
    """A library and the file from which it learns, at every call, what the GPU is like."""

    def __init__(self, library, state):
        self._state = state
        self._keys: dict[str, object] = {}
        self.environment = {"LD_LIBRARY_PATH": library, "FAKE_NVML_STATE": str(state)}
        self.says()

    def says(self, *, fail=None, **keys):
        """Change what the driver answers from now on; `fail` maps functions to error codes."""
        self._keys |= keys | {f"fail.{name}": code for name, code in (fail or {}).items()}
        new = self._state.with_suffix(".new")
        new.write_text("".join(f"{key}={value}\n" for key, value in self._keys.items()))
        new.rename(self._state)  # whole or not at all: somebody may be reading
        return self

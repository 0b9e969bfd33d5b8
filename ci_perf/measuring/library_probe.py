"""Ask torch and NVML about this machine, in a child process.

A driver that has lost its GPU hangs its caller, and a torch built for another CPU ends the process
with a signal: `doctor` must outlive both.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ci_perf.measuring import knobs
from ci_perf.model.facts import (
    InstalledGpu,
    Nvml,
    NvmlAnswer,
    NvmlError,
    NvmlSilence,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
)
from ci_perf.system import linux

T = TypeVar("T")

_TORCH: "msgspec.json.Decoder[Torch]" = msgspec.json.Decoder(Torch)
_NVML: "msgspec.json.Decoder[Nvml]" = msgspec.json.Decoder(Nvml)

# Importing torch from a cold network disk takes a minute; a hung driver takes for ever.
TIMEOUT_S = 120.0

# nvmlReturn_t of NVIDIA's nvml.h; pynvml's exceptions carry it as `value`.
_ERRORS = {
    4: NvmlError.NO_PERMISSION,
    9: NvmlError.DRIVER_NOT_LOADED,
    12: NvmlError.LIBRARY_NOT_FOUND,
    18: NvmlError.VERSION_MISMATCH,
}


class NoAnswerError(Exception):
    """The child ended without an answer; the text says how."""


def torch_facts(*, timeout_s: float = TIMEOUT_S) -> Torch:
    """Import torch in a child process and let it run one kernel, when it can."""
    try:
        return ask(__name__, ["torch"], _TORCH, timeout_s=timeout_s)
    except NoAnswerError as error:
        return TorchBroken(reason=str(error))


def nvml_facts(*, timeout_s: float = TIMEOUT_S) -> Nvml:
    """Ask NVML in a child process for the driver and the GPUs."""
    try:
        return ask(__name__, ["nvml"], _NVML, timeout_s=timeout_s)
    except NoAnswerError as error:
        return NvmlSilence(trouble=NvmlError.OTHER, detail=str(error))


def read_torch() -> Torch:
    """Import torch in this process."""
    try:
        import torch
    except ModuleNotFoundError as error:
        return TorchMissing() if error.name == "torch" else TorchBroken(reason=_one_line(error))
    except Exception as error:  # noqa: BLE001  a broken build raises OSError, AttributeError, ...
        return TorchBroken(reason=_one_line(error))
    try:
        return _describe(torch)
    except AttributeError as error:  # a folder called torch/ is imported without complaint
        return TorchBroken(reason=_one_line(error))


def read_nvml() -> Nvml:
    """Ask NVML in this process."""
    try:
        import pynvml
    except ImportError as error:
        return NvmlSilence(trouble=NvmlError.NOT_INSTALLED, detail=_one_line(error))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        kind = _ERRORS.get(error.value, NvmlError.OTHER)
        return NvmlSilence(trouble=kind, detail=_one_line(error))
    try:
        driver = _ask(pynvml, "nvmlSystemGetDriverVersion")
        cuda = _ask(pynvml, "nvmlSystemGetCudaDriverVersion")
        count = _ask(pynvml, "nvmlDeviceGetCount")
        return NvmlAnswer(
            driver=None if driver is None else str(driver),
            # 12040 is CUDA 12.4.
            cuda=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            gpus=tuple(_gpu(pynvml, index) for index in range(count or 0)),
        )
    finally:
        pynvml.nvmlShutdown()


def _describe(torch: Any) -> TorchBuild:  # noqa: ANN401  the module; lint must not need torch
    return TorchBuild(
        version=str(torch.__version__),
        cuda=torch.version.cuda,
        hip=torch.version.hip,
        device_count=torch.cuda.device_count(),
        cuda_error=_cuda_error(torch),
    )


def _cuda_error(torch: Any) -> str:  # noqa: ANN401  the module
    """Run one kernel: only that shows a build without kernels for this GPU."""
    if torch.version.cuda is None and torch.version.hip is None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same words follow as an exception
            torch.ones(1, device="cuda").add(1).item()
    except Exception as error:  # noqa: BLE001  torch raises RuntimeError, AssertionError, ...
        return _one_line(error)
    return ""


def _ask(pynvml: Any, question: str) -> Any:  # noqa: ANN401  the module, and its answer
    """Return an answer of NVML; `None` where it has none."""
    try:
        return getattr(pynvml, question)()
    except pynvml.NVMLError:
        return None


def _gpu(pynvml: Any, index: int) -> InstalledGpu:  # noqa: ANN401  the module
    """Name one GPU; a lost one stays in the list, with the driver's answer."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        name = str(pynvml.nvmlDeviceGetName(handle))
    except pynvml.NVMLError as error:
        return InstalledGpu(name=f"GPU {index}", memory_bytes=None, trouble=_one_line(error))
    try:
        return InstalledGpu(name=name, memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        return InstalledGpu(name=name, memory_bytes=None)


def ask(
    module: str, arguments: Sequence[str], decoder: "msgspec.json.Decoder[T]", *, timeout_s: float
) -> T:
    """Return the last line that one of our modules prints. Raises NoAnswerError."""
    # -P: a file torch.py in the user's repository is not torch.
    command = [sys.executable, "-P", "-m", module, *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONPATH": _python_path()},
            errors="replace",
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise NoAnswerError(f"{sys.executable} cannot be started: {error.strerror}") from None
    return _answer(done, decoder)


def _answer(done: "subprocess.CompletedProcess[str]", decoder: "msgspec.json.Decoder[T]") -> T:
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-500:]
        code = done.returncode
        end = f"exit code {code}" if code > 0 else linux.name_signal(code)
        raise NoAnswerError(f"ended with {end}: {said or 'no words'}")
    try:
        # The libraries may print, too; our answer is the last line.
        return decoder.decode(done.stdout.rstrip().rpartition("\n")[2])
    except msgspec.DecodeError as error:
        raise NoAnswerError(f"expected facts as JSON, found: {error}") from None


def _python_path() -> str:
    """Let the child find this package where we found it, installed or not."""
    ours = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), ours]))


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


if __name__ == "__main__":
    answer = {"torch": read_torch, "nvml": read_nvml}[sys.argv[1]]()
    sys.stdout.write("\n" + msgspec.json.encode(answer).decode() + "\n")
    knobs.end_process(0)

"""What to change after frequent errors: different devices, a torch without CUDA, an import."""

import re

SELECTOR = "https://pytorch.org/get-started/locally/"
INSTALL_CUDA = f"remove torch and install a build with CUDA, which {SELECTOR} names"
# How torch's operators say that their tensors lie on different devices; the last two are those of
# convolutions, which name the types of a tensor on a GPU and of one on the CPU.
_TWO_DEVICES = re.compile(
    r"(be|are|is) (not |placed )?(on|at) (the )?same device"
    r"|have (the )?same device"
    r"|is not on the expected device"
    r"|cross-device copies are not allowed"
    r"|type \(torch\.cuda\.\w+\) and \w+ type \(torch\.(?!cuda)"
    r"|type \(torch\.(?!cuda)\w+\) and \w+ type \(torch\.cuda\."
)
_NO_CUDA = "Torch not compiled with CUDA enabled"
_NOT_IMPORTED = ("No module named ", "cannot import name ")
_MOVE = "`model.to(context.device)`, `tensor.to(context.device)`"


def remedy(message: str) -> str:
    """Return what to change in the workload or on the machine; empty for every other error."""
    if _NO_CUDA in message:
        return (
            f"in build, name no device but that of the run: {_MOVE}; to measure on a GPU, "
            f"{INSTALL_CUDA}"
        )
    if _TWO_DEVICES.search(message):
        return f"in build, put the model and every tensor on one device: {_MOVE}"
    if message.startswith(_NOT_IMPORTED):
        return (
            "install what the workload imports where ci-perf runs (`pip install`, or `setup` in "
            "suite.toml), and name the folders of your own sources in `python_path`"
        )
    return ""

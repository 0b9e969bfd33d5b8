"""The folder name of a class of machines."""

import re

from ci_perf.model.environment import CpuMachine, Machine

_UNSAFE = re.compile(r"[^a-z0-9]+")
# Marketing in the names that kernels and drivers give, which only makes folders longer.
_FILLER = re.compile(r"\((r|tm)\)|\b(processor|cpu)\b|@.*$")
# File systems allow 255 bytes for the name of a folder.
MAX_CHARS = 80


def key(machine: Machine) -> str:
    """Name the class of this machine: "nvidia-h200", "cpu-amd-epyc-2-cores".

    A name, not an identity: the file carries all hard facts, and those are compared.
    """
    if isinstance(machine, CpuMachine):
        return f"cpu-{_slug(machine.cpu_model)}-{machine.logical_cores}-cores"
    count = f"-x{machine.gpu_count}" if machine.gpu_count > 1 else ""
    mig = "-mig" if machine.mig and "mig" not in machine.gpu_model.lower() else ""
    return _slug(machine.gpu_model) + count + mig


def _slug(text: str) -> str:
    words = _UNSAFE.sub("-", _FILLER.sub(" ", text.lower())).strip("-")
    return words[:MAX_CHARS].strip("-") or "unknown"

"""The environment of a child process: ours without credentials, and with fixed settings.

A program that nobody wrote for us keeps the settings of its user. The settings that are made inside
the child are in measuring/knobs.py.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_perf.model.suite import OWN, THREAD_VARIABLES, PlannedWorkload, Threads

# Credentials, and files by which a step talks to its CI: the measured code gets none of them.
WITHHELD = (
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
)

# How variables with secrets end. Shorter values (`false`) are words that hide others.
_SECRETS = ("KEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN")
_LEAST_CHARS = 6
_NAME = r"(?i:api[-_]?key|passw(?:or)?d|secret|token)"
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'&;|]+)"
# The user of a URL, which may have a password or be a token; what a header, a variable or an option
# gives; tokens of GitHub and Hugging Face.
_CREDENTIALS = (
    re.compile(r"(https?://)[^/\s'\"]+(?=@)"),
    re.compile(r"((?i:authorization:\s*(?:\w+\s+)?|\bbearer\s+))[^\s\"']+"),
    re.compile(rf"((?:{_NAME}|KEY)=|--[\w-]*{_NAME}\s+){_VALUE}"),
    re.compile(r"()\b(?:gh[opsur]_|github_pat_|hf_)[A-Za-z0-9]{16,}\w*"),
)

# Compiled modules that are ignored lie in the head's checkout alone: the base would compile anew.
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

# Where compiled code of a workload is kept.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")

# Two names of one setting. torch 2.13 has its CUDA part read the older one first, and the part that
# all devices share the newer one.
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")

# The folder of this package, and the one in which it is found.
PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGES = PACKAGE.parent
# Where this process itself has what it needs: what `make wheels` collects lies in the checkout.
# The package itself may be a link.
_DEPENDENCIES = Path(msgspec.__file__).parents[1].resolve()


def hide_credentials(text: str, ours: Mapping[str, str]) -> str:
    """Return a text to be shown or kept: what is or looks like a token or password is ``***``."""
    for name, value in ours.items():
        if name.upper().endswith(_SECRETS) and len(value) >= _LEAST_CHARS:
            text = text.replace(value, "***")
    for credential in _CREDENTIALS:
        text = credential.sub(r"\1***", text)
    return text


def build_child_environment(ours: Mapping[str, str], threads: Threads) -> dict[str, str]:
    """Return the environment of a child that runs our own code, or a function of a user."""
    return {
        **build_environment_as_it_is(ours, threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def build_environment_as_it_is(ours: Mapping[str, str], threads: Threads) -> dict[str, str]:
    """Return the environment of a program that nobody wrote for us: a command, or a test.

    docs/commands.md has a reason for each difference.
    """
    left_out = (*WITHHELD, _NO_BYTECODE)
    kept = {name: value for name, value in ours.items() if name not in left_out}
    fixed = {} if threads == OWN else dict.fromkeys(THREAD_VARIABLES, str(threads))
    return {**kept, **fixed, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}


def build_task_environment(
    ours: Mapping[str, str], workload: PlannedWorkload, cache: Path
) -> dict[str, str]:
    """Return the environment of a measured process, which keeps compiled code below `cache`."""
    protocol = workload.protocol
    is_ours = workload.launch in {"process", "torchrun"}
    build = build_child_environment if is_ours else build_environment_as_it_is
    allocator = {} if protocol.allocator == OWN else dict.fromkeys(_ALLOCATOR, protocol.allocator)
    return {
        **build(ours, protocol.threads),
        **allocator,
        # Also holds what AOTAutograd keeps. Kernels of a user's own are compiled by Triton alone.
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
    }


def apart_from(root: Path, ours: Mapping[str, str], threads: Threads) -> dict[str, str]:
    """Return the environment of a child that must import nothing of the repository in `root`.

    PYTHONPATH may lead there. What else it holds stays (clusters provide torch that way), the
    folder of our dependencies wherever it lies, and this package itself.
    """
    entries = filter(os.path.isabs, ours.get("PYTHONPATH", "").split(os.pathsep))
    places = {entry: Path(os.path.realpath(entry)) for entry in entries}
    apart = [
        entry
        for entry, place in places.items()
        if place == _DEPENDENCIES or not place.is_relative_to(os.path.realpath(root))
    ]
    return {
        **build_child_environment(ours, threads),
        "PYTHONPATH": os.pathsep.join([*apart, str(_PACKAGES)]),
    }

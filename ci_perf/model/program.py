"""Which files a workload uses while it runs, and whether two commits agree in them."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Count, Name, Scalar, Struct, SuiteName, Text

# Git's name of a file's contents: the SHA-1 of "blob LENGTH\0" and the bytes.
Blob = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}(?!\n)$")]
# What is at a path: its kind, and a digest of what is in it where that counts, see Program.
PathState = Annotated[
    str,
    msgspec.Meta(
        pattern="^(file|folder|(file|code|link) [0-9a-f]{40}|folder [0-9a-f]{16})(?!\\n)$"
    ),
]
# The first 16 hexadecimal digits of a SHA-256.
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}(?!\n)$")]
DigestOrEmpty = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{16})?(?!\\n)$")]
# Below the root of the repository, with slashes, without "..": "src/model.py"; "" is the root.
RelativePath = Annotated[str, msgspec.Meta(max_length=4096)]

# What libraries written in C read without asking Python: always among the variables of a record.
NATIVE_VARIABLES = (
    "ATEN_",
    "CUBLAS",
    "CUDA",
    "CUDNN",
    "DNNL_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "HF_",
    "HUGGINGFACE_",
    "KINETO_",
    "KMP_",
    "LANG",
    "LC_",
    "LD_",
    "MALLOC_",
    "MKL",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_",
    "NVTE_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH",
    "SAFETENSORS_",
    "TOKENIZERS_",
    "TORCH",
    "TRANSFORMERS_",
    "TRITON",
    "TZ",
    "XDG_",
)

# What every launch is given anew, or by its protocol: never among the variables of a record.
SET_BY_LAUNCH = frozenset(
    {
        "CI_PERF_CONTAINER",
        "CI_PERF_LAUNCH",
        "GLOO_SOCKET_IFNAME",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "HF_HUB_OFFLINE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "MKL_NUM_THREADS",
        "NCCL_SOCKET_IFNAME",
        "OMP_NUM_THREADS",
        "PYTHONHASHSEED",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "RANK",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "TOKENIZERS_PARALLELISM",
        "TORCHELASTIC_ERROR_FILE",
        "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_SIGNALS_TO_HANDLE",
        "TORCHELASTIC_USE_AGENT_STORE",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "TORCHINDUCTOR_CACHE_DIR",
        "TRITON_CACHE_DIR",
        "WORLD_SIZE",
    }
)


def digest(data: bytes) -> str:
    """Return the Digest of `data`."""
    return hashlib.sha256(data).hexdigest()[:16]


def blob(data: bytes) -> str:
    """Return Git's name of these contents, which is a SHA-1 by its definition."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


class Program(Struct, frozen=True, kw_only=True):
    """The record of the launches of one workload: all files that they used.

    ``conditions`` is the digest of what is not in the repository: machine, software, image,
    parameters and protocol; ``settings`` that of the part which suite.toml says, empty in older
    records. ``variables`` are the environment variables that were read, with the
    digest of their value; "" for one that was not set. ``paths`` are relative to the root, and lead
    through no link. "file" and "folder" only had to exist. "file BLOB" was read; "code BLOB" is a
    Python file that was imported, and not read in another way: comments in it do not count. Their
    blob is git's name of the content. "folder DIGEST" was listed, and has the digest of its
    entries. "link BLOB" is a symbolic link on a path, with the blob of its text.
    ``searches`` are the names that were looked for
    in a folder, of modules and of files. ``outside`` are files and listed folders beyond the root
    and the installed packages, by whole path, "" for what was not there. ``inputs`` has the digest
    of the files that each pattern of suite.toml matches. ``obstacles`` are sentences: with one of
    them, the record proves nothing. ``run`` is the id of the run that measured this program; empty
    for one that did not.
    """

    schema_version: int = SCHEMA_VERSION
    workload: Name
    run: Text = ""
    conditions: DigestOrEmpty = ""
    settings: DigestOrEmpty = ""
    variables: dict[Text, DigestOrEmpty] = {}
    paths: dict[RelativePath, PathState] = {}
    searches: dict[RelativePath, tuple[Text, ...]] = {}
    outside: dict[RelativePath, DigestOrEmpty] = {}
    inputs: dict[Text, Digest] = {}
    obstacles: tuple[Text, ...] = ()


def record_nothing(workload: str, why: str) -> Program:
    """Return the record of a launch whose recording failed."""
    words = " ".join(why.split())[:500]
    return Program(workload=workload, obstacles=(f"the recording failed: {words}",))


def join_programs(programs: Sequence[Program]) -> Program:
    """Return all that launches of one workload, or ranks of one launch, have used."""
    paths: dict[str, str] = {}
    variables: dict[str, str] = {}
    outside: dict[str, str] = {}
    searches: dict[str, set[str]] = {}
    obstacles = {text: None for program in programs for text in program.obstacles}
    for program in programs:
        for path, state in program.paths.items():
            known = paths.get(path, "")
            blobs = {each.partition(" ")[2] for each in (known, state)} - {""}
            if len(blobs) > 1 and not state.startswith("folder"):
                obstacles[f"{path} was changed while it ran"] = None
            paths[path] = max(known, state, key=_weigh)
        # What is set, or there, says more than what is not.
        variables |= {name: variables.get(name) or each for name, each in program.variables.items()}
        outside |= {path: outside.get(path) or each for path, each in program.outside.items()}
        for folder, names in program.searches.items():
            searches.setdefault(folder, set()).update(names)
    return msgspec.structs.replace(
        programs[0],
        variables=variables,
        paths=dict(sorted(paths.items())),
        searches={folder: tuple(sorted(names)) for folder, names in sorted(searches.items())},
        outside=outside,
        obstacles=tuple(obstacles),
    )


def _weigh(state: str) -> tuple[bool, bool, bool]:
    """Say how much of a path counts: of two equal ones, the first is kept."""
    return bool(state), " " in state, state.startswith("file")


class SameProgram(Struct, frozen=True, kw_only=True):
    """A workload that was not launched: all ``files`` that its program uses are the same.

    ``is_proven`` is false where a run says so, and the job that judges it cannot prove it.
    ``believed`` is when a machine last measured it, where nothing has asked that machine now.
    """

    workload: Name
    is_proven: bool = True
    believed: Text = ""
    parameters: dict[str, Scalar]
    files: Count


# Why a workload is measured: nothing is recorded of it; the record proves nothing; a difference
# in the repository, or beyond it; or somebody asked for it.
TouchedCode = Literal["not_recorded", "obstacle", "differs", "conditions", "asked"]


class Touched(Struct, frozen=True, kw_only=True):
    """A workload that may behave differently."""

    workload: Name
    code: TouchedCode
    detail: Text


class TouchedWorkloads(Struct, frozen=True, kw_only=True):
    """Which workloads of a suite a change touches; ``base`` is the commit it is compared with."""

    schema_version: int = SCHEMA_VERSION
    suite: SuiteName
    base: Text
    same: tuple[SameProgram, ...]
    touched: tuple[Touched, ...]

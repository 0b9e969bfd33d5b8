"""Which files a workload uses while it runs, and whether two commits agree in them."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Count, Name, Scalar, Struct, SuiteName, Text

# Git's name of a file's contents: the SHA-1 of "blob LENGTH\0" and the bytes.
Blob = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}(?!\n)$")]
BlobOrEmpty = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?(?!\\n)$")]
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
    parameters and protocol. ``variables`` are the environment variables that were read, with the
    digest of their value; "" for one that was not set. ``files`` have their blob, "" for one that
    only had to exist; paths are relative to the root, and lead through no link. ``code`` are those
    Python files that were imported, and not read in another way: comments in them do not count.
    ``folders`` have the digest of the
    entries of what was listed, "" for a folder that only had to exist. ``links`` are the symbolic
    links on the paths, with the blob of their text. ``searches`` are the names that were looked for
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
    variables: dict[Text, DigestOrEmpty] = {}
    files: dict[RelativePath, BlobOrEmpty] = {}
    code: tuple[RelativePath, ...] = ()
    folders: dict[RelativePath, DigestOrEmpty] = {}
    links: dict[RelativePath, Blob] = {}
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
    first = programs[0]
    blobs: dict[str, str] = {}
    whole: set[str] = set()
    searches: dict[str, set[str]] = {}
    obstacles = {text: None for program in programs for text in program.obstacles}
    for program in programs:
        for path, blob in program.files.items():
            if blob and blobs.get(path) and blobs[path] != blob:
                obstacles[f"{path} was changed while it ran"] = None
            blobs[path] = blobs.get(path) or blob
            if blob and path not in program.code:
                whole.add(path)
        for folder, names in program.searches.items():
            searches.setdefault(folder, set()).update(names)
    code = {path for program in programs for path in program.code}
    return msgspec.structs.replace(
        first,
        variables=_take_first([program.variables for program in programs]),
        files=dict(sorted(blobs.items())),
        code=tuple(sorted(code - whole)),
        folders=_take_first([program.folders for program in programs]),
        links=_take_first([program.links for program in programs]),
        searches={folder: tuple(sorted(names)) for folder, names in sorted(searches.items())},
        outside=_take_first([program.outside for program in programs]),
        obstacles=tuple(obstacles),
    )


def _take_first(facts: Sequence[dict[str, str]]) -> dict[str, str]:
    """Join facts by name; of a folder, that it was listed says more than that it exists."""
    joined: dict[str, str] = {}
    for known in facts:
        for name, value in known.items():
            joined[name] = joined.get(name) or value
    return joined


class SameProgram(Struct, frozen=True, kw_only=True):
    """A workload that was not launched: all ``files`` that its program uses are the same.

    ``is_proven`` is false where a run says so, and the job that judges it cannot prove it.
    """

    workload: Name
    is_proven: bool = True
    parameters: dict[str, Scalar]
    files: Count


# Why a workload is measured: nothing is recorded of it; the record proves nothing; a difference
# in the repository, or beyond it; or somebody asked for it.
TouchedCode = Literal["not_recorded", "obstacle", "differs", "conditions", "asked"]


class Touched(Struct, frozen=True, kw_only=True):
    """A workload that may behave differently. ``path`` names the first difference."""

    workload: Name
    code: TouchedCode
    detail: Text
    path: RelativePath = ""


class TouchedWorkloads(Struct, frozen=True, kw_only=True):
    """Which workloads of a suite a change touches; ``base`` is the commit it is compared with."""

    schema_version: int = SCHEMA_VERSION
    suite: SuiteName
    base: Text
    same: tuple[SameProgram, ...]
    touched: tuple[Touched, ...]

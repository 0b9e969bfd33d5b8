"""What a workload takes from the repository while it runs, and whether two commits agree in it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Count, Name, Scalar, Struct, SuiteName, Text

# Git's name of a file's contents: the SHA-1 of "blob LENGTH\0" and the bytes.
Blob = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}(?!\n)$")]
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


def listing(names: Iterable[str]) -> str:
    """Return the Digest of a folder's entries; compiled sources and Git's own never count."""
    return digest("\0".join(counted(names)).encode(errors="surrogateescape"))


def counted(names: Iterable[str]) -> list[str]:
    """Return the entries of a folder that count, in order: not what git or Python keep there."""
    kept = (name for name in names if name not in {"__pycache__", ".git"})
    return sorted(name for name in kept if not name.endswith(".pyc"))


def searched(names: Iterable[str], entries: Iterable[str]) -> tuple[str, ...]:
    """Return the entries of a folder that one of these names of modules stands for, in order.

    A name that begins with "*" stands for all entries that end so: "*.dist-info".
    """
    asked = set(names)
    endings = tuple(name[1:] for name in asked if name.startswith("*"))
    counted = (entry for entry in entries if entry != "__pycache__")
    return tuple(
        sorted(
            e for e in counted if e.partition(".")[0] in asked or (endings and e.endswith(endings))
        )
    )


_SECTION = re.compile(rb"^\s*\[(.*)\]", re.MULTILINE)


def is_without_plugins(entry: str, entry_points: bytes | None) -> bool:
    """Whether this entry of a folder is what an editable install leaves there, and no more.

    Setuptools writes it beside the sources, and git does not know it: only the head has it. What a
    program reads of it is recorded by itself. `entry_points` is its file of this name, if any.
    """
    groups = set(_SECTION.findall(entry_points or b""))
    return entry.endswith(".egg-info") and groups <= {b"console_scripts", b"gui_scripts"}


class ProgramFile(Struct, frozen=True, kw_only=True):
    """A file below the root, as it was when the program first opened it.

    ``units`` are the parts of a Python source that were executed, each with the digest of its
    syntax tree: functions by qualified name ("Net.forward", with all that is nested in them), class
    bodies ("Net:") and the body of the module (":"). `None` for a file that was read as a whole;
    none at all for one that only had to exist.
    """

    blob: Blob
    units: dict[Text, Digest] | None = None


class ModuleSearch(Struct, frozen=True, kw_only=True):
    """The names of modules that imports looked for in a folder, and the entries that had one.

    ``entries`` are what `searched` returns for ``names``.
    """

    names: tuple[Text, ...]
    entries: tuple[Text, ...]


class Program(Struct, frozen=True, kw_only=True):
    """The record of one launch, which was not timed: all that it took from below the root.

    ``conditions`` is the digest of what is not in the repository: machine, software, image,
    parameters and protocol. ``variables`` are the environment variables that were read, with the
    digest of their value; "" for one that was not set. ``files`` are by path, ``folders`` have the
    `listing` of what was listed, "" for a folder that only had to exist. ``links`` are all symbolic
    links on any of these paths, with the blob of their text: paths are spelled as the program did,
    through links. ``searches`` are by folder, ``absent`` are paths that were looked for in vain,
    ``outside`` are files and listed folders beyond the root and the installed packages, by whole
    path, "" for what was not there. ``inputs`` has the digest of the files that each pattern of
    suite.toml matches. ``steps`` is how many steps ran. ``obstacles`` are sentences: with one of
    them, the record proves nothing. ``run`` is the id of the run that measured this program; empty
    for one that did not.
    """

    schema_version: int = SCHEMA_VERSION
    workload: Name
    run: Text = ""
    conditions: DigestOrEmpty
    steps: Count
    variables: dict[Text, DigestOrEmpty] = {}
    files: dict[RelativePath, ProgramFile] = {}
    folders: dict[RelativePath, DigestOrEmpty] = {}
    links: dict[RelativePath, Blob] = {}
    searches: dict[RelativePath, ModuleSearch] = {}
    absent: tuple[RelativePath, ...] = ()
    outside: dict[RelativePath, DigestOrEmpty] = {}
    inputs: dict[Text, Digest] = {}
    obstacles: tuple[Text, ...] = ()


def nothing_recorded(workload: str, reason: str) -> Program:
    """Return the record of a launch whose recording failed."""
    obstacle = f"the recording failed: {reason}"
    return Program(workload=workload, conditions="", steps=0, obstacles=(obstacle,))


def joined(ranks: Sequence[Program]) -> Program:
    """Return what all ranks of one launch have taken; what came first counts."""
    first = ranks[0]
    files: dict[str, ProgramFile] = {}
    searches: dict[str, ModuleSearch] = {}
    for program in ranks:
        for path, file in program.files.items():
            files[path] = _joined_file(files.get(path, file), file)
        for folder, search in program.searches.items():
            known = searches.get(folder, search)
            searches[folder] = ModuleSearch(
                names=tuple(sorted({*known.names, *search.names})),
                entries=tuple(sorted({*known.entries, *search.entries})),
            )
    return msgspec.structs.replace(
        first,
        steps=min(program.steps for program in ranks),
        variables=_first_of([program.variables for program in ranks]),
        files=files,
        folders=_first_of([program.folders for program in ranks]),
        links=_first_of([program.links for program in ranks]),
        searches=searches,
        absent=tuple(sorted({path for program in ranks for path in program.absent})),
        outside=_first_of([program.outside for program in ranks]),
        obstacles=tuple(dict.fromkeys(text for program in ranks for text in program.obstacles)),
    )


def _joined_file(first: ProgramFile, second: ProgramFile) -> ProgramFile:
    if first.units is None or second.units is None:
        return msgspec.structs.replace(first, units=None)
    return msgspec.structs.replace(first, units={**second.units, **first.units})


def _first_of(facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {name: value for known in reversed(facts) for name, value in known.items()}


class SameProgram(Struct, frozen=True, kw_only=True):
    """A workload that was not launched: all that its program takes is the same on both sides.

    ``functions`` of ``files`` are Python's, class bodies among them; ``data_files`` were read as a
    whole. ``is_proven`` is false where a run says so, and the job that judges it cannot
    prove it.
    """

    workload: Name
    is_proven: bool = True
    parameters: dict[str, Scalar]
    functions: Count
    files: Count
    data_files: Count


# Why a workload is measured: nothing is recorded of it; the record proves nothing; a difference
# in the repository, or beyond it; or somebody asked for it.
TouchedCode = Literal["not_recorded", "obstacle", "differs", "conditions", "asked"]


class Touched(Struct, frozen=True, kw_only=True):
    """A workload that may behave differently. ``path`` and ``unit`` name the first difference."""

    workload: Name
    code: TouchedCode
    detail: Text
    path: RelativePath = ""
    unit: Text = ""


class TouchedWorkloads(Struct, frozen=True, kw_only=True):
    """Which workloads of a suite a change touches; ``base`` is the commit it is compared with."""

    schema_version: int = SCHEMA_VERSION
    suite: SuiteName
    base: Text
    same: tuple[SameProgram, ...]
    touched: tuple[Touched, ...]

"""What a workload takes from the repository while it runs, and whether two commits agree in it."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Count, Name, Scalar, Struct, Text

# Git's name of a file's contents: the SHA-1 of "blob LENGTH\0" and the bytes.
Blob = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}(?!\n)$")]
# The first 16 hexadecimal digits of a SHA-256.
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}(?!\n)$")]
# Below the root of the repository, with slashes, without "..": "src/model.py"; "" is the root.
RelativePath = Annotated[str, msgspec.Meta(max_length=4096)]


class ProgramFile(Struct, frozen=True, kw_only=True):
    """A file below the root, as it was when the program first opened it.

    ``units`` are the parts of a Python source that were executed, each with the digest of its
    syntax tree: functions by qualified name ("Net.forward", with all that is nested in them), class
    bodies ("Net:") and the body of the module (":"). `None` for a file that was read as a whole.
    """

    blob: Blob
    units: dict[Text, Digest] | None = None


class ModuleSearch(Struct, frozen=True, kw_only=True):
    """The names of modules that imports looked for in a folder, and the entries that had one.

    A name that begins with "*" stands for all entries that end so: "*.dist-info". ``entries`` are
    files and folders whose name, up to its first dot, is one of ``names``.
    """

    names: tuple[Text, ...]
    entries: tuple[Text, ...]


class Program(Struct, frozen=True, kw_only=True):
    """The record of one launch, which was not timed: all that it took from below the root.

    ``conditions`` is the digest of what is not in the repository: machine, software, image,
    parameters and protocol. ``variables`` are the environment variables that were read, with the
    digest of their value; "" for one that was not set. ``files`` are by path, ``folders`` have the
    digest of the names that were listed, ``searches`` are by folder, ``absent`` are paths that were
    looked for in vain, ``outside`` are files beyond the root and the installed packages, by whole
    path. ``inputs`` has the digest of the files that each pattern of suite.toml matches. ``steps``
    is how many steps ran. ``obstacles`` are sentences: with one of them, the record proves nothing.
    """

    schema_version: int = SCHEMA_VERSION
    workload: Name
    conditions: Digest | Literal[""]
    steps: Count
    variables: dict[Text, Digest | Literal[""]] = {}
    files: dict[RelativePath, ProgramFile] = {}
    folders: dict[RelativePath, Digest] = {}
    searches: dict[RelativePath, ModuleSearch] = {}
    absent: tuple[RelativePath, ...] = ()
    outside: dict[RelativePath, Digest] = {}
    inputs: dict[Text, Digest] = {}
    obstacles: tuple[Text, ...] = ()


class SameProgram(Struct, frozen=True, kw_only=True):
    """A workload that was not launched: all that its program takes is the same on both sides.

    ``functions`` of ``files`` are Python's, module and class bodies among them; ``data_files`` were
    read as a whole.
    """

    workload: Name
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

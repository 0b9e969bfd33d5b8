"""What git says of the sources of a checkout: where Python imports them, which are compiled.

And which files say what is installed, and differ from a commit: both sides share the packages.
"""

import contextlib
import os
from pathlib import Path, PurePosixPath

from ci_perf.errors import CiPerfError
from ci_perf.program import dependencies
from ci_perf.system import git
from ci_perf.worktree.merge_base import Start

# Of a large tree on a slow disk.
_ANSWER_S = 300.0
# The sources of compiled modules and of generated ones, and what says how they are built.
_NATIVE = (
    *("*.c", "*.cc", "*.cpp", "*.cu", "*.cuh", "*.cxx", "*.h", "*.hpp", "*.hxx", "*.inc", "*.inl"),
    *("*.f", "*.f90", "*.hip", "*.m", "*.metal", "*.mm", "*.pxd", "*.pxi", "*.pyx", "*.rs", "*.s"),
    *("*.bzl", "*.cmake", "*.fbs", "*.j2", "*.jinja", "*.proto", "*.thrift"),
    *("BUILD.bazel", "CMakeLists.txt", "Cargo.lock", "Cargo.toml", "build.py", "meson.build"),
    "setup.py",
)

_MOST_ASKING = 12
# The paths of files that may ask for other packages, as git takes them.
ASKING = tuple(f":(top,icase,glob)**/{name}" for name in dependencies.NAMES)


def folders(root: Path) -> tuple[str, ...]:
    """Return the folders of the repository that hold committed modules, and those above them.

    They are relative to `root`, which may be a folder inside. None outside a repository.
    """
    try:
        how = ("--recurse-submodules", "--full-name", "-z", ":(top)*.py")
        listed = git.read(root, "ls-files", *how, timeout_s=_ANSWER_S)
    except CiPerfError:
        return ()
    files = [PurePosixPath(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    every = {parent for file in files for parent in file.parents}
    inside = os.path.relpath(os.path.realpath(root), os.path.realpath(git.find_top(root)))
    relative = (os.path.relpath(folder, inside) for folder in every)
    return tuple(sorted(folder for folder in relative if folder.isprintable()))


def submodules(top: Path) -> set[str]:
    """Return the paths at which the index has a commit, not a file. Raises CiPerfError."""
    entries = git.run(top, "ls-files", "--stage", "-z").out.split("\0")
    return {entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")}


def native(start: Start) -> str:
    """Name the first file to be compiled, as checked out, that differs from a commit; "" for none.

    A submodule counts as one: compiled code may be built from it. Raises CiPerfError.
    """
    patterns = [f":(top,icase,glob)**/{name}" for name in _NATIVE]
    patterns += [f":(top,literal){path}" for path in submodules(start.top)]
    how = ("--name-only", "--no-renames", "--ignore-submodules=dirty", "-z")
    said = git.read(start.top, "diff", *how, start.commit, "--", *patterns, timeout_s=_ANSWER_S)
    first = said.partition(b"\0")[0]
    return os.fsdecode(first).encode(errors="replace").decode()


def list_dependencies(start: Start) -> tuple[str, ...]:
    """Name the files that may ask for other packages than in the commit; the first of many.

    They are as checked out, and named below the top of the repository. Raises CiPerfError.
    """
    names = {
        *_list_files(start, "diff", "--name-only", "--no-renames", "-z", start.commit),
        *_list_files(start, "ls-files", "--others", "--exclude-standard", "-z"),
    }
    asking = [name for name in sorted(names) if _asks_for_others(start, name)]
    return tuple(os.fsencode(name).decode(errors="replace") for name in asking[:_MOST_ASKING])


def _list_files(start: Start, *command: str) -> list[str]:
    said = git.read(start.top, *command, "--", *ASKING, timeout_s=_ANSWER_S)
    return [os.fsdecode(name) for name in said.split(b"\0") if name]


def _asks_for_others(start: Start, name: str) -> bool:
    before = after = None
    with contextlib.suppress(CiPerfError):
        before = git.read(start.top, "show", f"{start.commit}:{name}", timeout_s=_ANSWER_S)
    with contextlib.suppress(OSError):
        after = (start.top / name).read_bytes()
    return dependencies.ask_for_others(name, before, after)

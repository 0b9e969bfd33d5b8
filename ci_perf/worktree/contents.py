"""What a worktree comes without: submodules, and files of Git LFS.

Submodules are provided from those of the head. Nothing is fetched, no file of Git LFS is downloaded
(git.environment), and nothing is written into the configuration of the repository.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.system import git
from ci_perf.system.child import Ended

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LFS_SHOWN = 3

# Runs git in a folder with these arguments. Raises KeyboardInterrupt.
RunGit = Callable[[Path, Sequence[str]], Ended]


@dataclass(frozen=True, slots=True)
class Submodule:
    """The name that .gitmodules gives it, and its path."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class EmptySubmodule:
    """A submodule that stays empty, and why. It is no loss if the head's is empty as well."""

    path: str
    reason: str
    is_loss: bool
    output: str = ""


def provide_submodules(base: Path, head: Path, run: RunGit) -> list[EmptySubmodule]:
    """Check out the submodules of `base` as its commit wants them; return those that cannot be.

    `head` is a working tree of the same repository.
    """
    modules = head / git.run(head, "rev-parse", "--git-path", "modules").out
    return list(_provide(base, head, modules, run, above=""))


def _provide(
    base: Path, head: Path, modules: Path, run: RunGit, *, above: str
) -> Iterator[EmptySubmodule]:
    """Provide the submodules of `base`, then theirs; `modules` holds the head's repositories."""
    for submodule in _listed(base):
        shown = above + submodule.path
        if submodule in _listed(head) and not _is_there(head / submodule.path):
            yield EmptySubmodule(shown, "the head has not checked it out either", is_loss=False)
            continue
        source = _repository(head, modules, submodule)
        if source is None:
            yield EmptySubmodule(shown, "the head has no repository of it", is_loss=True)
            continue
        ended = run(base, _update(submodule, source))
        if ended.code != 0 or ended.timed_out:
            yield EmptySubmodule(
                shown, "git could not check it out", is_loss=True, output=ended.tail
            )
            continue
        inner = base / submodule.path, head / submodule.path, source / "modules"
        yield from _provide(*inner, run, above=f"{shown}/")


def _update(submodule: Submodule, source: Path) -> list[str]:
    """Spell the command that clones and checks out a submodule as if `source` were its home."""
    return [
        *("-c", f"submodule.{submodule.name}.url={source}"),
        *("-c", f"submodule.{submodule.name}.active=true"),
        *("submodule", "update", "--checkout", "--", submodule.path),
    ]


def _listed(folder: Path) -> list[Submodule]:
    """Return the submodules that .gitmodules names, and that the commit has."""
    if not (folder / ".gitmodules").is_file():
        return []
    pattern = r"^submodule\..*\.path$"
    said = git.run(folder, "config", "-z", "--file", ".gitmodules", "--get-regexp", pattern).out
    entries = [entry.partition("\n") for entry in said.split("\0") if entry]
    submodules = [
        Submodule(key.removeprefix("submodule.").removesuffix(".path"), path)
        for key, _, path in entries
    ]
    linked = _linked(folder)
    return [submodule for submodule in submodules if submodule.path in linked]


def _linked(folder: Path) -> set[str]:
    """Return the paths at which the index has a commit, not a file."""
    entries = git.run(folder, "ls-files", "--stage", "-z").out.split("\0")
    return {entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")}


def _is_there(folder: Path) -> bool:
    return (folder / ".git").exists()


def _repository(head: Path, modules: Path, submodule: Submodule) -> Path | None:
    """Return the head's repository of a submodule; it may have moved to another path."""
    if (modules / submodule.name / "HEAD").is_file():
        return modules / submodule.name
    if not _is_there(head / submodule.path):
        return None
    return Path(git.run(head / submodule.path, "rev-parse", "--absolute-git-dir").out)


def missing_large_files(folder: Path) -> list[str]:
    """Name the files of the working tree in `folder` that Git LFS has not downloaded, if any."""
    said = git.run(folder, "ls-files", "-z", ":(attr:filter=lfs)").out
    pointers = [name for name in said.split("\0") if name and _is_pointer(folder / name)]
    if not pointers:
        return []
    return [_in_words(pointers)]


def _in_words(pointers: list[str]) -> str:
    shown = ", ".join(pointers[:_LFS_SHOWN]) + (", …" if len(pointers) > _LFS_SHOWN else "")
    return (
        f"files of Git LFS that the base has only by name: {shown} "
        f"({len(pointers)} in all); `git lfs fetch origin` with its commit brings them"
    )


def _is_pointer(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS_POINTER)) == _LFS_POINTER

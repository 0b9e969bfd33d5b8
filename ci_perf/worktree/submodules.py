"""Submodules of a base, from what the head's hold: a worktree comes without any.

Nothing is fetched, and nothing is written into the configuration of the repository.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.system import git
from ci_perf.system.child import Ended

# Runs git in a folder with these arguments. Raises KeyboardInterrupt.
Run = Callable[[Path, Sequence[str]], Ended]


@dataclass(frozen=True, slots=True)
class Submodule:
    """As .gitmodules calls it, and where it lies."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Empty:
    """A folder that stays empty, and why. It is no loss where the head's is empty as well."""

    path: str
    reason: str
    is_loss: bool
    output: str = ""


def provide(base: Path, head: Path, run: Run) -> list[Empty]:
    """Check out the submodules of `base` as its commit wants them; return those that cannot be.

    `head` is a working tree of the same repository.
    """
    modules = head / git.run(head, "rev-parse", "--git-path", "modules").out
    return list(_provide(base, head, modules, run, above=""))


def _provide(base: Path, head: Path, modules: Path, run: Run, *, above: str) -> Iterator[Empty]:
    """Provide the submodules of `base`, then theirs; `modules` holds the head's repositories."""
    for one in _listed(base):
        shown = above + one.path
        if one in _listed(head) and not _is_there(head / one.path):
            yield Empty(shown, "the head has not checked it out either", is_loss=False)
            continue
        source = _repository(head, modules, one)
        if source is None:
            yield Empty(shown, "the head has no repository of it", is_loss=True)
            continue
        ended = run(base, _update(one, source))
        if ended.code != 0 or ended.timed_out:
            yield Empty(shown, "git could not check it out", is_loss=True, output=ended.tail)
            continue
        inner = base / one.path, head / one.path, source / "modules"
        yield from _provide(*inner, run, above=f"{shown}/")


def _update(one: Submodule, source: Path) -> list[str]:
    """Spell the command that clones and checks out a submodule as if `source` were its home."""
    return [
        *("-c", f"submodule.{one.name}.url={source}"),
        *("-c", f"submodule.{one.name}.active=true"),
        *("submodule", "update", "--checkout", "--", one.path),
    ]


def _listed(folder: Path) -> list[Submodule]:
    """Return the submodules that .gitmodules names, and that the commit has."""
    if not (folder / ".gitmodules").is_file():
        return []
    pattern = r"^submodule\..*\.path$"
    said = git.run(folder, "config", "-z", "--file", ".gitmodules", "--get-regexp", pattern).out
    entries = [entry.partition("\n") for entry in said.split("\0") if entry]
    found = [
        Submodule(key.removeprefix("submodule.").removesuffix(".path"), path)
        for key, _, path in entries
    ]
    linked = _linked(folder)
    return [one for one in found if one.path in linked]


def _linked(folder: Path) -> set[str]:
    """Return the paths at which the index has a commit, not a file."""
    entries = git.run(folder, "ls-files", "--stage", "-z").out.split("\0")
    return {entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")}


def _is_there(folder: Path) -> bool:
    return (folder / ".git").exists()


def _repository(head: Path, modules: Path, one: Submodule) -> Path | None:
    """Return the head's repository of a submodule; it may have moved to another path."""
    if (modules / one.name / "HEAD").is_file():
        return modules / one.name
    if not _is_there(head / one.path):
        return None
    return Path(git.run(head / one.path, "rev-parse", "--absolute-git-dir").out)

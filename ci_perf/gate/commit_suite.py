"""A suite and its baselines as a commit has them: read from its files, nothing is checked out."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf import suite
from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.model.suite import Limits, Plan
from ci_perf.program.tree_sources import GitTree
from ci_perf.program.trees import Tree
from ci_perf.system import git


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryFolders:
    """The repository, and where it keeps its suites and its baselines."""

    root: Path
    workloads: Path = Path("workloads")
    baselines: Path = Path("baselines")

    def of_suite(self, name: str) -> Path | None:
        """Return where a suite lies below the root, `None` where all commits have the same one."""
        return folder_below(self.root, name, self.workloads)


def tree_of(root: Path, commit: str) -> GitTree:
    """Return the files that a commit has below `root`. Raises CiPerfError."""
    return GitTree(root, commit, prefix=git.run(root, "rev-parse", "--show-prefix").out)


def plan_of_tree(
    tree: Tree, folder: Path, name: str, *, called: str, defaults: Limits | None = None
) -> Plan:
    """Plan a suite as a commit has it, from suite.toml and the names of the other files.

    `called` is what messages call the commit. Raises InvalidFileError and UsageError.
    """
    inside = folder.as_posix()
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as copy:
        there = Path(copy, inside)
        there.mkdir(parents=True, exist_ok=True)
        for file in tree.names(inside) or ():
            (there / file).touch()
        if text := tree.read(f"{inside}/suite.toml"):
            (there / "suite.toml").write_bytes(text)
        try:
            return suite.plan(there, name, root=Path(copy), defaults=defaults)
        except (InvalidFileError, UsageError) as error:
            # Nobody can look at the copies.
            raise type(error)(str(error).replace(f"{copy}/", f"{called}: ")) from None


def find_plan(
    tree: Tree, folder: Path | None, name: str, *, defaults: Limits | None = None
) -> Plan | None:
    """Plan a suite as one side has it; `None` where it has none, or no other than the other side.

    Raises InvalidFileError.
    """
    if folder is not None and has_suite(tree, folder):
        with contextlib.suppress(UsageError):  # the file has other suites
            return plan_of_tree(tree, folder, name, called="the base", defaults=defaults)
    return None


@contextlib.contextmanager
def baselines_of_tree(
    tree: Tree, folders: RepositoryFolders, name: str, *, records: bool = False
) -> Iterator[Path]:
    """Provide a copy of the baselines that a commit has of a suite; no folder where it has none.

    With the `records` of its programs, too. Baselines that lie outside of the repository are those
    of every commit.
    """
    folder = path_below(folders.root, folders.baselines)
    if folder is None:
        yield folders.baselines
        return
    of_suite = f"*/{layout.folder_name(name)}"
    patterns = [f"*/{layout.CALIBRATION}", f"*/{layout.REHEARSED}", f"{of_suite}/*.json"]
    patterns += [f"{of_suite}/{layout.RECORDS}/*.json"] if records else []
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as copy:
        for pattern in patterns:
            for file in tree.glob((folder / pattern).as_posix()):
                target = Path(copy, file)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tree.read(file) or b"")
        try:
            yield Path(copy, folder)
        except InvalidFileError as error:
            raise InvalidFileError(str(error).replace(f"{copy}/", "the base: ")) from None


def has_suite(tree: Tree, folder: Path) -> bool:
    """Whether a commit has a suite in this folder: not before ci_perf was added to it."""
    names = tree.names(folder.as_posix()) or ()
    return any(
        name == "suite.toml" or (name.endswith(".py") and not name.startswith("_"))
        for name in names
    )


def folder_below(root: Path, name: str, workloads: Path) -> Path | None:
    """Return the folder of a suite below a root; `None` where all commits have the same suite.

    A shipped suite is the head's, also where ci_perf is installed from the checkout itself.
    """
    return None if name.startswith(suite.BUILTIN) else path_below(root, workloads)


def path_below(root: Path, path: Path) -> Path | None:
    """Return a path as it is spelled below a root, `None` where it lies elsewhere.

    A link of the head must not lead to another folder of the base: links are followed only to find
    what is spelled from another root.
    """
    top = Path(os.path.realpath(root))
    spelled = Path(os.path.abspath(top / path))  # noqa: PTH100  `resolve` would follow links
    for whole in (spelled, spelled.resolve()):
        if whole.is_relative_to(top):
            return whole.relative_to(top)
    return None

"""The code of the base, checked out beside the head's, and what prepares either side.

Submodules are provided from those of the head. Nothing is fetched, no file of Git LFS is downloaded
(git.environment), and nothing is written into the configuration of the repository.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.launch import child_environment
from ci_perf.launch.run_task import Launcher
from ci_perf.launch.side_python import SidePython
from ci_perf.model.base import Side
from ci_perf.model.run import OtherEnvironment, Source
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import Task, TaskFailure
from ci_perf.system import child, git, guardian, linux, signals
from ci_perf.system.child import Ended
from ci_perf.worktree import merge_base, sources, worktree_dir
from ci_perf.worktree.merge_base import Start

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LFS_SHOWN = 3

# Runs git in a folder with these arguments. Raises KeyboardInterrupt.
RunGit = Callable[[Path, Sequence[str]], Ended]

# Tells the command which side it prepares.
_SIDE_VARIABLE = "CI_PERF_SIDE"

# A large tree on a slow disk; a filter of the user that hangs must not hang us.
_CHECKOUT_S = 1800.0

_PARTIAL = (
    "a partial clone lacks files of the base, and ci-perf fetches none; clone without `--filter` "
    "(`filter:` of actions/checkout), or `git fetch --refetch --no-filter`"
)
_NOT_WRITABLE = "git must be able to write into the repository's .git folder"

# What git says when it cannot check out, and what that means.
_MEANINGS = (
    ("No space left", "the disk is full; free some of it, or have TMPDIR name another place"),
    ("promisor", _PARTIAL),
    ("Read-only file system", _NOT_WRITABLE),
    ("Permission denied", _NOT_WRITABLE),
    ("unknown option `reason'", "git is older than 2.33, which is needed"),
)


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
    for submodule in _list_submodules(base):
        shown = above + submodule.path
        if submodule in _list_submodules(head) and not _is_there(head / submodule.path):
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


def _list_submodules(folder: Path) -> list[Submodule]:
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
    linked = sources.submodules(folder)
    return [submodule for submodule in submodules if submodule.path in linked]


def _is_there(folder: Path) -> bool:
    return (folder / ".git").exists()


def _repository(head: Path, modules: Path, submodule: Submodule) -> Path | None:
    """Return the head's repository of a submodule; it may have moved to another path."""
    if (modules / submodule.name / "HEAD").is_file():
        return modules / submodule.name
    if not _is_there(head / submodule.path):
        return None
    return Path(git.run(head / submodule.path, "rev-parse", "--absolute-git-dir").out)


def find_missing_large_files(folder: Path) -> list[str]:
    """Name the files of the working tree in `folder` that Git LFS has not downloaded, if any."""
    said = git.run(folder, "ls-files", "-z", ":(attr:filter=lfs)").out
    pointers = [name for name in said.split("\0") if name and _is_pointer(folder / name)]
    if not pointers:
        return []
    shown = ", ".join(pointers[:_LFS_SHOWN]) + (", …" if len(pointers) > _LFS_SHOWN else "")
    words = (
        f"files of Git LFS that the base has only by name: {shown} "
        f"({len(pointers)} in all); `git lfs fetch origin` with its commit brings them"
    )
    return [words]


def _is_pointer(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS_POINTER)) == _LFS_POINTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The base's code in ``root``. ``notes`` are for the reader of the comparison.

    ``top`` is the top of its worktree, ``head_top`` that of the head's: neither side must import
    from the other's. ``dependencies`` are the files that `list_dependencies` names; the next
    two are what `sources` tells. ``plan`` is what its own suite.toml makes of the suite, and
    ``trouble`` why that cannot launch it; without either, it is launched as the head is.
    ``unmeasured`` says why the head does not measure a test that this side measures. ``python``
    launches this side where that is not ours; then ``environment`` says what differs.
    """

    root: Path
    top: Path
    head_top: Path
    source: Source
    ref: str
    notes: tuple[str, ...]
    dependencies: tuple[str, ...] = ()
    source_folders: tuple[str, ...] = ()
    native_source: str = ""
    plan: Plan | None = None
    trouble: str = ""
    unmeasured: dict[str, str] = field(default_factory=dict)
    python: SidePython | None = None
    environment: OtherEnvironment | None = None

    def find_task(self, task: Task) -> Task | None:
        """Return a task of the head as one of the base; `None` where it has no such workload."""
        workload = self.find_workload(task.workload, Path(task.root))
        if workload is None:
            return None
        return self.spell_task(msgspec.structs.replace(task, workload=workload))

    def find_workload(self, workload: PlannedWorkload, root: Path) -> PlannedWorkload | None:
        """Return a workload of the head, which lies below `root`, as the base's own suite has it.

        One that its suite lacks is launched as the head says, by the base's file of the same name;
        `None` where there is none. A file that lies outside is the same on both sides.
        """
        for own in self.plan.workloads if self.plan else ():
            if own.id == workload.id:
                return own
        if not Path(workload.file).is_relative_to(root):
            return workload
        file = self.root / Path(workload.file).relative_to(root)
        return msgspec.structs.replace(workload, file=str(file)) if file.is_file() else None

    def spell_task(self, task: Task) -> Task:
        """Return a task as one that imports from the base, whosever workload file it is.

        Nothing is planted into the base.
        """
        return msgspec.structs.replace(
            task,
            plant=None,
            root=str(self.root),
            python_path=self.plan.python_path if self.plan else task.python_path,
            foreign_root=str(self.head_top),
            top=str(self.top),
            source_folders=self.source_folders,
        )


def base_of(
    root: Path, ref: str, *, has_setup: bool = False, may_be_head: bool = False
) -> contextlib.AbstractContextManager[Checkout]:
    """Provide the commit where HEAD and `ref` parted, in a worktree that is removed afterwards.

    `root` may be a folder inside the repository: the checkout's root is then the same folder of
    the base. Its path is as long as that of `root`, where there can be such a path. With
    `has_setup`, a submodule that cannot be provided is noted, not raised: a command of the user
    may do it. `may_be_head` says that the sides may be one commit: they differ otherwise.

    Signals are deferred while files are created or removed, but not within the block. What a killed
    process left is removed first. Raises UsageError for a wrong `ref` or
    `root`, CiPerfError for what is missing here, KeyboardInterrupt.
    """
    return _check_out(
        root, ref, merge_base.find(root, ref, may_be_head=may_be_head), has_setup=has_setup
    )


def commit_of(
    root: Path, ref: str, *, has_setup: bool = False
) -> contextlib.AbstractContextManager[Checkout]:
    """Provide the commit that `ref` names itself, as `base_of` provides the one where HEAD began.

    ``head_top`` is the top of the repository at `root`: where a process imports from there, as by
    an editable install, every commit would be the same code.
    """
    return _check_out(root, ref, merge_base.exactly(root, ref), has_setup=has_setup)


@contextlib.contextmanager
def _check_out(root: Path, ref: str, start: Start, *, has_setup: bool) -> Iterator[Checkout]:
    environment = child_environment.apart_from(start.top, os.environ, threads=1)
    guard = guardian.guard(environment, worktree_dir.__name__, start.top)
    with signals.defer_signals() as deferral, guard:
        worktree_dir.sweep(start.top)
        with worktree_dir.claim_folder(start.top) as folder:
            run = functools.partial(_run_git, folder, deferral.have_come)
            _add(start, folder, run)
            missing = _fill(start, folder, run, has_setup=has_setup)
            checkout = _describe_checkout(root, ref, start, folder, missing)
            with deferral.suspended():
                yield checkout


def _run_git(
    folder: Path, interrupted: Callable[[], bool], where: Path, arguments: Sequence[str]
) -> Ended:
    """Run git; end all that it has started for the worktree in `folder` if we are interrupted."""
    try:
        return child.run(
            git.command(where, *arguments),
            cwd=str(where),
            environment=git.environment(os.environ),
            cookie=worktree_dir.cookie(folder),
            timeout_s=_CHECKOUT_S,
            interrupted=interrupted,
        )
    except OSError as error:
        raise CiPerfError(f"git in {where}: cannot be started: {error.strerror}") from None


def _add(start: Start, folder: Path, run: RunGit) -> None:
    """Check out the base in `folder`; git keeps the reason with it."""
    how = ("--detach", "--lock", "--reason", worktree_dir.REASON)
    ended = run(start.top, ["worktree", "add", *how, str(folder), start.commit])
    if ended.code == 0 and not ended.timed_out:
        # Who may read the head, as another user in a container has to, may read the base.
        folder.chmod(start.top.stat().st_mode & 0o755)
        return
    name = f"{start.called} {merge_base.shown(start.commit)}"
    if ended.timed_out:
        raise CiPerfError(
            f"{name}: git did not check it out in {folder} within {_CHECKOUT_S:g} s; look for slow "
            "filters in .gitattributes",
            output=ended.tail,
        )
    meaning = next((meaning for said, meaning in _MEANINGS if said in ended.tail), "see its output")
    raise CiPerfError(
        f"{name}: git could not check it out in {folder}: {meaning}",
        output=ended.tail,
    )


def _fill(start: Start, folder: Path, run: RunGit, *, has_setup: bool) -> list[str]:
    """Provide submodules; return in words what the worktree still lacks."""
    empty = provide_submodules(folder, start.top, run)
    lost = next((submodule for submodule in empty if submodule.is_loss), None)
    if lost and not has_setup:
        raise CiPerfError(
            f"{lost.path}: expected this submodule as {start.called} "
            f"{merge_base.shown(start.commit)} has it, found that {lost.reason}; fetch its history "
            f"(`git submodule update --init`, then `git -C {lost.path} fetch --unshallow`), or "
            "have `setup` in suite.toml provide it",
            output=lost.output,
        )
    notes = [
        f"the base's submodule {submodule.path} is empty: {submodule.reason}" for submodule in empty
    ]
    return notes + find_missing_large_files(folder)


def _describe_checkout(
    root: Path, ref: str, start: Start, folder: Path, missing: Sequence[str]
) -> Checkout:
    there = folder / start.inside
    if not there.is_dir():
        raise UsageError(
            f"{start.inside}: expected this folder in {start.called} "
            f"{merge_base.shown(start.commit)}, found none. This folder is new in the "
            "pull request, so there is no base"
        )
    here = root.absolute()
    lengths = [len(os.fsencode(path)) for path in (here, there)]
    told = (
        f"path lengths differ: the head's {here} has {lengths[0]} bytes, the base's {there} has "
        f"{lengths[1]}; memory may be laid out differently"
    )
    asking = sources.list_dependencies(start)
    built_by = (name for name in asking if name.endswith("pyproject.toml"))
    return Checkout(
        root=there,
        top=folder,
        head_top=start.top,
        source=Source(commit=start.commit, branch=linux.short(ref), dirty=False),
        ref=ref,
        notes=(*start.notes, *[told] * (lengths[0] != lengths[1]), *missing),
        dependencies=asking,
        source_folders=sources.folders(there),
        native_source=sources.native(start) or next(built_by, ""),
    )


def run_setup(
    command: str,
    launcher: Launcher,
    *,
    root: Path,
    side: Side,
    timeout_s: float,
    interrupted: Callable[[], bool],
) -> None:
    """Run a line of shell in `root` once, as the measured code will run.

    Its processes end with it. The base comes after the head, and must leave the packages alone that
    both share. Raises CiPerfError for a failure, with its last output, and KeyboardInterrupt.
    """
    before = _packages(launcher, interrupted) if side == "base" else ""
    try:
        ended = launcher.shell(
            command,
            root=root,
            variables={_SIDE_VARIABLE: side},
            timeout_s=timeout_s,
            interrupted=interrupted,
        )
    except OSError as error:
        raise CiPerfError(
            f"setup of the {side} in {root}: cannot be started: {error.strerror}"
        ) from None
    if ended.timed_out or ended.code != 0:
        shown = child_environment.hide_credentials(command, os.environ)
        raise CiPerfError(
            f"setup of the {side} in {root}: expected `{shown}` to end with code 0 within "
            f"{timeout_s:g} s, found {_setup_outcome(ended)}; it is `--setup`, or `setup` in "
            "suite.toml",
            output=child_environment.hide_credentials(ended.tail, os.environ),
        )
    if before and before != _packages(launcher, interrupted):
        raise CiPerfError(
            f"setup of the base in {root}: it changed the installed packages. Both sides use the "
            "same Python, so the head would run with the packages of the base. Install into each "
            "checkout (`python -m pip install --upgrade --target .deps …`), and name that folder "
            "in `python_path` of suite.toml",
            output=child_environment.hide_credentials(ended.tail, os.environ),
        )


def _packages(launcher: Launcher, interrupted: Callable[[], bool]) -> str:
    """Return the digest of the installed packages, "" where nobody can tell."""
    answer = launcher.describe("cpu", 1, 1, interrupted)
    return "" if isinstance(answer, TaskFailure) else answer.environment.soft.packages


def _setup_outcome(ended: Ended) -> str:
    if ended.timed_out:
        return "it still at work"
    if ended.code < 0:
        return f"it killed by signal {-ended.code}"
    return f"code {ended.code}"

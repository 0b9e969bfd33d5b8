"""What of this host a container sees: its folders, and the user who may write them.

Base and head are at the same place: nothing of one side can be seen from the other.
"""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from ci_perf.errors import CannotWriteError, CiPerfError
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.model.task import Task
from ci_perf.system import scratch

# The folder of our own package: one version measures and judges, whatever the image holds.
PACKAGE = "/opt/ci-perf"
WORKSPACE = "/workspace"

# A workload file that is not in the checkout: one that ships with ci-perf, or the head's own that
# runs on the base's code.
SUITE = "/suite"
OUT = "/out"
CACHE = "/cache"
DATA = "/data"
CHECKPOINTS = "/checkpoints"
TURNS = "/turns"

# The user inside if ci-perf runs as root: root is never root inside.
NOBODY = 10001


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of the host inside of a container."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders of the host that go with one launch.

    ``own_data`` of the launcher is mounted where ``data`` is ``None``.
    """

    out: Path
    cache: Path
    own_data: Path
    data: Path | None = None
    checkpoints: Path | None = None
    turns: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who runs inside, as numbers; ``userns`` is the engine's word for whose numbers these are."""

    uid: int
    gid: int
    userns: str = ""


def task_inside(outside: Task) -> Task:
    """Return a task with the paths inside. It has its GPUs for itself, and counts them from 0."""
    file = Path(outside.workload.file)
    root = Path(outside.root)
    if file.is_relative_to(root):
        place = PurePosixPath(WORKSPACE, file.relative_to(root))
    else:
        place = PurePosixPath(SUITE, file.name)
    return msgspec.structs.replace(
        outside,
        workload=msgspec.structs.replace(outside.workload, file=str(place)),
        device="cuda:0" if outside.device.startswith("cuda") else outside.device,
        root=WORKSPACE,
        data_dir=DATA,
        turns=TURNS if outside.turns else "",
        foreign_root="",
        top="",
    )


def task_mounts(outside: Task, place: Path, folders: Folders, package: Path) -> tuple[Mount, ...]:
    """Return the mounts of a task: its root, which lies in `place`, and our own `package`."""
    file, root = Path(outside.workload.file), Path(outside.root)
    mounts = [
        *our_mounts(folders.out, package),
        Mount(source=place, target=WORKSPACE),
        Mount(source=folders.cache, target=CACHE, writable=True),
        Mount(source=folders.data or folders.own_data, target=DATA, writable=folders.data is None),
    ]
    if not file.is_relative_to(root):
        mounts.append(Mount(source=file.parent, target=SUITE))
    if folders.checkpoints is not None:
        mounts.append(Mount(source=folders.checkpoints, target=CHECKPOINTS, writable=True))
    if folders.turns is not None:
        mounts.append(Mount(source=folders.turns, target=TURNS, writable=True))
    return tuple(mounts)


def our_mounts(out: Path, package: Path) -> tuple[Mount, ...]:
    """Return the mounts of every container: our code, and the folder for its result."""
    return (
        Mount(source=package, target=f"{PACKAGE}/{package.name}"),
        Mount(source=out, target=OUT, writable=True),
    )


def find_hidden_folders(root: Path) -> tuple[str, ...]:
    """Return the folders of git, where checkouts keep tokens: a container must find them empty.

    Also those of other checkouts within this one. The target of a link is not mounted.
    """
    folders = []
    for folder, inner, _ in os.walk(root):
        if ".git" in inner:
            inner.remove(".git")
            place = Path(folder, ".git")
            if not place.is_symlink():
                folders.append(str(PurePosixPath(WORKSPACE, place.relative_to(root))))
    return tuple(folders)


def user(engine: Engine) -> User:
    """Return the user inside: the one who runs ci-perf, so that both may write the same files."""
    uid, gid = os.geteuid(), os.getegid()
    if engine.name == "podman" and uid != 0:
        return User(uid=uid, gid=gid, userns="keep-id")
    is_docker = engine.name == "docker"
    security = engine.must("info", "--format", "{{.SecurityOptions}}") if is_docker else ""
    if "name=rootless" in security:
        return User(uid=0, gid=0)  # root of its own namespace: outside, the user who runs ci-perf
    userns = "host" if "name=userns" in security else ""
    if uid == 0:
        uid = gid = NOBODY
    return User(uid=uid, gid=gid, userns=userns)


def check_readable(root: Path, whom: User) -> None:
    """Refuse a checkout that a container could not read. Raises CiPerfError."""
    status = root.stat()
    if whom.uid != NOBODY or status.st_uid == whom.uid:
        return
    mode = status.st_mode
    if not (mode & stat.S_IROTH and mode & stat.S_IXOTH):
        raise CiPerfError(
            f"{root}: expected to be readable for others, found mode {stat.S_IMODE(mode):04o}: "
            f"ci-perf runs as root, and its containers as user {NOBODY}; `chmod o+rx {root}`, or "
            "run ci-perf as the user whose checkout it is"
        )


def hand_over(folder: Path, whom: User) -> None:
    """Let the user of a container write a tree that we have just made.

    Raises OSError. No container must have seen the folder yet: root must not give away what a
    container may change meanwhile. The folder itself stays ours: the next start removes only our
    own folders after a kill.
    """
    if os.geteuid() != 0:
        return
    for inner, _, _ in os.walk(folder):
        for path in Path(inner).iterdir():
            os.chown(path, whom.uid, whom.gid, follow_symlinks=False)
    os.chown(folder, -1, whom.gid)
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXG)


def copy_checkout(root: Path, target: Path) -> None:
    """Copy a checkout that `setup` may change, less git's own files. Raises CannotWriteError.

    Programs of this host would meet what the measured code leaves in the checkout itself: git runs
    what a folder `.git` in a submodule tells it to, and a report would be written to a file that
    has become a link.
    """
    try:
        shutil.copytree(root, target, symlinks=True, ignore=_not_copied)
    except (OSError, RecursionError) as error:
        raise CannotWriteError(
            f"{root}: expected to be copied to {target} for `setup`, found {_first_error(error)}; "
            "TMPDIR names another place for temporary files"
        ) from None


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """Leave out git's files, ours, and what is neither a file nor a folder nor a link."""
    return [
        name
        for name in names
        if name == ".git" or scratch.is_ours(name) or _is_special(Path(folder, name))
    ]


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _first_error(error: OSError | RecursionError) -> str:
    """Return the first error of many: a tree has many files."""
    if isinstance(error, shutil.Error):
        source, _, why = error.args[0][0]
        return f"{source}: {why}"
    return str(error)

"""What of this host a container is given: a user, its GPUs, folders that this user may write."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ci_perf.errors import CiPerfError
from ci_perf.launch.containers import inside
from ci_perf.launch.containers.arguments import User
from ci_perf.launch.containers.engine import Engine

# Nobody's number: root is never root inside.
NOBODY = 10001

# How a host names the driver of its GPUs; the second is Windows' own.
_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"))

ALL = ("all",)


def user(engine: Engine) -> User:
    """Return who runs inside: whoever runs ci-perf, so that both may write the same files."""
    uid, gid = os.geteuid(), os.getegid()
    if engine.name == "podman" and uid != 0:
        return User(uid=uid, gid=gid, userns="keep-id")
    security = engine.must("info", "--format", "{{.SecurityOptions}}") if _is_docker(engine) else ""
    if "name=rootless" in security:
        return User(uid=0, gid=0)  # root of its own namespace: outside it is whoever runs ci-perf
    userns = "host" if "name=userns" in security else ""
    if uid == 0:
        uid = gid = NOBODY
    return User(uid=uid, gid=gid, userns=userns)


def hand_over(folder: Path, whom: User) -> None:
    """Let the user of a container write a folder that we have just made, and the files in it.

    Raises OSError. Only what no container has seen yet: of what one may change meanwhile, root must
    not give anything away. The folder itself stays ours: of others, the next start removes none
    that a killed one has left.
    """
    if os.geteuid() != 0:
        return
    for path in folder.iterdir():
        os.chown(path, whom.uid, whom.gid, follow_symlinks=False)
    _open_to(folder, whom)


def hand_over_tree(folder: Path, whom: User) -> None:
    """Let the user of a container write a tree that we have just made. Raises OSError."""
    if os.geteuid() != 0:
        return
    for inner, _, _ in os.walk(folder):
        for path in Path(inner).iterdir():
            os.chown(path, whom.uid, whom.gid, follow_symlinks=False)
    _open_to(folder, whom)


def _open_to(folder: Path, whom: User) -> None:
    os.chown(folder, -1, whom.gid)
    folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXG)


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


def hidden(root: Path) -> tuple[str, ...]:
    """Return what a container must find empty: folders of git, where checkouts keep tokens.

    Also those of other checkouts within this one. What a link leads to is not there inside.
    """
    found = []
    for folder, inner, _ in os.walk(root):
        if ".git" in inner:
            inner.remove(".git")
            place = Path(folder, ".git")
            if not place.is_symlink():
                found.append(str(PurePosixPath(inside.WORKSPACE, place.relative_to(root))))
    return tuple(found)


def visible(device: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the GPUs among which `device` counts: all, or those of CUDA_VISIBLE_DEVICES."""
    if device == "cpu" or (device == "auto" and not any(one.exists() for one in _DRIVERS)):
        return ()
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return ALL
    return tuple(one for one in (part.strip() for part in chosen.split(",")) if one != "-1" and one)


def of_task(
    device: str, gpus: tuple[str, ...], count: int, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the GPUs of a task: by UUID, else by number from `device` on."""
    if not device.startswith("cuda"):
        return ()
    if len(gpus) == count:
        return gpus
    first = int(device.partition(":")[2] or 0)
    among = visible(device, environment)
    if among == ALL:
        return tuple(str(first + number) for number in range(count))
    return among[first : first + count]


def _is_docker(engine: Engine) -> bool:
    return engine.name == "docker"

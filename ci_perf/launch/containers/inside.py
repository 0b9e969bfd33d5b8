"""Where a task finds its files inside of a container, and how these get there. Pure.

Base and head are at the same place: nothing of one side can be seen from the other.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from ci_perf.model.task import Task

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of the host inside of a container."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders of the host that go with one launch.

    ``data`` is ``None`` where nobody has given any: the launcher's own then, in ``own_data``.
    """

    out: Path
    cache: Path
    own_data: Path
    data: Path | None = None
    checkpoints: Path | None = None
    turns: Path | None = None


def task(outside: Task, *, turns: bool = False) -> Task:
    """Spell a task as it is inside. It has its GPUs for itself, and counts them from 0."""
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
        turns=TURNS if turns else "",
        foreign_root="",
    )


def mounts(outside: Task, place: Path, folders: Folders, package: Path) -> tuple[Mount, ...]:
    """Say what of the host a task sees: its root as it is in `place`, and our own `package`."""
    file, root = Path(outside.workload.file), Path(outside.root)
    found = [
        *ours(folders.out, package),
        Mount(source=place, target=WORKSPACE),
        Mount(source=folders.cache, target=CACHE, writable=True),
        Mount(source=folders.data or folders.own_data, target=DATA, writable=folders.data is None),
    ]
    if not file.is_relative_to(root):
        found.append(Mount(source=file.parent, target=SUITE))
    if folders.checkpoints is not None:
        found.append(Mount(source=folders.checkpoints, target=CHECKPOINTS, writable=True))
    if folders.turns is not None:
        found.append(Mount(source=folders.turns, target=TURNS, writable=True))
    return tuple(found)


def ours(out: Path, package: Path) -> tuple[Mount, ...]:
    """Say what every container of ours sees: our code, and the folder for its answer."""
    return (
        Mount(source=package, target=f"{PACKAGE}/{package.name}"),
        Mount(source=out, target=OUT, writable=True),
    )

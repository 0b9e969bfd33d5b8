"""What a pull request does to the baselines: read from GitHub, never checked out."""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, InvalidFileError
from ci_perf.github import commits
from ci_perf.github.client import Client
from ci_perf.github.pulls import ChangedFile
from ci_perf.system import files, git

# More than any suite has workloads; each costs a request.
_MAX_READ = 50
_ANY = "MACHINE/SUITE/WORKLOAD.json"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,204}")


def select(changed: Iterable[ChangedFile], folder: Path) -> list[ChangedFile]:
    """Choose of the files that a pull request changes those of the folder of baselines."""
    top = find_in_repository(folder)
    return [file for file in changed if inside(file.path, top) or inside(file.before, top)]


def find_in_repository(folder: Path) -> PurePosixPath:
    """Return the path of a folder within its repository, which may be checked out anywhere."""
    if folder.is_dir():
        answer = git.run(folder, "rev-parse", "--show-prefix")
        if answer.code == 0:
            return PurePosixPath(answer.out)
    return PurePosixPath(folder)


def inside(path: str, folder: PurePosixPath) -> str:
    """Return where below `folder` a baseline or a calibration lies; empty for any other file."""
    try:
        below = PurePosixPath(path).relative_to(folder)
    except ValueError:
        return ""
    is_baseline = len(below.parts) == len(PurePosixPath(_ANY).parts) and below.suffix == ".json"
    is_calibration = below.parts[1:] == (layout.CALIBRATION,)
    is_safe = all(map(is_name, below.parts))
    return str(below) if (is_baseline or is_calibration) and is_safe else ""


def is_name(part: str) -> bool:
    """Whether a file or folder has a name like ours, which no disk refuses."""
    return _NAME.fullmatch(part) is not None


@contextlib.contextmanager
def write_temporarily(
    contents: Mapping[str, bytes | None], base: Path | None = None
) -> Iterator[Path]:
    """Write foreign baselines to a temporary folder, on top of a copy of those in `base`.

    `contents` has them by their path below the folder, which has passed `inside`; `None` removes a
    baseline.
    """
    with tempfile.TemporaryDirectory(prefix="ci-perf-") as folder:
        root = Path(folder) / "baselines"
        if base is not None and base.is_dir():
            shutil.copytree(base, root, symlinks=True)
        files.make_folder(root)
        for place, content in contents.items():
            _put(root / place, content)
        yield root


def read_contents(
    client: Client, changed: list[ChangedFile], folder: Path
) -> dict[str, bytes | None]:
    """Read the new content of changed baselines, by their path; `None` for removed ones.

    Raises GithubError, and InvalidFileError where there are too many to read.
    """
    if len(changed) > _MAX_READ:
        raise InvalidFileError(f"expected at most {_MAX_READ} baselines, found {len(changed)}")
    read: dict[str, bytes | None] = {}
    top = find_in_repository(folder)
    for file in changed:
        if place := inside(file.before, top):
            read[place] = None
        if place := inside(file.path, top):
            read[place] = _after(client, file)
    return read


def _put(path: Path, content: bytes | None) -> None:
    try:
        if content is not None:
            files.make_folder(path.parent)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWriteError(
            f"{path.name}: expected a place for a file, found none: {error.strerror}"
        ) from None
    if content is not None:
        files.write_bytes(path, content)


def _after(client: Client, file: ChangedFile) -> bytes | None:
    return None if file.is_removed else commits.read_blob(client, file.sha, what=file.path)

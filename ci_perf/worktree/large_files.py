"""Files of Git LFS that a checkout has only by name: none is downloaded, see git.environment."""

from pathlib import Path

from ci_perf.system import git

_POINTER = b"version https://git-lfs.github.com/spec/"
_SHOWN = 3


def missing(folder: Path) -> list[str]:
    """Say which files of the working tree in `folder` are pointers, if any."""
    said = git.run(folder, "ls-files", "-z", ":(attr:filter=lfs)").out
    pointers = [name for name in said.split("\0") if name and _is_pointer(folder / name)]
    if not pointers:
        return []
    return [_told(pointers)]


def _told(pointers: list[str]) -> str:
    more = ", …" if len(pointers) > _SHOWN else ""
    return (
        f"files of Git LFS that the base has only by name: {', '.join(pointers[:_SHOWN])}{more} "
        f"({len(pointers)} in all); `git lfs fetch origin` with its commit brings them"
    )


def _is_pointer(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER

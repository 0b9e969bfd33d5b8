"""Tell whose a path is: the repository's, that of an installed package, or somebody else's."""

import os
import sys
import sysconfig
from enum import Enum

from ci_perf.measuring import module_files

# The kernel's own files: the facts of the machine stand for them.
_OF_KERNEL = ("/dev", "/proc", "/sys")


class Owner(Enum):
    """Whose file or folder it is."""

    REPOSITORY = "repository"
    GIT = "git"
    INSTALLED = "installed"
    OUTSIDE = "outside"


class Places:
    """Classifies paths as the program spells them: absolute in the end, links not resolved."""

    def __init__(
        self, root: str, scratch: str = os.devnull, *, top: str = "", foreign: str = ""
    ) -> None:
        """Look at paths of the repository in `root`; `scratch` is the folder of the launch.

        `top` is that of the repository, `foreign` that of the other side, if known.
        """
        self.root = os.path.abspath(root)
        self.real_root = os.path.realpath(root)
        self.tops = _folders([top]) if top else ()
        self._top = top or root
        self._foreign = _folders([foreign]) if foreign else ()
        installed = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(module_files.OURS)}
        installed |= {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
        ignored = [scratch, *_OF_KERNEL, *_caches()]
        self._installed = _folders([*installed, *ignored])
        self._below_root = _folders([root])
        self._known: dict[str, tuple[Owner, str]] = {}

    def is_installed(self, path: object) -> bool:
        """Whether a path is that of an installed package at first sight: most that are opened are.

        A folder of the repository may have such a name, too.
        """
        return (
            type(path) is str
            and path[:1] == "/"
            and ("/site-packages/" in path or "/dist-packages/" in path)
            and "/.." not in path
            and (not path.startswith(self._below_root) or path.startswith(self._installed))
        )

    def classify(self, path: str) -> tuple[Owner, str]:
        """Return the owner of a path, and its name: below the root, or else the whole path."""
        if not path.startswith("/"):
            return self._classify(os.path.abspath(path))
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._classify(os.path.normpath(path))
        return known

    def is_neighbour(self, path: str) -> bool:
        """Whether a path lies in the repository, beyond the root, and does not lead to it."""
        if not path.startswith(self.tops):
            return False
        leads_to_root = any(
            f"{root}/".startswith(f"{path}/") for root in (self.root, self.real_root)
        )
        return not leads_to_root and self.classify(path)[0] is Owner.OUTSIDE

    def is_of_other_side(self, path: str) -> bool:
        """Whether it is the other side's copy of what this side has, too."""
        return self.classify(path)[0] is Owner.OUTSIDE and any(
            path.startswith(folder) and os.path.lexists(f"{self._top}/{path.removeprefix(folder)}")
            for folder in self._foreign
        )

    def in_repository(self, path: str) -> str | None:
        """Return the path below the root, `None` for what is not the repository's."""
        owner, name = self.classify(path)
        return name if owner is Owner.REPOSITORY else None

    def _classify(self, path: str) -> tuple[Owner, str]:
        below = self._below(path)
        inside = [folder for folder in self._installed if (path + "/").startswith(folder)]
        # Where one lies in the other, the inner one is the more precise.
        if below is None:
            is_installed = inside or not module_files.INSTALLED.isdisjoint(path.split("/"))
            return (Owner.INSTALLED if is_installed else Owner.OUTSIDE), path
        parts = below.split("/")
        if any(len(folder) > len(path) - len(below) for folder in inside):
            return Owner.INSTALLED, path
        return (Owner.GIT if ".git" in parts else Owner.REPOSITORY), below

    def _below(self, path: str) -> str | None:
        for root in (self.root, self.real_root):
            if path == root:
                return ""
            if path.startswith(root + "/"):
                return path[len(root) + 1 :]
        return None


def _folders(paths: list[str]) -> tuple[str, ...]:
    """Spell folders with a slash at their end, once by their name and once with links resolved."""
    both = {*map(os.path.abspath, paths), *map(os.path.realpath, paths)}
    return tuple(sorted(path.rstrip("/") + "/" for path in both))


def _caches() -> list[str]:
    """Return the folders of compiled code of this workload and side, which a run begins empty."""
    names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    return [folder for name in names if (folder := os.environ.get(name))]


def absolute(path: object) -> str | None:
    """Return the path that a call was given, `None` for an open file or none at all.

    An empty path is none, and no folder of the program's.
    """
    try:
        text = os.fsdecode(path)  # type: ignore[arg-type]  # whatever a program passes
    except TypeError:
        return None
    if not text:
        return None
    return text if text.startswith("/") else os.path.join(os.getcwd(), text)

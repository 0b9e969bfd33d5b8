"""Tell which files are those of the repository under measure."""

import os
import sys
import sysconfig
from pathlib import Path

from ci_perf.measuring.module_files import OURS


class Places:
    """Finds the files of the repository in a root, and not what is installed below it."""

    def __init__(self, root: str) -> None:
        here = (Path(root).absolute(), Path(root).resolve())
        self._roots = tuple(f"{folder}/" for folder in here)
        paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(OURS)]
        paths += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
        both = {
            str(each) for path in paths for each in (Path(path).absolute(), Path(path).resolve())
        }
        # Where one lies in the other, the inner one is the more precise.
        self._inside = tuple(f"{path}/" for path in both if path.startswith(self._roots))
        self._known: dict[str, str | None] = {}

    def in_repository(self, path: str) -> str | None:
        """Return the path below the root, `None` for what is not the repository's."""
        if path not in self._known:
            whole = os.path.normpath(Path(path).absolute())
            inside = [root for root in self._roots if whole.startswith(root)]
            is_installed = whole.startswith(self._inside)
            is_ours = bool(inside) and not is_installed and "/.git/" not in whole
            self._known[path] = whole.removeprefix(inside[0]) if is_ours else None
        return self._known[path]

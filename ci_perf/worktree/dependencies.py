"""Which files say what is installed, and differ from a commit: both sides share the packages."""

import os
import tomllib
from pathlib import Path
from typing import Any

from ci_perf.errors import CiPerfError
from ci_perf.system import git
from ci_perf.worktree.merge_base import Start

# Of a large tree on a slow disk.
_ANSWER_S = 300.0
_MOST = 12
# What tools that install packages read, and the workflows that call them.
_DEPENDENCIES = tuple(
    f":(top,icase,glob)**/{name}"
    for name in (
        "*.lock",
        "*constraints*.txt",
        "*requirements*.in",
        "*requirements*.txt",
        ".github/**",
        "conda*.y*ml",
        "dockerfile*",
        "environment*.y*ml",
        "pipfile",
        "pixi.toml",
        "pylock*.toml",
        "pyproject.toml",
        "requirements/**",
        "setup.cfg",
        "setup.py",
    )
)
# Of pyproject.toml, its table `project` and its table `tool`.
_KEYS = (
    ("build-system", "dependency-groups"),
    ("dependencies", "dynamic", "optional-dependencies", "requires-python"),
    ("conda-lock", "hatch", "pdm", "pixi", "poetry", "setuptools", "uv"),
)


def changed(start: Start) -> tuple[str, ...]:
    """Name the files that say what is installed, and differ from the commit; the first of many.

    They are as checked out, and named below the top of the repository. Raises CiPerfError.
    """
    differing = git.read(
        start.top,
        *("diff", "--name-only", "--no-renames", "-z", start.commit, "--"),
        *_DEPENDENCIES,
        timeout_s=_ANSWER_S,
    )
    new = git.read(
        start.top,
        *("ls-files", "--others", "--exclude-standard", "-z", "--"),
        *_DEPENDENCIES,
        timeout_s=_ANSWER_S,
    )
    names = {os.fsdecode(name) for name in (differing + new).split(b"\0") if name}
    asking = [name for name in sorted(names) if _asks_for_others(start, name)]
    return tuple(os.fsencode(name).decode(errors="replace") for name in asking[:_MOST])


def _asks_for_others(start: Start, name: str) -> bool:
    """Whether a file asks for other packages than in the commit: pyproject.toml has more in it."""
    if Path(name).name.lower() != "pyproject.toml":
        return True
    try:
        before = _asked(git.read(start.top, "show", f"{start.commit}:{name}").decode())
        return before != _asked((start.top / name).read_text(encoding="utf-8"))
    except (CiPerfError, OSError, ValueError):  # new, gone, or no TOML
        return True


def _asked(pyproject: str) -> list[Any]:
    """Return what asks for packages in a pyproject.toml. Raises ValueError."""
    document = tomllib.loads(pyproject)
    tables = (document, document.get("project"), document.get("tool"))
    return [
        table.get(key) if isinstance(table, dict) else table
        for table, keys in zip(tables, _KEYS, strict=True)
        for key in keys
    ]

"""Which files say what is installed, and what they ask for."""

import tomllib
from typing import Any

from ci_perf.program.trees import Tree, matches_pattern

# What tools that install packages read, and the workflows that call them.
NAMES = (
    "*.[Dd]ockerfile",
    "*.lock",
    "*constraints*.txt",
    "*requirements*.in",
    "*requirements*.txt",
    ".circleci/**",
    ".github/**",
    ".gitlab-ci*",
    "Containerfile*",
    "Dockerfile*",
    "Jenkinsfile*",
    "Pipfile",
    "azure-pipelines*",
    "conda*.y*ml",
    "environment*.y*ml",
    "pixi.toml",
    "pylock*.toml",
    "pyproject.toml",
    "req*/**",
    "setup.cfg",
    "setup.py",
)
# Of pyproject.toml, its table `project` and its table `tool`.
_KEYS = (
    ("build-system", "dependency-groups"),
    ("dependencies", "dynamic", "optional-dependencies", "requires-python"),
    (
        *("conda-lock", "hatch", "maturin", "meson-python", "pdm", "pixi", "poetry"),
        *("scikit-build", "setuptools", "uv"),
    ),
)


def first_difference(base: Tree, head: Tree) -> str:
    """Return the first file by which the head may ask for other packages, "" where there is none.

    Raises IncomparableError.
    """
    for path in sorted({*base.glob("**"), *head.glob("**")}):
        is_asked = any(matches_pattern(path, f"**/{name}") for name in NAMES)
        if not is_asked or base.blob(path) == head.blob(path):
            continue
        if ask_for_others(path, base.read(path), head.read(path)):
            return path
    return ""


def ask_for_others(name: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether two versions of such a file may ask for other packages: pyproject.toml has more.

    `None` stands for a file that is not there.
    """
    if name.rpartition("/")[2] != "pyproject.toml" or before is None or after is None:
        return True
    try:
        return _list_asked(before) != _list_asked(after)
    except ValueError:
        return True


def _list_asked(pyproject: bytes) -> list[Any]:
    document = tomllib.loads(pyproject.decode())
    tables = (document, document.get("project"), document.get("tool"))
    return [
        table.get(key) if isinstance(table, dict) else table
        for table, keys in zip(tables, _KEYS, strict=True)
        for key in keys
    ]

"""Paths that lead into a checkout, by any spelling: the variables of a side name its own files."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ci_perf.system import git

# They name the folder, or the repository, in which ci-perf was started.
_LEFT_OUT = {"OLDPWD", *git.ELSEWHERE}
# Packages and caches of the user lie below it, and no commit has them.
_KEPT = {"HOME"}
_BORDER = r"\s:;,='\"`()\[\]{}<>|&?#"
# What no path begins behind; an option may come before it: "-I/usr/include".
_BEFORE = r"(?<![\0\w.~/+*?)}-])(-\w)?"
_OPTION = re.compile(r"^-\w(?=[/.])")
_HOME = re.compile(r"(?<![\w./])(~|\$HOME|\$\{HOME\})(?=/)")


def build_side_environment(
    ours: Mapping[str, str], root: Path, home: Path | None = None
) -> dict[str, str]:
    """Return the variables of a process in `root`, which lies in the checkout of a side.

    A path into `home`, the checkout in which ci-perf was started, leads to the same file of the
    side. Where the side has none, it is kept. Without `home`, the side is that checkout.
    """
    top = git.find_top(root)
    start = home or top
    kept = _KEPT if start != top else ours
    moved = {
        name: value if name in kept else _change_paths(value, root, top, start)
        for name, value in ours.items()
        if name not in _LEFT_OUT
    }
    return {**moved, "PWD": str(root)}


def list_kept(ours: Mapping[str, str], root: Path, home: Path) -> list[str]:
    """Name the variables of a side in `root` with a path into `home` all the same."""
    top = git.find_top(root)
    return sorted(
        name
        for name, value in build_side_environment(ours, root, home).items()
        if any(
            find_inside(whole, home) and not find_inside(whole, top)
            for whole in (_complete(path, root, top, home) for path in _list(value, home))
        )
    )


def list_different(ours: Mapping[str, str], base: Path, head: Path, home: Path) -> list[str]:
    """Name the variables that differ between the sides in `base` and `head`, beside PWD."""
    first, second = (build_side_environment(ours, root, home) for root in (base, head))
    return sorted(name for name in first if first[name] != second[name] and name != "PWD")


def find_path_inside(word: str, root: Path, home: Path) -> str:
    """Return the path in a word of a command that leads from any side into `home`; "" for none.

    A relative path does so if it leaves the checkout before, or by a link of the side: commands
    start in `root`.
    """
    text = _HOME.sub(lambda _: os.path.expanduser("~"), word)  # noqa: PTH111  as a shell does
    top = git.find_top(root)
    for token in (*_list(text, home), *re.split(f"[{_BORDER}]+", text)):
        path = _OPTION.sub("", token)
        if find_inside(f"/{_complete(path, root, top, top).lstrip('/')}", home):
            return path
        real = os.path.realpath(root / path.replace("\0", ""))
        if find_inside(real, home) and not find_inside(real, top):
            return path
    return ""


def find_inside(path: str, top: Path) -> str:
    """Return how an absolute path is called below `top`, "." for `top` itself; "" elsewhere."""
    slashes = len(path) - len(path.lstrip("/"))
    if slashes in {0, 2} or "\0" in path:  # two are those of a URL: //HOST/PATH
        return ""
    real = os.path.realpath(top)
    whole = Path(os.path.realpath(path) if ".." in Path(path).parts else f"/{path.lstrip('/')}")
    for place in (whole, *whole.parents):
        if os.path.realpath(place) == real:
            return str(whole.relative_to(place))
    below = os.path.relpath(os.path.realpath(whole), real)
    return "" if below.split("/")[0] == ".." else below


def _complete(path: str, root: Path, top: Path, home: Path) -> str:
    """Return an absolute path as it is, and one that leaves the checkout from `root` in `home`."""
    below = os.path.relpath(root, top)
    leaves = os.path.normpath(f"{below}/{path}").startswith("../")
    return path if path.startswith("/") else f"{home}/{below}/{path}" if leaves else ""


def _find_paths(home: Path) -> re.Pattern[str]:
    """Return what finds a path in a text: without spaces, except in `home` itself."""
    return re.compile(rf"{_BEFORE}((?:{re.escape(str(home))}(?![^/{_BORDER}])|/)[^{_BORDER}]*)")


def _list(text: str, home: Path) -> Iterator[str]:
    """Yield what may be a path: each element of a list, and each path in it."""
    for element in text.split(os.pathsep):
        yield element
        yield from (match[2] for match in _find_paths(home).finditer(element))


def _change_paths(text: str, root: Path, top: Path, home: Path) -> str:
    """Return a text whose paths into `home` lead into `top`: elements of a list, or paths in them.

    One that is not there is kept.
    """

    def change(path: str) -> str:
        below = find_inside(_complete(path, root, top, home), home)
        if not below or not os.path.lexists(top / below):
            return ""
        slashes = len(path) - len(path.lstrip("/"))
        return "/" * (slashes - 1) + str(top / below) + "/" * path.endswith("/")

    def change_inner(match: re.Match[str]) -> str:
        return (match[1] or "") + (change(match[2]) or match[2])

    return os.pathsep.join(
        change(element) or _find_paths(home).sub(change_inner, element)
        for element in text.split(os.pathsep)
    )

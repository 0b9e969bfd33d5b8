"""Which files a build can see: the folder of its context, less what .dockerignore leaves out."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import InvalidFileError
from ci_perf.system import files

IGNORE_FILE = ".dockerignore"


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: str
    text: "re.Pattern[str]"
    is_exception: bool


def visible(context: Path) -> list[Path]:
    """Return every file and link that the engine is sent, relative to `context`, sorted.

    The rules are Docker's: the last pattern that fits a path, or a folder above it, decides. An
    exception opens an ignored folder only when it spells that folder's name. Folders are sent too,
    but count for nothing by themselves.
    """
    return sorted(_visible(context, Path(), _patterns(context / IGNORE_FILE), frozenset()))


def _visible(
    context: Path, folder: Path, patterns: list[_Pattern], fitting: frozenset[int]
) -> Iterator[Path]:
    """Walk one folder; `fitting` says which patterns fit it or a folder above it."""
    for entry in _entries(context / folder):
        path = folder / entry.name
        fits = fitting | {n for n, one in enumerate(patterns) if one.text.fullmatch(str(path))}
        ignored = bool(fits) and not patterns[max(fits)].is_exception
        if entry.is_dir(follow_symlinks=False):
            if not ignored or _may_be_opened(path, patterns):
                yield from _visible(context, path, patterns, fits)
        elif not ignored:
            yield path


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise InvalidFileError(f"{folder}: cannot be read: {error.strerror}") from None


def _may_be_opened(folder: Path, patterns: list[_Pattern]) -> bool:
    return any(one.is_exception and f"{one.words}/".startswith(f"{folder}/") for one in patterns)


def _patterns(file: Path) -> list[_Pattern]:
    if files.is_missing(file):
        return []
    lines = [line.strip() for line in files.read_text(file).removeprefix("\ufeff").splitlines()]
    return [_pattern(line) for line in lines if line and not line.startswith("#")]


def _pattern(line: str) -> _Pattern:
    is_exception = line.startswith("!")
    path = os.path.normpath(line.removeprefix("!").strip()).lstrip("/")
    return _Pattern(path, re.compile(_expression(path)), is_exception)


def _expression(pattern: str) -> str:
    """Translate: `*` and `?` stop at a slash, `**` is any number of folders, `[...]` a choice."""
    found = re.findall(r"\*\*/?|\*|\?|\[\^?[^\]]+\]|\\.|.", pattern, re.DOTALL)
    return "".join(map(_word, found))


def _word(word: str) -> str:
    if word.startswith("**"):
        return "(?:.*/)?" if word.endswith("/") else ".*"
    if word == "*":
        return "[^/]*"
    if word == "?":
        return "[^/]"
    if len(word) > 1 and word.startswith("["):
        return word
    return re.escape(word[-1])

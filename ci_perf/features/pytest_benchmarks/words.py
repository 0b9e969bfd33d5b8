"""The words by which pytest finds tests: paths and node ids first, then its options."""

import itertools
from collections.abc import Sequence
from pathlib import Path


def list_paths(words: Sequence[str]) -> list[str]:
    """Return the paths and node ids among the words."""
    return list(itertools.takewhile(lambda word: not word.startswith("-"), words))


def drop_missing_paths(words: Sequence[str], root: Path) -> list[str]:
    """Return the words without paths that a checkout lacks, unless it lacks all of them."""
    paths = list_paths(words)
    there = [path for path in paths if (root / path.partition("::")[0]).exists()]
    return [*(there or paths), *words[len(paths) :]]

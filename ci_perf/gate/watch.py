"""Notice that somebody has edited the repository: for authors, who measure after each change."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ci_perf.system import git

# What git does not know yet counts where somebody writes it, not where a workload does.
_WRITTEN = (".py", ".toml")

_Stamps = dict[str, tuple[int, int] | None]


def changes(root: Path, *, wait: Callable[[], None]) -> Iterator[tuple[str, ...]]:
    """Yield nothing at once, then the files that have changed, each time that some have.

    Files are those that git tracks below `root`, and new ones in Python and TOML: so what a check
    or a workload writes starts no other check. What changes while the caller is busy is yielded
    next. `wait` is called between two looks; files count once a look finds them as they were.
    Raises CiPerfError: `root` is in no git repository.
    """
    known = _stamps(root)
    yield ()
    while True:
        wait()
        seen = _stamps(root)
        if seen == known:
            continue
        wait()
        if _stamps(root) == seen:
            names = seen.keys() | known.keys()
            changed = [name for name in names if seen.get(name) != known.get(name)]
            known = seen
            yield tuple(sorted(changed))


def _stamps(root: Path) -> _Stamps:
    """Return when each file was written, and its size; `None` for one that is gone."""
    tracked = _listed(root, "--cached")
    written = [
        name for name in _listed(root, "--others", "--exclude-standard") if name.endswith(_WRITTEN)
    ]
    return {name: _stamp(root / name) for name in (*tracked, *written)}


def _listed(root: Path, *which: str) -> list[str]:
    listed = git.read(root, "ls-files", "-z", *which)
    return [name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size

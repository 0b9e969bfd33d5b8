"""What callers of the Python API give, as the values that the functions of the gate take."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_perf.errors import UsageError
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.model import codec
from ci_perf.model.run import Run
from ci_perf.system import files

if TYPE_CHECKING:
    from ci_perf.gate.options import MeasureOptions

Location = str | PathLike[str]
_PATHS = ("workloads", "baselines", "output", "traces", "kernels", "base_python")


def measure_options(
    root: Location | None,
    keywords: Mapping[str, Any],
    **others: Any,  # noqa: ANN401  any field
) -> "MeasureOptions":
    """Return options of a measurement by their names, with every path below the root.

    Raises UsageError: there is no such option, or its value is refused.
    """
    # Late: to judge what was measured needs nothing that measures.
    from ci_perf.gate.options import MeasureOptions

    known = {each.name for each in dataclasses.fields(MeasureOptions)} - {"root"}
    for name in keywords:
        if name not in known:
            raise UsageError(
                f"{name}: expected an option of a measurement, found none of this name; "
                + codec.did_you_mean(name, sorted(known))
            )
    values = {"root": root_of(root), **keywords, **others}
    for name in _PATHS:
        if values.get(name) is not None:
            values[name] = below(root, values[name])
    for name in ("workloads", "baselines"):
        values.setdefault(name, below(root, name))
    values["select"] = names_of(values.get("select", ()))
    values["add"] = tuple(run_of(root, run) for run in values.get("add", ()))
    return MeasureOptions(**values)


def root_of(root: Location | None) -> Path:
    """Return the folder of the repository."""
    return files.current_folder() if root is None else files.current_folder() / root


def folders_of(
    root: Location | None, workloads: Location, baselines: Location
) -> RepositoryFolders:
    """Return the folders of a repository, each below a root that was given."""
    return RepositoryFolders(
        root=root_of(root), workloads=below(root, workloads), baselines=below(root, baselines)
    )


def below(root: Location | None, path: Location) -> Path:
    """Return a path as it was given, or below a root that was given, too."""
    return Path(path) if root is None else Path(root, path).absolute()


def run_of(root: Location | None, source: Run | Location) -> Run | Path:
    """Return a run, or the path of its file."""
    return source if isinstance(source, Run) else below(root, source)


def names_of(select: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (select,) if isinstance(select, str) else tuple(select)


def paths_of(files: Location | Sequence[Location]) -> tuple[Path, ...]:
    """Return one path or several as a tuple."""
    return (Path(files),) if isinstance(files, str | PathLike) else tuple(map(Path, files))

"""What callers of the Python API give, as the values that the functions of the gate take."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.model.run import Run
from ci_perf.system import files

if TYPE_CHECKING:
    from ci_perf.gate.measure import MeasureOptions
    from ci_perf.gate.runners import Runner

Location = str | PathLike[str]


def measure_options(
    *,
    suite: str,
    root: Location | None,
    select: str | Iterable[str],
    workloads: Location,
    baselines: Location,
    runner: "Runner | None",
    output: Location | None = None,
    traces: Location | None = None,
    add: Iterable[Run | Location] = (),
    **others: Any,  # noqa: ANN401  the fields that are what the caller has given
) -> "MeasureOptions":
    """Return the options of a measurement, with every path below the root."""
    # Late: to judge what was measured needs nothing that measures.
    from ci_perf.gate.measure import MeasureOptions
    from ci_perf.gate.runners import Runner

    return MeasureOptions(
        suite=suite,
        root=root_of(root),
        select=names_of(select),
        workloads=below(root, workloads),
        baselines=below(root, baselines),
        add=tuple(run_of(root, run) for run in add),
        runner=runner or Runner(),
        output=None if output is None else below(root, output),
        traces=None if traces is None else below(root, traces),
        **others,
    )


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

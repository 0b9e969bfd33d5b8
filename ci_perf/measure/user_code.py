"""Load a workload file and build what it describes. The only place that runs an author's import."""

import importlib.util
import sys
from pathlib import Path

from ci_perf.workload import Context, Workload


class WorkloadError(Exception):
    """The workload file breaks its contract; the message says how."""


def load(file: Path, root: Path) -> "Builder":
    """Import FILE with the repository and the file's own folder on the path.

    The repository comes first: its package is under measure, not an installed copy. The folder
    comes last: workloads/transformers.py must not stand in for the library of that name.

    Raises WorkloadError where there is no `build`, and whatever the file raises.
    """
    sys.path = [str(root), *sys.path, str(file.parent)]
    spec = importlib.util.spec_from_file_location(f"ci_perf_workload_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickling by loader workers looks here
    spec.loader.exec_module(module)
    build = getattr(module, "build", None)
    if not callable(build):
        raise WorkloadError(
            f"{file.name}: expected a function `build(context)`, found "
            f"{'none' if build is None else type(build).__name__}"
        )
    return Builder(file.name, build)


class Builder:
    """A loaded workload file."""

    def __init__(self, name: str, build: object) -> None:
        self._name = name
        self._build = build

    def build(self, context: Context) -> Workload:
        """Call the author's `build` and check what it returns."""
        assert callable(self._build)
        workload = self._build(context)
        if not isinstance(workload, Workload):
            raise WorkloadError(
                f"{self._name}: expected build() to return a ci_perf.workload.Workload, "
                f"found {type(workload).__name__}"
            )
        if not workload.items_per_step > 0:
            raise WorkloadError(
                f"{self._name}: items_per_step: expected a number > 0, "
                f"found {workload.items_per_step!r}"
            )
        return workload

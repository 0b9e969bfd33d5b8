"""A run or a comparison in the format of another tool: documents in, files out. Writes nothing."""

from collections.abc import Callable
from typing import Any

from ci_perf.errors import UsageError
from ci_perf.exporters import (
    asv,
    dashboards,
    openmetrics,
    tensorboard_scalars,
)
from ci_perf.exporters.series import Exported
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run

# Each takes a run; those of COMPARED a comparison, too.
FORMATS: dict[str, Callable[[Any], Exported]] = {
    "asv": asv.export,
    "bencher": dashboards.bencher,
    "github-action-benchmark": dashboards.github_action_benchmark,
    "hud": dashboards.hud,
    "openmetrics": openmetrics.export,
    "tensorboard": tensorboard_scalars.export,
}
COMPARED = ("openmetrics",)
# What consists of several files, below a folder.
FOLDERS = ("asv", "tensorboard")


def export(document: Run | Comparison, form: str) -> Exported:
    """Return the files of `form`, a key of FORMATS.

    Raises UsageError for another form, and for what a format does not hold; CiPerfError where a
    library is missing.
    """
    if form not in FORMATS:
        raise UsageError(f"format: expected one of {', '.join(FORMATS)}, found {form!r}")
    if isinstance(document, Comparison) and form not in COMPARED:
        raise UsageError(
            f"--format {form}: expected a run, which holds the numbers of one commit, found a "
            f"comparison; give the run.json, or choose --format {' or '.join(COMPARED)}"
        )
    return FORMATS[form](document)

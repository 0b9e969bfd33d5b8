"""A performance gate for PyTorch: measure a fixed suite, judge it, report it."""

from os import PathLike
from typing import TYPE_CHECKING

from ci_perf.version import __version__

if TYPE_CHECKING:
    from ci_perf.notebook import LoadedComparison, LoadedRun

__all__ = ["__version__", "load"]


def load(path: str | PathLike[str]) -> "LoadedRun | LoadedComparison":
    """Open a run or a comparison in a notebook: `.to_frame()`, or show it as it is."""
    from ci_perf import notebook  # late: a command line must not pay for it

    return notebook.load(path)

"""For notebooks: open a run, a comparison or a history, look at it, tabulate it, export it."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import msgspec

from ci_perf import exporters
from ci_perf.errors import InvalidFileError
from ci_perf.exporters.series import Exported
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.model.history import BranchHistory
from ci_perf.model.run import Run
from ci_perf.report import frame, html
from ci_perf.system import files


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """What one session measured; ``run`` is the whole file."""

    run: Run

    def __repr__(self) -> str:
        number = len(self.run.measured)
        return f"LoadedRun({self.run.id}, suite {self.run.suite}, {number} measured)"

    def to_frame(self) -> "frame.DataFrame":
        """Return one row per workload, metric and process."""
        return frame.of_run(self.run)

    def export(self, form: str) -> Exported:
        """Return the files of a format that another tool reads: a key of `exporters.FORMATS`."""
        return exporters.export(self.run, form)

    def _repr_html_(self) -> str:
        return html.run(self.run)


@dataclass(frozen=True, slots=True)
class LoadedComparison:
    """Two sides, judged; ``comparison`` is the whole file."""

    comparison: Comparison

    def __repr__(self) -> str:
        judged = self.comparison
        return f"LoadedComparison({judged.head.run}, suite {judged.suite}, {judged.verdict.value})"

    def to_frame(self) -> "frame.DataFrame":
        """Return one row per row of the comparison."""
        return frame.of_comparison(self.comparison)

    def export(self, form: str) -> Exported:
        """Return the files of a format that another tool reads: "openmetrics"."""
        return exporters.export(self.comparison, form)

    def _repr_html_(self) -> str:
        return html.comparison(self.comparison)


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """The baselines along a branch; ``history`` is the whole document."""

    history: BranchHistory

    def to_frame(self) -> "frame.DataFrame":
        """Return one row per workload, session and metric."""
        return frame.of_history(self.history)


Loadable = Run | Comparison | BranchHistory


class _Tagged(msgspec.Struct):
    """The one key that says what a file is."""

    type: str


def load(source: Loadable | str | PathLike[str]) -> LoadedRun | LoadedComparison | LoadedHistory:
    """Open a run, a comparison or a history, or a file that `run` or `--format json` wrote.

    Raises InvalidFileError: unreadable, damaged, or of another kind.
    """
    if isinstance(source, Run):
        return LoadedRun(source)
    if isinstance(source, Comparison):
        return LoadedComparison(source)
    if isinstance(source, BranchHistory):
        return LoadedHistory(source)
    where = Path(source)
    text = files.read_text(where)
    match codec.decode(text, _Tagged, name=str(where)).type:
        case "run":
            return LoadedRun(codec.decode(text, Run, name=str(where)))
        case "comparison":
            return LoadedComparison(codec.decode(text, Comparison, name=str(where)))
        case "history":
            return LoadedHistory(codec.decode(text, BranchHistory, name=str(where)))
        case other:
            raise InvalidFileError(
                f"{where}: $.type: expected 'run', 'comparison' or 'history', found {other!r}; "
                "give the file that ci-perf run, or compare or history with --format json, wrote"
            )

"""A comparison as a page of HTML, with the run and the baselines that it was made of."""

from pathlib import Path

from ci_perf.baselines import summaries
from ci_perf.errors import CiPerfError
from ci_perf.gate import Notify
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.report.page import render
from ci_perf.system import files


def page(
    comparison: Comparison | Path, run: Run | Path | None, *, baselines: Path, notify: Notify
) -> str:
    """Render a comparison, or the file of one. Raises InvalidFileError and UsageError.

    The sessions below `baselines` are drawn where they are still those that the comparison saw.
    """
    judged = files.read(comparison, Comparison) if isinstance(comparison, Path) else comparison
    measured = files.read(run, Run) if isinstance(run, Path) else run
    return render(judged, run=measured, base=_base(judged, baselines, notify))


def _base(judged: Comparison, baselines: Path, notify: Notify) -> Summary | None:
    side = judged.base
    if not side.sessions or side.machine is None:
        return None
    try:
        base = summaries.baselines(baselines, side.machine, judged.suite)
    except CiPerfError as error:
        notify(f"note: the page shows no committed sessions: {error}")
        return None
    if base.run != side.run:
        shown = base.run or "none"
        notify(
            f"note: the page shows no committed sessions: {baselines} ends with run {shown}, the "
            f"comparison saw run {side.run}; check out the commit that was judged"
        )
        return None
    return base

"""A run, a comparison or a history in another form: a table, or a page of HTML."""

from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.baselines import summaries
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.interchange import notebook
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.report.page import render
from ci_perf.system import files


def export(
    source: Path,
    form: str,
    *,
    run: Path | None = None,
    baselines: Path,
    notify: Notify,
) -> str:
    """Return the text of `form`.

    A page of HTML draws the launches of `run`, which was judged; without it, those of the run.json
    beside `source`, if that is the run. Raises InvalidFileError and UsageError.
    """
    loaded = notebook.load(source)
    if form == "csv":
        return loaded.tabulate().to_csv()
    if not isinstance(loaded.document, Comparison):
        raise UsageError(
            f"{source}: --format html: expected a comparison, which `check` and `compare` write "
            "with --format json, found another document; give the run with --run"
        )
    judged = loaded.document
    measured = files.read(run, Run) if run else _find_run(source, judged, notify)
    return render(judged, run=measured, base=_base(judged, baselines, notify))


def _find_run(source: Path, judged: Comparison, notify: Notify) -> Run | None:
    """Return the run that stands beside a comparison as run.json, if the comparison is of it."""
    path = source.with_name("run.json")
    if not path.is_file():
        return None
    run = files.read(path, Run)
    if run.id == judged.head.run:
        return run
    notify(
        f"note: the page shows no launches: {path} is run {run.id}, the comparison is of run "
        f"{judged.head.run or '(none)'}; name that run with --run"
    )
    return None


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

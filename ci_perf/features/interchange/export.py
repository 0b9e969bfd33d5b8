"""A run, a comparison or a history in another form: tables, other tools, or a page of HTML."""

import importlib
from datetime import datetime
from pathlib import Path
from typing import Any

from ci_perf.baselines import layout, summaries
from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.features.interchange import notebook, openmetrics
from ci_perf.gate import Notify
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.report import frame
from ci_perf.report.page import render
from ci_perf.system import files


def export(
    source: Path,
    form: str,
    *,
    run: Path | None = None,
    baselines: Path,
    output: Path | None,
    notify: Notify,
) -> str:
    """Return the text of `form`, or write what is no text to `output`, a file or a folder.

    A page of HTML draws the launches of `run`, which was judged; without it, those of the run.json
    beside `source`, if that is the run. Raises InvalidFileError, UsageError, CannotWriteError, and
    CiPerfError where a library is missing.
    """
    loaded = notebook.load(source)
    if output is None and form in {"parquet", "tensorboard"}:
        kind = "binary: name a file" if form == "parquet" else "a folder of files: name it"
        raise UsageError(f"--format {form} is {kind} with --output")
    if form == "csv":
        return frame.csv(loaded.to_frame())
    if form == "openmetrics":
        return loaded.to_openmetrics()
    if form == "html":
        if not isinstance(loaded.document, Comparison):
            raise UsageError(
                f"{source}: --format html: expected a comparison, which `check` and `compare` "
                "write with --format json, found another document; give the run with --run"
            )
        judged = loaded.document
        measured = files.read(run, Run) if run else _find_run(source, judged, notify)
        return render(judged, run=measured, base=_base(judged, baselines, notify))
    assert output is not None
    if form == "parquet":
        files.write_bytes(output, frame.parquet(loaded.to_frame()))
    elif isinstance(loaded.document, Run):
        write_scalars(loaded.document, output)
    else:
        raise UsageError(f"{source}: --format {form}: expected a run, found another document")
    return ""


def write_scalars(run: Run, output: Path) -> None:
    """Add a run to a folder of TensorBoard: a scalar per workload and metric.

    The step of a point is when the run began, in seconds since 1970: a folder of many runs is a
    line over time. Raises CiPerfError and InvalidFileError.
    """
    try:
        tensorboard: Any = importlib.import_module("tensorboard.summary")
    except ImportError as error:
        raise CiPerfError(
            f"--format tensorboard needs tensorboard, which is not installed ({error}): expected "
            "it beside ci-perf; next: `pip install tensorboard`"
        ) from None
    started_s = _read_start_s(run)
    folder = f"{run.suite.replace(':', '-')}-{layout.machine_key(run.environment.hard)}"
    files.make_folder(output)
    writer = tensorboard.Writer(str(output / folder))
    for metric, by_workload in openmetrics.values_of(run).items():
        for workload, values in by_workload.items():
            writer.add_scalar(
                f"{workload}/{metric.name}",
                openmetrics.centre(metric, values),
                int(started_s),
                wall_time=started_s,
            )
    writer.close()


def _read_start_s(run: Run) -> float:
    try:
        return datetime.fromisoformat(run.started_at).timestamp()
    except (ValueError, OverflowError):
        raise InvalidFileError(
            f"run {run.id}: $.started_at: expected a time such as 2026-11-21T10:00:00Z, found "
            f"{run.started_at!r}"
        ) from None


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

"""A run or a comparison in another form: the files of another tool, or a page of HTML."""

import json
from pathlib import Path

from ci_perf import notebook
from ci_perf.baselines import summaries
from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.exporters.series import Exported
from ci_perf.gate import Notify
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.notebook import LoadedHistory
from ci_perf.report.page import render
from ci_perf.system import files


def export(
    source: Run | Comparison | Path, form: str, *, output: Path | None, notify: Notify
) -> Exported:
    """Return the files of `form`; write them to `output`, a file or a folder, if it is given.

    `notify` hears what the format cannot hold. Raises InvalidFileError, UsageError,
    CannotWriteError, and CiPerfError where a library is missing.
    """
    loaded = notebook.load(source)
    if isinstance(loaded, LoadedHistory):
        raise UsageError(f"{source}: expected a run or a comparison, found a history")
    exported = loaded.export(form)
    for line in exported.left_out:
        notify(f"note: left out: {line}")
    if output is not None:
        _write(exported, output)
    return exported


def _write(exported: Exported, output: Path) -> None:
    for name, data in exported.files.items():
        path = output / name
        if name:
            files.make_folder(path.parent)
        is_joined = name in exported.joined and path.exists()
        files.write_bytes(path, _join(path, data) if is_joined else data)


def _join(path: Path, data: bytes) -> bytes:
    """Add the keys of `data` to those of the JSON object at `path`. Raises InvalidFileError."""
    try:
        known = json.loads(files.read_text(path))
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{path}: expected JSON, found: {error}") from None
    if not isinstance(known, dict):
        raise InvalidFileError(f"{path}: expected a JSON object, found {type(known).__name__}")
    return (json.dumps(known | json.loads(data), indent=1) + "\n").encode()


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

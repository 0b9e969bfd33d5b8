"""The folder of traces that a person asks for, and what is said of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.model.explanation import ProfiledPairs, StepProfile
from ci_perf.report import units
from ci_perf.system import files


def prepare_folder(folder: Path | None) -> Path | None:
    """Make the folder, and return it whole. Raises CannotWriteError."""
    if folder is None:
        return None
    files.check_link(folder)
    files.make_folder(folder)
    return folder.resolve()


def list_sides(profiled: Iterable[ProfiledPairs]) -> Iterator[tuple[str, StepProfile]]:
    """Yield both sides of first pairs, by what they are called: only they leave traces."""
    for each in profiled:
        for pair in each.pairs[:1]:
            yield f"{each.workload}, base", pair.base
            yield f"{each.workload}, head", pair.head


def describe_traces(
    folder: Path | None, profiles: Iterable[tuple[str, StepProfile]]
) -> Iterator[str]:
    """Say where traces are, and why some are not there; nothing where nobody asked for any."""
    if folder is None:
        return
    kept = 0
    for name, profile in profiles:
        kept += bool(profile.trace_file)
        if not profile.trace_file:
            why = profile.missing.get("trace_file") or profile.absent or "the launch left none"
            yield f"note: {name}: no trace: {why}"
    if kept:
        yield f"traces: {folder} ({units.render_count(kept, 'file')}); open them in ui.perfetto.dev"
    else:
        yield f"traces: none in {folder}"

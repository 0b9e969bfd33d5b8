"""The folder of traces that a person asks for, and what is said of it at the end."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.gate import runners
from ci_perf.gate.runners import Runner
from ci_perf.model.step_profile import ProfiledPairs, StepProfile
from ci_perf.system import files


def prepared(folder: Path | None, runner: Runner, root: Path) -> Path | None:
    """Make the folder, and return it whole. Raises UsageError and CannotWriteError."""
    if folder is None:
        return None
    runners.check_outputs(runner, root, [folder])
    files.make_folder(folder)
    return folder.resolve()


def sides(profiled: Iterable[ProfiledPairs]) -> Iterator[tuple[str, StepProfile]]:
    """Return both sides of first pairs, by what they are called: only they leave traces."""
    for each in profiled:
        for pair in each.pairs[:1]:
            yield f"{each.workload}, base", pair.base
            yield f"{each.workload}, head", pair.head


def said(folder: Path | None, profiles: Iterable[tuple[str, StepProfile]]) -> Iterator[str]:
    """Say where traces are, and why some are not there; nothing where nobody asked for any."""
    if folder is None:
        return
    kept = 0
    for name, profile in profiles:
        kept += bool(profile.trace_file)
        if not profile.trace_file:
            why = profile.missing.get("trace_file") or profile.absent or "the launch left none"
            yield f"note: {name}: no trace: {why}"
    if not kept:
        yield f"traces: none in {folder}"
        return
    files_kept = f"{kept} file{'s' * (kept != 1)}"
    yield f"traces: {folder} ({files_kept}); open them in ui.perfetto.dev"

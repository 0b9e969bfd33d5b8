"""The folders of traces and snapshots that a person asks for, and what is said of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.model.step_profile import ProfiledPairs, StepProfile
from ci_perf.report import units
from ci_perf.session.profiling import Kind
from ci_perf.system import files

_VIEWERS: dict[Kind, str] = {"trace": "ui.perfetto.dev", "snapshot": "pytorch.org/memory_viz"}


def prepared(folder: Path | None) -> Path | None:
    """Make the folder, and return it whole. Raises CannotWriteError."""
    if folder is None:
        return None
    files.check_link(folder)
    files.make_folder(folder)
    return folder.resolve()


def sides(profiled: Iterable[ProfiledPairs]) -> Iterator[tuple[str, StepProfile]]:
    """Return both sides of first pairs, by what they are called: only they leave traces."""
    for each in profiled:
        for pair in each.pairs[:1]:
            yield f"{each.workload}, base", pair.base
            yield f"{each.workload}, head", pair.head


def said(
    folder: Path | None, profiles: Iterable[tuple[str, StepProfile]], kind: Kind = "trace"
) -> Iterator[str]:
    """Say where files are, and why some are not there; nothing where nobody asked for any."""
    if folder is None:
        return
    kept = 0
    for name, profile in profiles:
        is_kept = bool(getattr(profile, f"{kind}_file"))
        kept += is_kept
        if not is_kept:
            why = profile.missing.get(f"{kind}_file") or profile.absent or "the launch left none"
            yield f"note: {name}: no {kind}: {why}"
    if not kept:
        yield f"{kind}s: none in {folder}"
        return
    yield f"{kind}s: {folder} ({units.numbered(kept, 'file')}); open them in {_VIEWERS[kind]}"

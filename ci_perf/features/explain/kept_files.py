"""The folder of traces that a person asks for, and what is said of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from ci_perf.features.explain.model import ProfiledPairs, StepProfile
from ci_perf.model.task import MOST_TRACE_BYTES
from ci_perf.report import units
from ci_perf.system import files

Side = Literal["base", "head"]
# What GitHub keeps for two weeks without a thought, and a browser opens one after the other.
_MOST_BYTES: Final = 4 * MOST_TRACE_BYTES


class KeptTraces:
    """The folder of the traces of a run; nothing is kept without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._bytes = 0
        self._refused = ""

    def find_place(self, workload: str, side: Side) -> str:
        """Return where a launch puts its trace, empty for nowhere; an older one is removed.

        Measured code may have laid a link there.
        """
        self._refused = ""
        if self._folder is None:
            return ""
        target = self._folder / f"{workload}.{side}.pt.trace.json.gz"
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            self._refused = f"{target}: cannot be removed: {error.strerror}"
            return ""
        return str(target)

    def limit(self, profile: StepProfile, place: str) -> StepProfile:
        """Remove the trace of a launch if it is too much for the run; say why one is missing."""
        why = self._refused
        if place and profile.trace_file:
            target = Path(place)
            try:
                size = target.stat().st_size
                if self._bytes + size > _MOST_BYTES:
                    target.unlink()
                    most = f"{_MOST_BYTES // 2**20} MiB"
                    why = f"all traces of the run would be larger than {most}"
                else:
                    self._bytes += size
            except OSError as error:
                why = f"{target}: {error.strerror}"
        if not why:
            return profile
        missing = profile.missing | {"trace_file": why}
        return msgspec.structs.replace(profile, missing=missing, trace_file="")


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
        yield f"traces: {folder} ({units.numbered(kept, 'file')}); open them in ui.perfetto.dev"
    else:
        yield f"traces: none in {folder}"

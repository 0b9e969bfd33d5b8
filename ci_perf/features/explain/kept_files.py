"""The folders of traces and snapshots that a person asks for, and what is said of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from ci_perf.features.explain.model import ProfiledPairs, StepProfile
from ci_perf.model.task import MOST_TRACE_BYTES
from ci_perf.report import units
from ci_perf.system import files

Kind = Literal["trace", "snapshot"]
Side = Literal["base", "head"]
_SUFFIXES: Final[dict[Kind, str]] = {"trace": ".pt.trace.json.gz", "snapshot": ".memory.pickle"}
_VIEWERS: Final[dict[Kind, str]] = {
    "trace": "ui.perfetto.dev",
    "snapshot": "pytorch.org/memory_viz",
}
# What GitHub keeps for two weeks without a thought, and a browser opens one after the other.
_MOST_BYTES: Final = 4 * MOST_TRACE_BYTES


class KeptFiles:
    """The folder of the traces, or of the snapshots, of a run; nothing is kept without a folder."""

    def __init__(self, folder: Path | None, kind: Kind = "trace") -> None:
        self.kind: Kind = kind
        self._folder = folder
        self._bytes = 0
        self._refused = ""

    def find_place(self, workload: str, side: Side) -> str:
        """Return where a launch puts its file, empty for nowhere; an older one is removed.

        Measured code may have laid a link there.
        """
        self._refused = ""
        if self._folder is None:
            return ""
        target = self._folder / f"{workload}.{side}{_SUFFIXES[self.kind]}"
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            self._refused = f"{target}: cannot be removed: {error.strerror}"
            return ""
        return str(target)

    def limit(self, profile: StepProfile, place: str) -> StepProfile:
        """Remove the file of a launch if it is too much for the run; say why one is missing."""
        name, why = f"{self.kind}_file", self._refused
        if place and getattr(profile, name):
            target = Path(place)
            try:
                self._bytes += target.stat().st_size
                if self._bytes > _MOST_BYTES:
                    self._bytes -= target.stat().st_size
                    target.unlink()
                    most = f"{_MOST_BYTES // 2**20} MiB"
                    why = f"all {self.kind}s of the run would be larger than {most}"
            except OSError as error:
                why = f"{target}: {error.strerror}"
        if not why:
            return profile
        without: dict[str, str] = {name: ""}
        return msgspec.structs.replace(profile, missing=profile.missing | {name: why}, **without)


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


def describe_files(
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
    if kept:
        yield f"{kind}s: {folder} ({units.numbered(kept, 'file')}); open them in {_VIEWERS[kind]}"
    else:
        yield f"{kind}s: none in {folder}"

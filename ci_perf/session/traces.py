"""Where traces and snapshots of a run are put, and how many bytes they may take together."""

from pathlib import Path
from typing import Literal

import msgspec

from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import MOST_TRACE_BYTES

Kind = Literal["trace", "snapshot"]
_SUFFIXES: dict[Kind, str] = {"trace": ".pt.trace.json.gz", "snapshot": ".memory.pickle"}
# What GitHub keeps for two weeks without a thought, and a browser opens one after the other.
_MOST_BYTES = 4 * MOST_TRACE_BYTES

Side = Literal["base", "head"]


class KeptFiles:
    """The folder of the traces, or of the snapshots, of a run; nothing is kept without a folder."""

    def __init__(self, folder: Path | None, kind: Kind = "trace") -> None:
        self._folder = folder
        self._kind: Kind = kind
        self._bytes = 0
        self._refused = ""

    def place(self, workload: str, side: Side) -> str:
        """Return where a launch puts its file, empty for nowhere; an older one is removed.

        Measured code may have laid a link there.
        """
        self._refused = ""
        if self._folder is None:
            return ""
        target = self._folder / f"{workload}.{side}{_SUFFIXES[self._kind]}"
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            self._refused = f"{target}: cannot be removed: {error.strerror}"
            return ""
        return str(target)

    def within_bytes(self, profile: StepProfile, place: str) -> StepProfile:
        """Remove the file of a launch if it is too much for the run; say why one is missing."""
        name = f"{self._kind}_file"
        why = self._refused
        if place and getattr(profile, name):
            why = self._too_much(Path(place))
        if not why:
            return profile
        without: dict[str, str] = {name: ""}
        return msgspec.structs.replace(profile, missing=profile.missing | {name: why}, **without)

    def _too_much(self, target: Path) -> str:
        try:
            size = target.stat().st_size
            if self._bytes + size <= _MOST_BYTES:
                self._bytes += size
                return ""
            target.unlink()
        except OSError as error:
            return f"{target}: {error.strerror}"
        return f"all {self._kind}s of the run would be larger than {_MOST_BYTES // 2**20} MiB"

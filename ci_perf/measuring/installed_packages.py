"""What pip has noted of installed packages: their files, and where they come from."""

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.measuring.module_files import real_path

# A byte in the address of a file.
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")
# What leads Python to the sources of an editable install.
_FINDER = "__editable__"


@dataclass(frozen=True, slots=True)
class LocalPackage:
    """A package in ``folder`` that pip has installed from ``origin``, a folder or an archive here.

    ``files`` are below ``folder``, as its RECORD names them. Of an editable package they are those
    that were built; its sources stay where they are.
    """

    folder: Path
    origin: Path
    files: frozenset[str]


def local_packages(folder: Path) -> Iterable[LocalPackage]:
    """Yield the packages in a folder that come from this machine, not from an index."""
    for note in folder.glob("*.dist-info/direct_url.json"):
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            noted = msgspec.json.decode(note.read_bytes(), type=_Origin)
            if not noted.url.startswith("file://"):
                continue
            quoted = noted.url.removeprefix("file://").encode()
            origin = Path(real_path(os.fsdecode(_QUOTED.sub(_unquoted, quoted))))
            names = (name for name in _recorded(note.parent) if not name.startswith(_FINDER))
            yield LocalPackage(folder, origin, frozenset(names))


def owners(folder: Path, files: Sequence[str]) -> dict[str, str]:
    """Return the names of the packages in `folder` that have some of these files, by the file."""
    owned: dict[str, str] = {}
    for metadata in folder.glob("*.dist-info"):
        with contextlib.suppress(OSError, ValueError):
            text = f"\n{(metadata / 'RECORD').read_text()}"
            name = metadata.name.partition("-")[0]
            owned |= {file: name for file in files if f"\n{file}," in text}
    return owned


def is_editable(direct_url: str) -> bool:
    """Whether a package was installed editable, by the text of its direct_url.json."""
    try:
        return msgspec.json.decode(direct_url, type=_Origin).dir_info.editable
    except msgspec.MsgspecError:
        return False


def _recorded(metadata: Path) -> Iterable[str]:
    lines = (metadata / "RECORD").read_text().splitlines()
    return (line.partition(",")[0] for line in lines)


def _unquoted(byte: re.Match[bytes]) -> bytes:
    return bytes.fromhex(byte[1].decode())


class _Origin(msgspec.Struct):
    """What PEP 610 says of where a package was installed from, as far as it is used here."""

    class Folder(msgspec.Struct):
        editable: bool = False

    url: str
    dir_info: Folder = msgspec.field(default_factory=Folder)

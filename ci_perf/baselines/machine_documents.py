"""The calibration and the qualification of a machine: baselines/MACHINE/*.json."""

from pathlib import Path
from typing import TypeVar

from ci_perf.baselines import layout
from ci_perf.model import codec
from ci_perf.model.calibration import Calibration, Qualification
from ci_perf.model.environment import Machine, is_same
from ci_perf.system import files

CALIBRATION, QUALIFICATION = "calibration.json", "qualification.json"

Document = TypeVar("Document", Calibration, Qualification)


def read(root: Path, machine: Machine) -> Calibration | None:
    """Return the calibration of this machine below `root`; `None` where there is none.

    A file of other hard facts is of another machine, which only has the same name. Raises
    InvalidFileError that names file, place and value.
    """
    return _read(root / layout.machine_key(machine) / CALIBRATION, Calibration, machine)


def qualification(root: Path, machine: Machine) -> Qualification | None:
    """Return the qualification of this machine: the changes that it can notice. See `read`."""
    return _read(root / layout.machine_key(machine) / QUALIFICATION, Qualification, machine)


def write(root: Path, document: Calibration | Qualification) -> Path:
    """Write a document whole or not at all; return its path."""
    name = CALIBRATION if isinstance(document, Calibration) else QUALIFICATION
    file = root / layout.machine_key(document.machine) / name
    text = layout.readable(document)
    codec.decode(text, type(document), name=str(file))  # never write what could not be read again
    files.make_folder(file.parent)
    files.write_text(file, text)
    return file


def _read(file: Path, kind: type[Document], machine: Machine) -> Document | None:
    if files.is_missing(file):
        return None
    document = files.read(file, kind)
    return document if is_same(document.machine, machine) else None

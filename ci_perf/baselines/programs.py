"""The records of programs beside the baselines: baselines/MACHINE/SUITE/programs/WORKLOAD.json."""

from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.environment import Machine
from ci_perf.model.program import Program
from ci_perf.system import files

_FOLDER = "programs"


def file_of(baseline: Path) -> Path:
    """Return the file of the record that belongs to a baseline file."""
    return baseline.parent / _FOLDER / baseline.name


def read(root: Path, machine: Machine, suite: str, workload: str) -> Program | None:
    """Return the committed record of a workload; `None` without one. Raises InvalidFileError."""
    file = file_of(layout.path(root, machine, suite, workload))
    if files.is_missing(file):
        return None
    program = files.read(file, Program)
    if program.workload != workload:
        raise InvalidFileError(
            f"{file}: $.workload: expected {workload!r}, as the file is called, found "
            f"{program.workload!r}"
        )
    return program


def of_newest_session(root: Path, machine: Machine, suite: str, workload: str) -> Program | None:
    """Return the committed record if it is of the program that the newest session has measured.

    An older one describes another program than the numbers may stand for. Raises InvalidFileError.
    """
    program = read(root, machine, suite, workload)
    file = layout.path(root, machine, suite, workload)
    if program is None or files.is_missing(file):
        return None
    return program if layout.read(file).sessions[-1].run == program.run else None


def render(program: Program) -> str:
    """Write for people and git: a file of the repository, or a folder, on a line of its own."""
    return layout.readable(program)


def write(file: Path, program: Program) -> None:
    """Write one record whole or not at all."""
    text = render(program)
    codec.decode(text, Program, name=str(file))  # never write what could not be read again
    files.make_folder(file.parent)
    files.write_text(file, text)

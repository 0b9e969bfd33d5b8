"""Whether a program takes from another checkout what it took when it was recorded.

Both programs start in the same state. As long as all that is executed, read or looked for is equal,
every operation gives the same result, so the next thing that is taken is the same one, too.

A record holds for some conditions outside of the repository. Too many of them cost a recording
launch; one too few would call another program the same.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.model.environment import Environment
from ci_perf.model.program import (
    NATIVE_VARIABLES,
    SET_BY_LAUNCH,
    ModuleSearch,
    Program,
    ProgramFile,
    blob,
    digest,
    is_without_plugins,
    listing,
    searched,
)
from ci_perf.model.suite import PlannedWorkload, Setup
from ci_perf.program import units
from ci_perf.program.trees import IncomparableError, Tree, joined
from ci_perf.version import __version__

# A larger file beyond the repository is known by its length and the time of its last change.
_LARGEST_OUTSIDE = 2**26
# Raise it when a launch does something else with a workload, or a record means something else.
_BEHAVIOUR = 4

# They say how often and how long the same step runs, or what is made of its times. Any other
# setting of the protocol counts, also one that is added later.
HOW_OFTEN = frozenset(
    {
        "block_min_s",
        "launch_spread",
        "memory_steps",
        "monitor_hz",
        "phase_steps",
        "processes",
        "statistic",
        "timed_max_s",
        "timed_min_blocks",
        "timed_min_s",
        "timeout_s",
        "warmup_max_s",
        "warmup_min_s",
        "warmup_min_steps",
        "warmup_tolerance",
        "warmup_window",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDifference:
    """Why a program may be another one: ``detail`` is a sentence without its full stop.

    ``path`` and ``unit`` say where, as far as that is a place in the repository.
    """

    detail: str
    path: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The size of a record: ``functions`` of ``files``, bodies of classes among them.

    ``data_files`` are read as a whole.
    """

    functions: int
    files: int
    data_files: int


def first_difference(program: Program, tree: Tree) -> ProgramDifference | None:
    """Return the first thing of the repository in which `tree` differs from the record, if any.

    What cannot be compared differs, and a record with obstacles differs from everything.
    """
    return next(_differences(program, tree), None)


def counts(program: Program) -> Counts:
    """Count what is equal where there is no difference."""
    sources = [file.units for file in program.files.values() if file.units]
    return Counts(
        functions=sum(unit != units.MODULE for source in sources for unit in source),
        files=len(sources),
        data_files=sum(file.units is None for file in program.files.values()),
    )


def other_conditions(program: Program, conditions: str, variables: Mapping[str, str]) -> str:
    """Say how machine, software or settings differ from those of the record; "" if they do not.

    `conditions` is what `conditions_digest` returns here, `variables` the digests of
    the environment of a launch.
    """
    if not program.conditions or program.conditions != conditions:
        return "the machine, its software or the settings are not those of the record"
    for name, recorded in sorted(program.variables.items()):
        if recorded != variables.get(name, ""):
            return f"the environment variable {name} has another value"
    for name in sorted(variables.keys() - program.variables.keys() - SET_BY_LAUNCH):
        if name.startswith(NATIVE_VARIABLES):
            return f"the environment variable {name} is new"
    return ""


def outside_difference(program: Program) -> str:
    """Say which file beyond the repository is not the one of the record; "" if all are."""
    for path, recorded in sorted(program.outside.items()):
        try:
            now = _outside(Path(path))
        except (OSError, ValueError) as error:
            return f"{path} cannot be compared: {error}"
        if now != recorded:
            return f"{path} differs"
    return ""


def _outside(path: Path) -> str:
    """Return the digest of a file or of the names in a folder, "" where there is neither.

    The recording takes the same (`measuring/recording/contents.py`).
    """
    if path.is_dir():
        return listing(child.name for child in path.iterdir())
    if not path.is_file():
        if path.exists():
            raise ValueError("it is no regular file")
        return ""
    state = path.stat()
    if state.st_size > _LARGEST_OUTSIDE:
        return digest(b"%d %d" % (state.st_size, state.st_mtime_ns))
    return digest(path.read_bytes())


def inputs_digest(tree: Tree, patterns: Iterable[str]) -> dict[str, str]:
    """Return the digest of the files that each pattern matches, by path and content.

    Raises IncomparableError.
    """
    return {
        pattern: digest(
            b"\0".join(os.fsencode(f"{tree.blob(path)} {path}") for path in tree.glob(pattern))
        )
        for pattern in patterns
    }


def _differences(program: Program, tree: Tree) -> Iterator[ProgramDifference]:
    for obstacle in program.obstacles:
        yield ProgramDifference(detail=obstacle)
    for path, file in sorted(program.files.items()):
        yield from _reported(path, _in_file(path, file, tree))
    for folder, search in sorted(program.searches.items()):
        yield from _reported(folder, _in_search(folder, search, tree, program))
    for path in sorted(program.absent):
        yield from _reported(path, _in_absent(path, tree))
    for folder, recorded in sorted(program.folders.items()):
        yield from _reported(folder, _in_folder(folder, recorded, tree))
    for path in sorted({*program.files, *program.folders, *program.searches, *program.links}):
        yield from _reported(path, _in_links(path, program.links, tree))
    for pattern, inputs in sorted(program.inputs.items()):
        yield from _reported("", _in_inputs(pattern, inputs, tree))


def _reported(path: str, differences: Iterator[ProgramDifference]) -> Iterator[ProgramDifference]:
    """Yield the differences; what cannot be compared is one."""
    try:
        yield from differences
    except IncomparableError as error:
        yield ProgramDifference(path=path, detail=str(error))


def _in_file(path: str, file: ProgramFile, tree: Tree) -> Iterator[ProgramDifference]:
    blob = tree.blob(path)
    if blob is None:
        yield ProgramDifference(path=path, detail=f"{path} is not there any more")
        return
    if file.units is not None and (compiled := tree.compiled(path)):
        detail = f"{compiled} may be executed in the place of {path}"
        yield ProgramDifference(path=compiled, detail=detail)
    if blob == file.blob or file.units == {}:
        return
    if file.units is None:
        yield ProgramDifference(path=path, detail=f"{path} differs")
    else:
        yield from _in_source(path, file.units, tree.read(path) or b"")


def _in_source(
    path: str, recorded: Mapping[str, str], source: bytes
) -> Iterator[ProgramDifference]:
    try:
        now = units.digests(source)
    except ValueError as error:
        yield ProgramDifference(path=path, detail=f"{path} differs and cannot be parsed: {error}")
        return
    # A function says more than the body of the module, which holds the head of a new one.
    for unit in sorted(recorded, key=lambda name: (name.endswith(":"), name)):
        before = recorded[unit]
        if unit not in now:
            detail = f"{path}: {unit_name(unit)} is not there any more"
            yield ProgramDifference(path=path, unit=unit, detail=detail)
        elif now[unit] != before:
            yield ProgramDifference(
                path=path, unit=unit, detail=f"{path}: {unit_name(unit)} differs"
            )


def unit_name(unit: str) -> str:
    """Name a unit for a person: "Net.forward", "the body of class Net", "the module's body"."""
    if unit == units.MODULE:
        return "the body of the module"
    return f"the body of class {unit[:-1]}" if unit.endswith(":") else unit


def _in_search(
    folder: str, search: ModuleSearch, tree: Tree, program: Program
) -> Iterator[ProgramDifference]:
    now = [
        entry
        for entry in searched(search.names, tree.names(folder) or ())
        if not is_without_plugins(entry, tree.read(f"{joined(folder, entry)}/entry_points.txt"))
    ]
    for path in (joined(folder, entry) for entry in now if entry not in search.entries):
        yield ProgramDifference(path=path, detail=f"{path} is new, and an import would look at it")
    for path in (joined(folder, entry) for entry in search.entries if entry not in now):
        detail = f"{path} is not there any more, and an import looked at it"
        yield ProgramDifference(path=path, detail=detail)
    for path in (joined(folder, entry) for entry in now):
        yield from _in_package(path, tree, program)


def _in_package(path: str, tree: Tree, program: Program) -> Iterator[ProgramDifference]:
    """Find what makes a package of a folder that an import looked at, or another package."""
    for entry in searched(["__init__"], tree.names(path) or ()):
        inner = joined(path, entry)
        if inner not in program.files:
            yield ProgramDifference(path=inner, detail=f"{inner} is new, and would be imported")


def _in_absent(path: str, tree: Tree) -> Iterator[ProgramDifference]:
    if tree.exists(path):
        yield ProgramDifference(
            path=path, detail=f"{path} was looked for in vain, and is there now"
        )


def _in_folder(folder: str, recorded: str, tree: Tree) -> Iterator[ProgramDifference]:
    names = tree.names(folder)
    called = folder or "the root of the repository"
    if names is None:
        yield ProgramDifference(path=folder, detail=f"{called} is no folder any more")
    elif recorded and listing(names) != recorded:
        yield ProgramDifference(path=folder, detail=f"the names in {called} differ")


def _in_links(path: str, recorded: Mapping[str, str], tree: Tree) -> Iterator[ProgramDifference]:
    now = tree.links(path)
    steps = path.split("/")
    for link in ("/".join(steps[:depth]) for depth in range(1, len(steps) + 1)):
        if now.get(link) != recorded.get(link):
            yield ProgramDifference(path=link, detail=f"{link} is another link, or was none")


def _in_inputs(pattern: str, recorded: str, tree: Tree) -> Iterator[ProgramDifference]:
    if inputs_digest(tree, [pattern])[pattern] != recorded:
        yield ProgramDifference(detail=f"the files that the input {pattern} names differ")


def conditions_digest(
    environment: Environment,
    workload: PlannedWorkload,
    *,
    root: Path,
    python_path: tuple[str, ...] = (),
    setup: Setup = Setup(),  # noqa: B008  frozen
) -> str:
    """Return the digest of a machine, its software and image, and how a workload is launched.

    `root` is the checkout of the workload. The kernel counts, although it changes often: libraries
    choose by its release (accelerate warns of old ones). What a machine has noted does not: its
    name, its load, and the amount of its memory, which no two boots report alike. Raises OSError
    where the file of a shipped workload cannot be read.
    """
    protocol = msgspec.structs.asdict(workload.protocol)
    facts = {
        "behaviour": (_BEHAVIOUR, __version__),
        "machine": environment.hard,
        "software": environment.soft,
        "image": environment.image,
        "file": _file(Path(workload.file), root),
        "parameters": workload.parameters,
        "protocol": {name: value for name, value in protocol.items() if name not in HOW_OFTEN},
        # By another one no baseline compares. That of a calibration is not the suite's.
        "statistic": workload.protocol.statistic if workload.own_statistic else "",
        "launch": (workload.launch, workload.world_size, workload.slowdown),
        "inputs": workload.inputs,
        "python_path": python_path,
        "setup": setup.command,
    }
    return digest(msgspec.json.encode(facts, order="sorted"))


def _file(path: Path, root: Path) -> str:
    """Name the workload's file: another one may get its name in suite.toml.

    The record holds what is in a file below the root, but not in one that ships with ci-perf.
    """
    real = Path(os.path.realpath(path))
    top = Path(os.path.realpath(root))
    return str(real.relative_to(top)) if real.is_relative_to(top) else blob(real.read_bytes())

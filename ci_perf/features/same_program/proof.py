"""Whether a side has all files that a program used as they were when it was recorded.

Both programs start in the same state. As long as all that they import, read, list or look for is
equal, every operation gives the same result, so the next thing that is used is the same one, too.

A record holds for some conditions outside of the repository. Too many of them cost launches; one
too few would call another program the same.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ci_perf.features.same_program import code, contents
from ci_perf.model.environment import Environment
from ci_perf.model.program import (
    NATIVE_VARIABLES,
    SET_BY_LAUNCH,
    Program,
    blob,
    digest,
)
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.program.trees import EntryKind, IncomparableError, Tree, join_path
from ci_perf.version import __version__

# The magic number of the Python, then flags: 0 where date and size of the source are compared.
_PYC_FLAGS = slice(4, 8)
_MARKS = {EntryKind.FOLDER: "/", EntryKind.LINK: "@"}
# Raise it when a launch does something else with a workload, or a record means something else.
_BEHAVIOUR = 7

# They say how often a launch is repeated, or what is made of its times.
OF_RUNS = frozenset({"launch_spread", "processes", "statistic"})


def find_difference(
    program: Program, tree: Tree, sources: Tree | None = None
) -> tuple[str, str] | None:
    """Return the first path, "" for none, in which `tree` differs from a record, and a sentence.

    What cannot be compared differs, and a record with obstacles differs from everything. `sources`
    is a tree of which the record is known to hold: to read many files of it is cheap.
    """
    try:
        return next(_find_differences(program, tree, sources or tree), None)
    except IncomparableError as error:
        return "", str(error)


def _find_differences(program: Program, tree: Tree, sources: Tree) -> Iterator[tuple[str, str]]:
    for obstacle in program.obstacles:
        yield "", obstacle
    yield from _find_in_files(program, tree, sources)
    for folder, recorded in program.folders.items():
        name = folder or "the root of the repository"
        entry = tree.find_entry(folder)
        if entry is None or entry.kind is not EntryKind.FOLDER:
            yield folder, f"{name} is no folder any more"
        elif recorded and _digest_folder(folder, tree) != recorded:
            yield folder, f"the names in {name} differ"
    yield from _find_new(program, tree)
    for pattern, recorded in program.inputs.items():
        if digest_inputs(tree, [pattern])[pattern] != recorded:
            yield "", f"the files that the input {pattern} names differ"


def _find_in_files(program: Program, tree: Tree, sources: Tree) -> Iterator[tuple[str, str]]:
    for path, recorded in program.links.items():
        link = tree.find_entry(path)
        is_link = link is not None and link.kind is EntryKind.LINK
        if not is_link or blob(os.fsencode(link.target if link else "")) != recorded:
            yield path, f"{path} is another link, or was none"
    changed = []
    for path, recorded in program.files.items():
        entry = tree.find_entry(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            yield path, f"{path} is not there any more"
        elif recorded and tree.blob(path) != recorded:
            changed.append(path)
    for path in changed:
        if path not in program.code or not _has_same_code(program, path, tree, sources):
            yield path, f"{path} differs"
    for path in program.code:
        if compiled := _find_unchecked(path, tree):
            yield compiled, f"{compiled} may be executed in the place of {path}"


def _find_new(program: Program, tree: Tree) -> Iterator[tuple[str, str]]:
    """Find what is there now, and would be found by a search that the record has."""
    known = {*program.files, *program.links, *program.folders}
    for folder, names in program.searches.items():
        entry = tree.find_entry(folder)
        if entry is None or entry.kind is not EntryKind.FOLDER:
            continue

        def read(name: str, folder: str = folder) -> bytes | None:
            return tree.read(join_path(folder, name))

        for name in contents.find_matches(names, tree.names(folder) or (), read):
            if (path := join_path(folder, name)) not in known:
                yield path, f"{path} is new, and the program has looked for such a name"


def _has_same_code(program: Program, path: str, tree: Tree, sources: Tree) -> bool:
    """Whether a Python file differs in nothing that the program can see."""
    recorded, new = program.files[path], tree.read(path) or b""
    kept = sources.read(path) if sources.blob(path) == recorded else None
    old = tree.read_object(recorded) if kept is None else kept
    texts = [sources.read(each) or b"" for each in program.files if each.endswith(".py")]
    shows_lines = any(map(code.shows_lines, [old, new, *texts]))
    return code.is_same_code(old, new) and not shows_lines


def _find_unchecked(path: str, tree: Tree) -> str:
    """Return the compiled file that Python runs whatever the source says, or ""."""
    folder, _, name = path.rpartition("/")
    cache = join_path(folder, "__pycache__")
    prefix = f"{name.removesuffix('.py')}."
    for compiled in tree.names(cache) or ():
        file = join_path(cache, compiled)
        if compiled.startswith(prefix) and any((tree.read(file) or b"")[_PYC_FLAGS]):
            return file
    return ""


def _digest_folder(folder: str, tree: Tree) -> str:
    entries = []
    for name in tree.names(folder) or ():
        entry = tree.find_entry(join_path(folder, name))
        entries.append(name + (_MARKS.get(entry.kind, "") if entry else ""))
    return contents.digest_entries(entries)


def find_other_condition(program: Program, conditions: str, variables: Mapping[str, str]) -> str:
    """Say how machine, software or settings differ from those of the record; "" if they do not.

    `conditions` is what `digest_conditions` returns here, `variables` the digests of the
    environment of a launch.
    """
    if not program.conditions or program.conditions != conditions:
        return "the machine, its software or the settings are not those of the record"
    for name, recorded in sorted(program.variables.items()):
        if recorded != variables.get(name, ""):
            return f"the environment variable {name} has another value"
    for name in sorted(variables.keys() - program.variables.keys() - SET_BY_LAUNCH):
        if name.startswith(NATIVE_VARIABLES):
            return f"the environment variable {name} is new"
    for path, recorded in sorted(program.outside.items()):
        try:
            if contents.digest_outside(path) != recorded:
                return f"{path} differs"
        except (OSError, ValueError) as error:
            return f"{path} cannot be compared: {error}"
    return ""


def digest_inputs(tree: Tree, patterns: Iterable[str]) -> dict[str, str]:
    """Return the digest of the files that each pattern matches, by path and content.

    Raises IncomparableError.
    """
    return {
        pattern: digest(
            b"\0".join(os.fsencode(f"{tree.blob(path)} {path}") for path in tree.glob(pattern))
        )
        for pattern in patterns
    }


def digest_conditions(
    environment: Environment, workload: PlannedWorkload, plan: Plan, root: Path
) -> str:
    """Return the digest of a machine, its software and image, and how a workload is launched.

    `root` is the checkout of the workload. The kernel counts, although it changes often: libraries
    choose by its release (accelerate warns of old ones). What a machine has noted does not: its
    name, its load, and the amount of its memory, which no two boots report alike. Raises OSError
    where the file of a shipped workload cannot be read.
    """
    # The record holds what is in a file below the root, but not in one that ships with ci-perf.
    file, top = Path(os.path.realpath(workload.file)), os.path.realpath(root)
    is_ours = file.is_relative_to(top)
    protocol = msgspec.structs.asdict(workload.protocol)
    facts = {
        "behaviour": (_BEHAVIOUR, __version__),
        "machine": environment.hard,
        "software": environment.soft,
        "image": environment.image,
        "file": str(file.relative_to(top)) if is_ours else blob(file.read_bytes()),
        "parameters": workload.parameters,
        "protocol": {name: value for name, value in protocol.items() if name not in OF_RUNS},
        # By another one no baseline compares. That of a calibration is not the suite's.
        "statistic": workload.protocol.statistic if workload.own_statistic else "",
        "launch": (workload.launch, workload.world_size),
        "inputs": workload.inputs,
        "python_path": plan.python_path,
        "setup": plan.setup.command,
    }
    return digest(msgspec.json.encode(facts, order="sorted"))

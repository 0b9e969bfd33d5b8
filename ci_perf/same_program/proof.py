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
from ci_perf.same_program import code
from ci_perf.system import contents
from ci_perf.version import __version__

# The magic number of the Python, then flags: 0 where date and size of the source are compared.
_PYC_FLAGS = slice(4, 8)
_MARKS = {EntryKind.FOLDER: "/", EntryKind.LINK: "@"}
# Raise it when a launch does something else with a workload, or a record means something else.
_BEHAVIOUR = 8

# They say how often a launch is repeated, or what is made of its times.
OF_RUNS = frozenset({"launch_spread", "processes", "statistic"})


def find_difference(program: Program, tree: Tree, sources: Tree | None = None) -> str:
    """Say how `tree` differs from a record, by the first difference; "" where it does not.

    What cannot be compared differs, and a record with obstacles differs from everything. `sources`
    is a tree of which the record is known to hold: to read many files of it is cheap.
    """
    try:
        return next(_find_differences(program, tree, sources or tree), "")
    except IncomparableError as error:
        return str(error)


def _find_differences(program: Program, tree: Tree, sources: Tree) -> Iterator[str]:
    yield from program.obstacles
    yield from _find_in_paths(program, tree, sources)
    yield from _find_new(program, tree)
    for pattern, recorded in program.inputs.items():
        if digest_inputs(tree, [pattern])[pattern] != recorded:
            yield f"the files that the input {pattern} names differ"


def _find_in_paths(program: Program, tree: Tree, sources: Tree) -> Iterator[str]:
    """Compare what is there: files before the folders that they are in, their code at the end."""
    changed = []
    for path, recorded in sorted(program.paths.items(), key=lambda each: _is_folder(each[1])):
        name = path or "the root of the repository"
        state = _read_state(path, recorded, tree)
        is_there = state.partition(" ")[0] == recorded.partition(" ")[0]
        if recorded.startswith("code ") and (compiled := _find_unchecked(path, tree)):
            yield f"{compiled} may be executed in the place of {path}"
        if state == recorded:
            continue
        if recorded.startswith("link "):
            yield f"{name} is another link, or was none"
        elif not is_there:
            yield f"{name} is not there any more"
        elif _is_folder(recorded):
            yield f"the names in {name} differ"
        elif recorded.startswith("code "):
            changed.append(path)
        else:
            yield f"{name} differs"
    for path in changed:
        if not _has_same_code(program, path, tree, sources):
            yield f"{path} differs"


def _is_folder(state: str) -> bool:
    return state.startswith("folder")


def _read_state(path: str, recorded: str, tree: Tree) -> str:
    """Return what is at a path, in the words of what was recorded; "" where nothing is."""
    entry = tree.find_entry(path)
    if entry is None:
        return ""
    kind, _, known = recorded.partition(" ")
    match entry.kind:
        case EntryKind.LINK:
            return f"link {blob(os.fsencode(entry.target))}"
        case EntryKind.FOLDER if _is_folder(recorded) and known:
            return f"folder {_digest_folder(path, tree)}"
        case EntryKind.FILE if known:
            return f"{'code' if kind == 'code' else 'file'} {tree.blob(path)}"
    return str(entry.kind.value)


def _find_new(program: Program, tree: Tree) -> Iterator[str]:
    """Find what is there now, and would be found by a search that the record has."""
    for folder, names in program.searches.items():
        entry = tree.find_entry(folder)
        if entry is None or entry.kind is not EntryKind.FOLDER:
            continue

        def read(name: str, folder: str = folder) -> bytes | None:
            return tree.read(join_path(folder, name))

        for name in contents.find_matches(names, tree.names(folder) or (), read):
            if (path := join_path(folder, name)) not in program.paths:
                yield f"{path} is new, and the program has looked for such a name"


def _has_same_code(program: Program, path: str, tree: Tree, sources: Tree) -> bool:
    """Whether a Python file differs in nothing that the program can see."""
    recorded, new = program.paths[path].partition(" ")[2], tree.read(path) or b""
    kept = sources.read(path) if sources.blob(path) == recorded else None
    old = tree.read_object(recorded) if kept is None else kept
    read = (each for each, state in program.paths.items() if state.startswith(("file", "code")))
    texts = [sources.read(each) or b"" for each in read if each.endswith(".py")]
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
    facts = {
        "machine": environment.hard,
        "software": environment.soft,
        "image": environment.image,
        **_list_settings(workload, plan, root),
    }
    return digest(msgspec.json.encode(facts, order="sorted"))


def digest_settings(workload: PlannedWorkload, plan: Plan, root: Path) -> str:
    """Return the digest of how a workload is launched, on whichever machine. Raises OSError."""
    return digest(msgspec.json.encode(_list_settings(workload, plan, root), order="sorted"))


def _list_settings(workload: PlannedWorkload, plan: Plan, root: Path) -> dict[str, object]:
    # The record holds what is in a file below the root, but not in one that ships with ci-perf.
    file, top = Path(os.path.realpath(workload.file)), os.path.realpath(root)
    is_ours = file.is_relative_to(top)
    protocol = msgspec.structs.asdict(workload.protocol)
    return {
        "behaviour": (_BEHAVIOUR, __version__),
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
